"""What each ./dev command does, put together from the parts."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from . import assets, build_image, cluster, ctest, go_programs, preflight, product
from .ctest import Counts
from .errors import DevError
from .progress import log_file, phase, say
from .settings import CACHE, CLUSTER_SOURCES, REPO, STATE

_E2E = REPO / "tests" / "e2e"


def up() -> product.ProductImages:
    """The cluster with the present source's operator in it."""
    preflight.check(cluster=True)
    made = assets.build()
    images = product.build_images()
    if not cluster.is_up():
        with phase("Starting the cluster", "about 15 s"):
            cluster.up(made.node_files, made.pause_archive)
    product.load_images(images)
    product.install(made.node_files.programs, images)
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
        shutil.rmtree(CACHE, ignore_errors=True)
        shutil.rmtree(STATE, ignore_errors=True)


def build() -> None:
    """Everything that ./dev up needs, without starting anything."""
    preflight.check(cluster=False)
    assets.build()
    images = product.build_images()
    print(images.operator, images.learner, sep="\n")


def shell(inside: Sequence[str]) -> int:
    preflight.check(cluster=False)
    return build_image.shell(inside)


def status() -> int:
    for daemon in cluster.daemons():
        pid = daemon.pid()
        print(f"{daemon.log.parent.parent.name + '/' + daemon.name:32} {'process ' + str(pid) if pid else 'does not run'}")
    if not cluster.is_up():
        print("the cluster is not up; start it with ./dev up")
        return 1
    print(f"export KUBECONFIG={cluster.KUBECONFIG}", flush=True)
    for arguments in (["get", "nodes"], ["get", "pods", "--all-namespaces", "-o", "wide"]):
        kubectl(arguments)
    return 0


def logs(name: str | None) -> int:
    """Of the operator, or of a process of the cluster by the name that `status` prints."""
    if name is None:
        selector = "app.kubernetes.io/name=pliant"
        return kubectl(["-n", product.NAMESPACE, "logs", "-l", selector, "--prefix", "--tail=200", "--all-containers"])
    for daemon in cluster.daemons():
        if f"{daemon.log.parent.parent.name}/{daemon.name}" == name:
            sys.stdout.write(daemon.log.read_text(errors="replace"))
            return 0
    raise DevError(f"nothing is called {name}", remedy="./dev status lists the names")


def kubectl(arguments: Sequence[str]) -> int:
    return _with_kubeconfig([go_programs.existing() / "kubectl", *arguments])


def helm(arguments: Sequence[str]) -> int:
    return _with_kubeconfig([go_programs.existing() / "helm", *arguments])


def node_exec(node: str, command: Sequence[str]) -> int:
    preflight.require_root()
    return subprocess.run(cluster.node(node).command(command), check=False).returncode


def demo(arguments: Sequence[str]) -> int:
    images = up()
    return subprocess.run(["python3", _E2E / "demo.py", *arguments], env=_e2e_environment(images), check=False).returncode


def test(sets: Sequence[str], preset: str) -> int:
    """Runs sets of tests; the last line counts them all."""
    counts = run_tests(sets, preset)
    print(f"{counts.passed} passed, {counts.failed} failed", flush=True)
    return 1 if counts.failed else 0


def run_tests(sets: Sequence[str], preset: str = "dev") -> Counts:
    long = "all" in sets
    everything = long or not sets
    compiled = [name for name in ctest.SETS if everything or name in sets]
    with_e2e = everything or "e2e" in sets
    preflight.check(cluster=with_e2e)
    counts = Counts()
    if compiled:
        counts += ctest.run(compiled, preset=preset, long=long)
    if with_e2e:
        counts += _run_e2e(long)
    return counts


def _run_e2e(long: bool) -> Counts:
    """The story on the local cluster. Its program's last line is `N passed, N failed`."""
    images = up()
    log = log_file("test-e2e")
    command = ["python3", _E2E / "run.py", *(["--all"] if long else [])]
    with phase("Running the end-to-end story"), log.open("w") as out:
        program = subprocess.Popen(
            command, env=_e2e_environment(images), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        last = ""
        for line in program.stdout:
            out.write(line)
            sys.stderr.write("    " + line)
            last = line.strip() or last
        status = program.wait()
    match = re.fullmatch(r"(\d+) passed, (\d+) failed", last)
    counts = Counts(int(match[1]), int(match[2])) if match else Counts()
    if status != 0 and not counts.failed or not match:
        counts += Counts(failed=1)
    say(f"end-to-end story: {counts} (log: {log})")
    return counts


def _with_kubeconfig(command: Sequence[str | Path]) -> int:
    if not cluster.KUBECONFIG.exists():
        raise DevError("the cluster is not up", remedy="./dev up")
    return subprocess.run(command, env={**os.environ, "KUBECONFIG": str(cluster.KUBECONFIG)}, check=False).returncode


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
