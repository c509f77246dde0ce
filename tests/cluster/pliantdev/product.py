"""The product: compiled in the build image, packed into images, installed in the cluster."""

import json
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from . import build_image, cluster, source_tree
from .content_hash import content_hash
from .errors import DevError
from .images import engine
from .progress import log_file, phase
from .settings import CACHE, CLUSTER_SOURCES, REPO

_PROGRAMS = {
    "operator": ["pliant-operator", "pliant-coordinator", "pliant-simulate"],
    "learner": ["pliant-learner", "pliant-checkpoint"],
}

_COMPILE = """
preset=$1
shift
cmake --preset "$preset"
cmake --build "build/$preset" --target "$@"
"""

# Debug information stays with the compiler's output.
_STRIP = """
cd /src/build/release
mkdir -p stripped
for program in bin/pliant-*; do strip -o "stripped/${program#bin/}" "$program"; done
"""

CHART = REPO / "helm" / "pliant"
NAMESPACE = "pliant-system"
# For the Prometheus of ./dev demo --dashboards: by default the chart lets nobody read metrics.
_METRICS_FROM = [
    {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "pliant-monitoring"}}}
]


@dataclass(frozen=True)
class ProductImages:
    operator: str
    learner: str


def compile_preset(preset: str, *targets: str, source: Path = REPO) -> None:
    """Configures a preset and builds its targets. Takes seconds if little has changed."""
    build_image.stage("build", "about 5 min")
    log = log_file(f"compile-{preset}")
    with phase(f"Compiling ({preset})"):
        inside = ["sh", "-ec", _COMPILE, "sh", preset, *targets]
        build_image.run(inside, log, f"compiling ({preset})", source=source)


def build_images() -> ProductImages:
    """Images of the present source. Their tags are hashes of their contents, so that a Deployment
    rolls out when they change."""
    _compile_programs(REPO)
    return ProductImages(operator=_image("operator"), learner=_image("learner"))


def build_images_at(commit: str) -> ProductImages:
    """Images of the source at a commit of this repository, built with the present tools."""
    named = ProductImages(
        **{name: f"localhost/pliant-at/{name}:{commit}" for name in _PROGRAMS}
    )
    if not (engine().has(named.operator) and engine().has(named.learner)):
        source = source_tree.at(commit)
        _compile_programs(source)
        _pack("operator", named.operator, source)
        _pack("learner", named.learner, source)
        shutil.rmtree(build_image.build_directory(source))
    return named


def _compile_programs(source: Path) -> None:
    targets = [program for programs in _PROGRAMS.values() for program in programs]
    compile_preset("release", *targets, source=source)
    strip = ["sh", "-ec", _STRIP]
    build_image.run(strip, log_file("strip"), "stripping the programs", source=source)


def _programs(name: str, source: Path = REPO) -> list[Path]:
    folder = build_image.build_directory(source) / "release" / "stripped"
    programs = [folder / program for program in _PROGRAMS[name]]
    missing = [program.name for program in programs if not program.exists()]
    if missing:
        raise DevError(f"the build made no {' and no '.join(missing)}")
    return programs


def _image(name: str) -> str:
    tag = content_hash(_base(name), *_programs(name))
    image = f"localhost/pliant/{name}:dev-{tag}"
    if not engine().has(image):
        _pack(name, image)
    return image


def _base(name: str) -> str:
    return build_image.stage(f"{name}-base", "about 1 min")


def _pack(name: str, image: str, source: Path = REPO) -> None:
    base = _base(name)
    with phase(f"Packing the image {image}"), tempfile.TemporaryDirectory(dir=CACHE) as context:
        for program in _programs(name, source):
            shutil.copy2(program, context)
        dockerfile = CLUSTER_SOURCES / "runtime.Dockerfile"
        engine().build(dockerfile, Path(context), image, log_file(f"image-{name}"), base=base)
        engine().remove_others(image)  # images of earlier sources


# Stages of the Dockerfile for Python programs, and the build time of their bases.
PYTHON_IMAGES = {"learner-pytorch": "about 2 min", "learner-tensorflow": "about 2 min"}


def build_python_image(name: str) -> str:
    """An image of Python programs, with the package of the present source."""
    return _with_package(name, build_image.stage(f"{name}-base", PYTHON_IMAGES[name]))


def build_keras_test_image() -> str:
    """An image for tests only: Keras on PyTorch and on JAX."""
    return _test_image(CLUSTER_SOURCES / "keras.Dockerfile", "keras")


def build_newest_test_image() -> str:
    """torch, transformers and Python of Debian's development suite."""
    base = _test_base(engine().prepare(), CLUSTER_SOURCES / "newest.Dockerfile", "newest")
    return _with_package("newest-tests", base)


_HUGGING_FACE = REPO / "examples" / "finetune" / "Dockerfile"


def build_hugging_face_test_image(**versions: str) -> str:
    """The image of examples/finetune. `versions`: of libraries that are not to be the newest, by
    the arguments of the Dockerfile."""
    return _test_image(_HUGGING_FACE, "hugging-face", **versions)


def build_libraries_test_image() -> str:
    """The same with Lightning and experiment trackers."""
    below = _test_base(_pytorch_base(), _HUGGING_FACE, "hugging-face")
    base = _test_base(below, CLUSTER_SOURCES / "libraries.Dockerfile", "libraries")
    return _with_package("libraries-tests", base)


def _pytorch_base() -> str:
    return build_image.stage("learner-pytorch-base", PYTHON_IMAGES["learner-pytorch"])


def _test_image(dockerfile: Path, name: str, **arguments: str) -> str:
    image = "-".join([name, *arguments.values(), "tests"])
    return _with_package(image, _test_base(_pytorch_base(), dockerfile, name, **arguments))


def _test_base(below: str, dockerfile: Path, name: str, **arguments: str) -> str:
    """What an image has below the package of the present source."""
    image = "-".join([name, *arguments.values(), "tests"])
    base = f"localhost/pliant/{image}-base:{content_hash(below, dockerfile)}"
    if not engine().has(base):
        with phase(f"Building the image {base}", "about 2 min"):
            log = log_file(f"image-{image}-base")
            engine().build(
                dockerfile, CLUSTER_SOURCES, base, log, base=below, arguments=arguments
            )
    return base


def _with_package(name: str, base: str) -> str:
    compile_preset("release", "pliant")
    install = "cd /src/build/release && rm -rf python && cmake --install . --component python --prefix python --strip"
    build_image.run(["sh", "-ec", install], log_file("python"), "installing the Python package")
    package = build_image.build_directory() / "release" / "python"
    dockerfile = CLUSTER_SOURCES / "python.Dockerfile"
    tag = content_hash(base, dockerfile, *sorted(package.rglob("*.*")))
    image = f"localhost/pliant/{name}:dev-{tag}"
    if not engine().has(image):
        with phase(f"Packing the image {image}"), tempfile.TemporaryDirectory(dir=CACHE) as context:
            shutil.copytree(package, Path(context, "package"))
            log = log_file(f"image-{name}")
            engine().build(dockerfile, Path(context), image, log, base=base)
            engine().remove_others(image)  # of earlier sources
    return image


def load_image(image: str) -> None:
    """Loads an image into the nodes' containerd, unless it is there."""
    if all(image in node.images() for node in cluster.nodes()):
        return
    with (
        phase(f"Loading {image} into the nodes"),
        tempfile.TemporaryDirectory(dir=CACHE) as scratch,
    ):
        archive = Path(scratch, "image.tar")
        engine().save(image, archive, log_file("image-save"))
        cluster.load_image(archive)


def install(programs: Path, images: ProductImages, source: Path = REPO) -> None:
    """Installs or upgrades the operator by its chart."""
    chart = source / CHART.relative_to(REPO)
    if not chart.exists():
        raise DevError(f"there is no chart at {chart}")
    repository, _, tag = images.operator.rpartition(":")
    with phase("Installing the operator (helm)"):
        # fmt: off
        result = subprocess.run(
            [programs / "helm", f"--kubeconfig={cluster.KUBECONFIG}",
             "upgrade", "--install", "pliant", chart,
             "--namespace", NAMESPACE, "--create-namespace", "--wait", "--timeout", "120s",
             "--set-string", f"image.repository={repository},image.tag={tag}",
             "--set-json", f"networkPolicy.metricsFrom={json.dumps(_METRICS_FROM)}"],
            capture_output=True, text=True, check=False,
        )
        # fmt: on
    if result.returncode != 0:
        raise DevError(
            f"helm failed: {result.stderr.strip()}",
            remedy="./dev kubectl -n pliant-system get pods,events",
        )
