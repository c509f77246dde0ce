"""The ./dev commands, composed of the parts."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from . import (
    assets,
    bench as benches,
    build_image,
    cluster,
    e2e,
    go_programs,
    preflight,
    product,
    prometheus,
    starting,
)
from .daemon import Daemon
from .errors import DevError
from .progress import phase
from .settings import CACHE, STATE

_PYTHON = sys.executable


def down() -> None:
    preflight.require_root()
    with phase("Ending the cluster"):
        cluster.down()


def clean() -> None:
    down()
    with phase(f"Removing {CACHE} and {STATE}"):
        for folder in (CACHE, STATE, Path("/run/pliant-images")):
            shutil.rmtree(folder, ignore_errors=True)


def build() -> None:
    """Builds everything that ./dev up needs, without starting anything."""
    preflight.check(cluster=False)
    assets.build()
    images = product.build_images()
    python_images = [product.build_python_image(name) for name in product.PYTHON_IMAGES]
    print(images.operator, images.learner, *python_images, sep="\n")


def bench(what: str, choices: benches.Choices) -> int:
    preflight.check(cluster=False)
    match what:
        case "operator":
            return benches.operator(choices)
        case "planner":
            return benches.planner(choices)
        case "python":
            return benches.python(choices)
        case "reach":
            return benches.reach(choices)
        case "simulator":
            return benches.simulator(choices)
        case "gpu":
            return benches.gpu(choices)
    return benches.trainer(choices)


def shell(inside: Sequence[str]) -> int:
    preflight.check(cluster=False)
    return build_image.shell(inside)


def simulate(arguments: Sequence[str]) -> int:
    preflight.check(cluster=False)
    product.compile_preset("release", "pliant-simulate")
    return build_image.shell(["build/release/bin/pliant-simulate", *arguments])


def status() -> int:
    for name, daemon in cluster.daemons().items():
        pid = daemon.pid()
        print(f"{name:28} {f'process {pid}' if pid else 'does not run'}")
    if not cluster.is_up():
        print("the cluster is not up; start it with ./dev up")
        return 1
    print(f"export KUBECONFIG={cluster.KUBECONFIG}", flush=True)
    kubectl(["get", "nodes"])
    return kubectl(["get", "pods", "--all-namespaces", "-o", "wide"])


def logs(name: str | None) -> int:
    """Prints the log of the operator, or of a process of the cluster by its name in `status`."""
    if name is None:
        of_operator = ["-n", product.NAMESPACE, "logs", "-l", "app.kubernetes.io/name=pliant"]
        return kubectl([*of_operator, "--prefix", "--tail=200", "--all-containers"])
    daemon = _daemon(name)
    sys.stdout.write(daemon.log.read_text(errors="replace"))
    return 0


def _daemon(name: str) -> Daemon:
    daemon = cluster.daemons().get(name)
    if not daemon:
        raise DevError(f"nothing is called {name}", remedy="./dev status lists the names")
    return daemon


def kubectl(arguments: Sequence[str]) -> int:
    return _with_kubeconfig([go_programs.existing() / "kubectl", *arguments])


def helm(arguments: Sequence[str]) -> int:
    return _with_kubeconfig([go_programs.existing() / "helm", *arguments])


def node_exec(node: str, command: Sequence[str]) -> int:
    preflight.require_root()
    return subprocess.run(cluster.node(node).command(command), check=False).returncode


def node_down(node: str) -> None:
    preflight.require_root()
    with phase(f"Taking {node} away"):
        cluster.take_away(node)


def node_up(node: str) -> None:
    preflight.require_root()
    made = assets.build()
    with phase(f"Bringing {node} back"):
        cluster.bring_back(node, made.node_files, made.pause_archive)


def restart(name: str, away_seconds: float) -> None:
    preflight.require_root()
    with phase(f"Killing {name}, and starting it again"):
        _daemon(name).restart(away_seconds)


def demo(arguments: Sequence[str]) -> int:
    environment = e2e.environment(starting.up())
    if "--dashboards" in arguments:
        image = prometheus.image()
        product.load_image(image)
        environment["PLIANT_PROMETHEUS_IMAGE"] = image
    command: list[str | Path] = [_PYTHON, e2e.FOLDER / "demo.py", *arguments]
    return subprocess.run(command, env=environment, check=False).returncode


def demo_help() -> int:
    return subprocess.run([_PYTHON, e2e.FOLDER / "demo.py", "--help"], check=False).returncode


def _with_kubeconfig(command: Sequence[str | Path]) -> int:
    if not cluster.KUBECONFIG.exists():
        raise DevError("the cluster is not up", remedy="./dev up")
    return subprocess.run(
        command, env={**os.environ, "KUBECONFIG": str(cluster.KUBECONFIG)}, check=False
    ).returncode
