"""The command line of ./dev."""

import argparse
import signal
import sys
from pathlib import Path
from types import FrameType

from . import bench, changed, ci, commands, gpu_pack, own_cluster, source_tree, starting, testing
from .errors import DevError
from .lock import exclusive

_DESCRIPTION = """\
Builds Pliant, and runs it and its tests on a local Kubernetes cluster on this machine.

It needs only root and the registries of Debian, Go and Python packages. Results are cached in
/var/cache/pliant (PLIANT_CACHE); the state of the running cluster is in /var/lib/pliant
(PLIANT_STATE).
"""


def _test_set(name: str) -> str:
    if name not in testing.SETS:
        raise argparse.ArgumentTypeError(
            f"there is no set {name}; the sets are {', '.join(testing.SETS)}"
        )
    return name


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="./dev", description=_DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    words = parser.add_subparsers(dest="word", metavar="COMMAND", required=True)

    def word(name: str, text: str) -> argparse.ArgumentParser:
        return words.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")

    up = word(
        "up",
        "build what is needed, start the cluster, install the operator; run it again after an edit",
    )
    version = up.add_mutually_exclusive_group()
    version.add_argument(
        "--cluster-only", action="store_true", help="the bare cluster, without the operator"
    )
    version.add_argument(
        "--commit",
        metavar="COMMIT",
        help="install the operator of this commit, to test an upgrade from it: the next ./dev up "
        "installs the present one. Image of its learners: localhost/pliant-at/learner:COMMIT, with "
        "the first 12 digits of the commit",
    )
    word("demo", "run the demo: two trainings share eight GPUs without a change of their results")
    test = word(
        "test", "run tests: chart, unit to integration and the end-to-end story, or the sets named"
    )
    test.add_argument(
        "sets",
        nargs="*",
        type=_test_set,
        metavar="SET",
        help=f"{', '.join(testing.SETS)}; changed: what changes since a commit may have broken; "
        "all: long tests too, in two halves, the first of which needs no cluster",
    )
    test.add_argument(
        "--since",
        metavar="COMMIT",
        help="changed: commit to compare with; default: where HEAD left origin/main, or main",
    )
    test.add_argument(
        "--dry-run", action="store_true", help="changed: only print what would be run, and why"
    )
    test.add_argument(
        "--no-cluster",
        action="store_true",
        help="changed: leave out tests on the local cluster, for example on a shared machine",
    )
    test.add_argument(
        "--fail-fast", action="store_true", help="changed: stop after the first test that fails"
    )
    test.add_argument(
        "--resume",
        action="store_true",
        help="all: skip tests that have already passed with the same source",
    )
    own_cluster.add_arguments(test)
    test.add_argument(
        "--cifar10",
        type=Path,
        metavar="FOLDER",
        help="all: folder of CIFAR-10, binary version; ResNet-18 is also trained on a part of it",
    )
    test.add_argument(
        "--preset",
        default="release",
        choices=["dev", "release", "asan", "tsan"],
        help="preset in CMakePresets.json; default: release, from which the images are made",
    )
    figures = word("bench", "run benchmarks, also of comparable software where there is some")
    figures.add_argument("what", choices=bench.BENCHES)
    figures.add_argument(
        "--json", type=Path, metavar="FILE", help="write the rows as JSON"
    )
    figures.add_argument(
        "--svg", type=Path, metavar="FILE", help="planner: draw the time over the size"
    )
    figures.add_argument("--quick", action="store_true", help="fewer repeats and cases")
    figures.add_argument(
        "--only", nargs="+", default=[], metavar="NAME", help="trainer, gpu: only these benches"
    )
    figures.add_argument(
        "--cifar10", type=Path, metavar="FOLDER", help="images; default: made-up images"
    )
    figures.add_argument(
        "--scripts",
        type=Path,
        metavar="FOLDER",
        help="reach: the public scripts, as OWNER/NAME/FILE, and further ones, which reach.py there "
        "names as tests/reach/scripts.py does; default: they are fetched with git",
    )
    figures.add_argument(
        "--churn-seconds",
        type=int,
        metavar="N",
        help="operator: create and delete jobs and pods for this time (default: 60)",
    )
    word("build", "compile everything and make the images, without starting anything")
    word("status", "show the processes and nodes of the cluster")
    logs = word("logs", "print the operator's log, or that of a process of the cluster")
    logs.add_argument(
        "name", nargs="?", help="a name in ./dev status, for example node-1/kubelet"
    )
    word("kubectl", "kubectl on the local cluster")
    word("helm", "helm on the local cluster")
    node_exec = word(
        "node-exec",
        "run a command inside a node, for example: ./dev node-exec node-1 ctr -n k8s.io tasks ls",
    )
    node_exec.add_argument("node")
    node_exec.add_argument("command", nargs=argparse.REMAINDER)
    for name, text in (
        ("node-down", "end a node and everything that runs in it, like a loss of power"),
        ("node-up", "start a node again after node-down"),
    ):
        word(name, text).add_argument("node")
    restart = word(
        "restart", "kill a process of the cluster, and start it again: ./dev restart etcd --after 5"
    )
    restart.add_argument("name", help="a name in ./dev status")
    restart.add_argument("--after", type=float, default=0.0, metavar="SECONDS", help="default: 0")
    shell = word("shell", "run a shell or a command in the build image, with the source mounted")
    shell.add_argument("command", nargs=argparse.REMAINDER)
    word(
        "simulate",
        "compile pliant-simulate and run it in the build image, with the paths of the checkout; "
        "see ./dev simulate --help and docs/simulator.md",
    )
    gpu = word("gpu", "make the GPU pack: tests and measurements for a machine that has a GPU")
    gpu.add_argument("what", choices=["pack"])
    gpu.add_argument(
        "--to",
        type=Path,
        metavar="FOLDER",
        default=gpu_pack.FOLDER,
        help="it is replaced; default: build/gpu-pack",
    )
    word("ci", "run all checks of a change, as .ci/run does")
    word("down", "end the cluster and all its processes")
    word("clean", "end the cluster and remove all caches")
    return parser


def _run(arguments: argparse.Namespace, rest: list[str]) -> int:
    match arguments.word:
        # These only read, or may run while another command holds the lock.
        case "kubectl":
            return commands.kubectl(rest)
        case "helm":
            return commands.helm(rest)
        case "node-exec":
            return commands.node_exec(arguments.node, arguments.command)
        case "status":
            return commands.status()
        case "logs":
            return commands.logs(arguments.name)
        case "demo" if {"-h", "--help"} & {*rest}:
            return commands.demo_help()
        case "shell":
            return commands.shell(arguments.command)
        # These change nothing on this machine.
        case "demo" if own_cluster.is_meant(rest):
            return own_cluster.demo(rest)
        case "test" if arguments.cluster == own_cluster.CURRENT:
            return own_cluster.test(arguments)
    with exclusive(arguments.word):
        match arguments.word:
            case "up":
                _up(arguments)
            case "demo":
                return commands.demo(rest)
            case "test":
                return _test(arguments)
            case "bench":
                choices = bench.Choices(
                    json=arguments.json,
                    quick=arguments.quick,
                    only=arguments.only,
                    cifar10=arguments.cifar10,
                    churn_seconds=arguments.churn_seconds,
                    svg=arguments.svg,
                    scripts=arguments.scripts,
                )
                return commands.bench(arguments.what, choices)
            case "build":
                commands.build()
            case "simulate":
                return commands.simulate(rest)
            case "gpu":
                gpu_pack.make(arguments.to.resolve())
            case "ci":
                return ci.run()
            case "node-down":
                commands.node_down(arguments.node)
            case "node-up":
                commands.node_up(arguments.node)
            case "restart":
                commands.restart(arguments.name, arguments.after)
            case "down":
                commands.down()
            case "clean":
                commands.clean()
    return 0


def _up(arguments: argparse.Namespace) -> None:
    if arguments.cluster_only:
        starting.cluster_only()
    else:
        starting.up(None if arguments.commit is None else source_tree.resolve(arguments.commit))


def _test(arguments: argparse.Namespace) -> int:
    testing.check_arguments(arguments.sets, arguments.cifar10, arguments.resume)
    of_changed = {
        "--since": arguments.since,
        "--dry-run": arguments.dry_run,
        "--no-cluster": arguments.no_cluster,
        "--fail-fast": arguments.fail_fast,
    }
    if arguments.sets == [testing.CHANGED]:
        return changed.run(
            changed.Choices(
                since=arguments.since,
                preset=arguments.preset,
                dry_run=arguments.dry_run,
                no_cluster=arguments.no_cluster,
                fail_fast=arguments.fail_fast,
            )
        )
    for flag, value in of_changed.items():
        if value:
            raise DevError(
                f"{flag} is for the set changed", remedy=f"./dev test changed {flag} ..."
            )
    return testing.test(arguments.sets, arguments.preset, arguments.cifar10, arguments.resume)


# These pass their arguments on, including --help.
_PASS_ON = ("kubectl", "helm", "demo", "simulate")


def clear_up_at_signals() -> None:
    """Makes SIGTERM and SIGHUP act like Ctrl-C, so that temporary processes are ended."""

    def interrupt(number: int, _: FrameType | None) -> None:
        raise KeyboardInterrupt(number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:  # as under nohup
            signal.signal(number, interrupt)


def main(argv: list[str]) -> int:
    clear_up_at_signals()
    rest: list[str] = []
    if argv and argv[0] in _PASS_ON:
        argv, rest = argv[:1], argv[1:]
    arguments = _parser().parse_args(argv)
    try:
        return _run(arguments, rest)
    except DevError as error:
        print(f"./dev {arguments.word}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt as interrupt:
        print(f"./dev {arguments.word}: interrupted", file=sys.stderr)
        return 128 + (interrupt.args[0] if interrupt.args else signal.SIGINT)
