"""What each ./dev command does, put together from the parts."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from . import (
    assets,
    bench as benches,
    build_image,
    chart,
    cluster,
    ctest,
    go_programs,
    preflight,
    product,
    prometheus,
    python_image_tests,
)
from .counts import Counts
from .daemon import Daemon
from .errors import DevError
from .lock import LOCK_IS_HELD
from .progress import log_file, phase, say
from .settings import CACHE, CLUSTER_SOURCES, REPO, STATE

_E2E = REPO / "tests" / "e2e"
_PYTHON = sys.executable
# How the story finds the images of Python programs.
_PYTHON_IMAGE_VARIABLES = {
    "learner-pytorch": "PLIANT_PYTORCH_IMAGE",
    "learner-tensorflow": "PLIANT_TENSORFLOW_IMAGE",
}


def up() -> product.ProductImages:
    """The cluster with the present source's operator in it."""
    preflight.check(cluster=True)
    made = assets.build()
    images = product.build_images()
    with phase("Starting the cluster", "about 15 s"):
        cluster.up(made.node_files, made.pause_archive)
    for image in (images.operator, images.learner):
        product.load_image(image)
    product.install(made.node_files.programs, images)
    say("ready: ./dev kubectl get elastictrainingjobs --all-namespaces; ./dev down ends it")
    return images


def cluster_only() -> None:
    preflight.check(cluster=True)
    made = assets.build()
    with phase("Starting the cluster", "about 15 s"):
        cluster.up(made.node_files, made.pause_archive)


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
    """Everything that ./dev up needs, without starting anything."""
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
            return benches.planner()
        case "python":
            return benches.python(choices)
    return benches.trainer(choices)


def shell(inside: Sequence[str]) -> int:
    preflight.check(cluster=False)
    return build_image.shell(inside)


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
    """Of the operator, or of a process of the cluster by the name that `status` prints."""
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
    environment = _e2e_environment(up())
    if "--dashboards" in arguments:
        image = prometheus.image()
        product.load_image(image)
        environment["PLIANT_PROMETHEUS_IMAGE"] = image
    command = [_PYTHON, _E2E / "demo.py", *arguments]
    return subprocess.run(command, env=environment, check=False).returncode


def demo_help() -> int:
    return subprocess.run([_PYTHON, _E2E / "demo.py", "--help"], check=False).returncode


def test(sets: Sequence[str], preset: str, cifar10: Path | None = None) -> int:
    """Runs sets of tests; the last line counts them all."""
    if cifar10 and "all" not in sets:
        raise DevError("--cifar10 is for the set all", remedy=f"./dev test all --cifar10 {cifar10}")
    if cifar10 and not any(cifar10.glob("*.bin")):
        raise DevError(
            f"--cifar10: {cifar10} has no *.bin", remedy="the folder cifar-10-batches-bin"
        )
    counts = run_tests(sets, preset, cifar10)
    print(f"{counts.passed} passed, {counts.failed} failed", flush=True)
    return 1 if counts.failed else 0


def run_tests(sets: Sequence[str], preset: str = "release", cifar10: Path | None = None) -> Counts:
    long = "all" in sets
    everything = long or not sets
    compiled = [name for name in ctest.SETS if everything or name in sets]
    with_e2e = everything or "e2e" in sets
    preflight.check(cluster=with_e2e)
    counts = Counts()
    if everything or "chart" in sets:
        counts += chart.run()
    if compiled:
        counts += ctest.run(compiled, preset=preset, long=long)
    if "python" in compiled:
        counts += python_image_tests.run()
    if with_e2e:
        images = up()
        python_images = {}
        for name, variable in _PYTHON_IMAGE_VARIABLES.items():
            python_images[variable] = product.build_python_image(name)
            product.load_image(python_images[variable])
        # Unless asked for, only the stories: they have the operator killed, and a PyTorch and a Keras script resized.
        moments = ["--all"] if long else [] if "e2e" in sets else ["--only", "the story"]
        command = [_PYTHON, _E2E / "run.py", *moments]
        environment = {**_e2e_environment(images), **python_images}
        if cifar10:
            # Where the nodes see it, too.
            on_nodes = cluster.CHECKPOINTS / cifar10.resolve().name
            shutil.copytree(cifar10, on_nodes, dirs_exist_ok=True)
            environment["PLIANT_CIFAR10"] = on_nodes.name
        counts += _run_story("the end-to-end story", command, environment)
    if long:
        command = [_PYTHON, "-B", CLUSTER_SOURCES / "crash_test.py"]
        # It runs ./dev itself, which would wait for us.
        counts += _run_story("the kills of ./dev up", command, {**os.environ, LOCK_IS_HELD: "1"})
    return counts


def _run_story(title: str, command: Sequence[str | Path], environment: Mapping[str, str]) -> Counts:
    """Runs a program that tells what it does, and in its last line how many passed."""
    log = log_file("test-" + title.rpartition(" ")[2])
    last = ""
    with phase(f"Running {title}"), log.open("w") as out:
        program = subprocess.Popen(
            command,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        for line in program.stdout:
            out.write(line)
            sys.stderr.write("    " + line)
            last = line if line.strip() else last
    counts = Counts.from_last_line(last, program.wait())
    say(f"{title}: {counts} (log: {log})")
    return counts


def _with_kubeconfig(command: Sequence[str | Path]) -> int:
    if not cluster.KUBECONFIG.exists():
        raise DevError("the cluster is not up", remedy="./dev up")
    return subprocess.run(
        command, env={**os.environ, "KUBECONFIG": str(cluster.KUBECONFIG)}, check=False
    ).returncode


def _e2e_environment(images: product.ProductImages) -> dict[str, str]:
    programs = go_programs.existing()
    return {
        **os.environ,
        "KUBECONFIG": str(cluster.KUBECONFIG),
        "PLIANT_KUBECTL": str(programs / "kubectl"),
        "PLIANT_HELM": str(programs / "helm"),
        "PLIANT_STATE": str(STATE),
        "PLIANT_CHECKPOINTS": str(cluster.CHECKPOINTS),
        "PLIANT_OPERATOR_IMAGE": images.operator,
        "PLIANT_LEARNER_IMAGE": images.learner,
        "PLIANT_DEV": str(REPO / "dev"),
    }
