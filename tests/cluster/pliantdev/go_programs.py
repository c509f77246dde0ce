"""Kubernetes, etcd, the pretend GPUs, helm and the checkers of charts, compiled from their Go
modules inside an image for this purpose."""

import shutil
from pathlib import Path

from .content_hash import content_hash
from .errors import DevError
from .host import CA_BUNDLE, client_settings
from .images import Mounted, engine
from .progress import log_file, phase, run_logged
from .settings import CACHE, CLUSTER_SOURCES, HELM_VERSION, KUBERNETES_VERSION

# One program that acts as each of these, by the name under which it is called.
_KUBERNETES = "kubernetes"
_NAMES = (
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-proxy",
    "kube-scheduler",
    "kubectl",
    "kubelet",
    "pretend-gpus",
)

# The API server's schemas of all its kinds: a file in the folder of the programs.
OPENAPI = "kubernetes-openapi.json"

_BUILD = f"""
export GOMODCACHE=/go/mod GOCACHE=/go/build GOFLAGS=-trimpath CGO_ENABLED=0
version=k8s.io/component-base/version
cd /src/kubernetes
go build -o /out/ -ldflags "-s -w \\
  -X $version.gitVersion={KUBERNETES_VERSION} \\
  -X $version.gitMajor=1 \\
  -X $version.gitMinor={KUBERNETES_VERSION.split(".")[1]}" . ./pause
kubernetes=$(go list -m -f '{{{{.Dir}}}}' k8s.io/kubernetes)
cp "$kubernetes/api/openapi-spec/swagger.json" /out/{OPENAPI}
cd /src/helm
version=helm.sh/helm/v3/internal/version
go build -o /out/ -ldflags "-s -w -X $version.version={HELM_VERSION}" helm.sh/helm/v3/cmd/helm
go build -o /out/ -ldflags "-s -w" \\
  github.com/helm-unittest/helm-unittest/cmd/helm-unittest \\
  github.com/yannh/kubeconform/cmd/kubeconform
"""


def folder() -> Path:
    """The folder of the built programs; its name is a hash of their sources."""
    sources = content_hash(CLUSTER_SOURCES / "kubernetes", CLUSTER_SOURCES / "helm", _BUILD)
    return CACHE / f"go-programs-{sources}"


def existing() -> Path:
    programs = folder()
    if not programs.exists():
        raise DevError(
            f"the Kubernetes programs are not built yet (no {programs})", remedy="./dev build"
        )
    return programs


def build() -> Path:
    """Compiles them unless they exist."""
    programs = folder()
    if programs.exists():
        return programs
    dockerfile = CLUSTER_SOURCES / "Dockerfile"
    image = f"localhost/pliant/go:{content_hash(dockerfile)}"
    engine().ensure(dockerfile, CLUSTER_SOURCES, image, "go", "about 1 min")
    unfinished = programs.with_suffix(".new")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    modules = CACHE / "go"
    modules.mkdir(exist_ok=True)
    mounts = {CLUSTER_SOURCES: "/src", modules: "/go", unfinished: "/out"}
    if CA_BUNDLE.exists():
        mounts[CA_BUNDLE] = str(CA_BUNDLE)
    with phase("Compiling Kubernetes, etcd and helm", "about 10 min"):
        command = engine().command_to_run(
            image,
            Mounted(
                command=["sh", "-ec", _BUILD],
                mounts=mounts,
                environment={"HOME": "/root", **client_settings()},
            ),
        )
        run_logged(command, log_file("go-programs"), "compiling Kubernetes")
    for name in _NAMES:
        (unfinished / name).symlink_to(_KUBERNETES)
    unfinished.rename(programs)
    return programs
