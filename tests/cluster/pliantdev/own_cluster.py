"""The story and its tests on the current cluster of the kubeconfig: nothing is built, started or
installed."""

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from .errors import DevError
from .settings import REPO

LOCAL, CURRENT = "local", "current"

_E2E = REPO / "tests" / "e2e"
_FLAG = "--cluster"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `./dev test e2e`. tests/e2e, which also reads them, describes them."""
    parser.add_argument(
        _FLAG, choices=[LOCAL, CURRENT], default=LOCAL, help="e2e: where it runs; default: local"
    )
    parser.add_argument("--learner-image", metavar="IMAGE", help="e2e, current: learner's image")
    parser.add_argument(
        "--pytorch-image", metavar="IMAGE", help="e2e, current: image for PyTorch programs"
    )
    parser.add_argument(
        "--tensorflow-image", metavar="IMAGE", help="e2e, current: image for Keras programs"
    )
    parser.add_argument(
        "--checkpoint-claim", metavar="NAME", help="e2e, current: claim for the checkpoints"
    )


def is_meant(arguments: Sequence[str]) -> bool:
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument(_FLAG, default=LOCAL)
    try:
        return parser.parse_known_args(arguments)[0].cluster == CURRENT
    except SystemExit:  # a flag without its value: the story's own parser reports it
        return False


def demo(arguments: Sequence[str]) -> int:
    return _run("demo.py", arguments)


def test(arguments: argparse.Namespace) -> int:
    if arguments.sets != ["e2e"]:
        raise DevError(
            f"{_FLAG}={CURRENT} is for the set e2e", remedy=f"./dev test e2e {_FLAG}={CURRENT} ..."
        )
    if arguments.resume:
        raise DevError("--resume is for the set all", remedy="./dev test all --resume")
    if arguments.cifar10:
        raise DevError(
            "--cifar10 is for the local cluster",
            remedy=f"./dev test all --cifar10 {arguments.cifar10}",
        )
    named = {
        "--learner-image": arguments.learner_image,
        "--pytorch-image": arguments.pytorch_image,
        "--tensorflow-image": arguments.tensorflow_image,
        "--checkpoint-claim": arguments.checkpoint_claim,
    }
    flags = [f"{flag}={value}" for flag, value in named.items() if value]
    return _run("run.py", [f"{_FLAG}={CURRENT}", *flags])


def _run(program: str, arguments: Sequence[str]) -> int:
    command: list[str | Path] = [sys.executable, "-B", _E2E / program, *arguments]
    return subprocess.run(command, env=os.environ, check=False).returncode
