"""The end-to-end moments on the local cluster: prepares their needs and runs tests/e2e/run.py."""

import json
import os
import shutil
import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from . import cluster, go_programs, host, product, starting, storyteller
from .counts import Counts
from .moments import AddRow, Moment, moment
from .progress import log_file
from .rows import Row, total
from .settings import REPO, STATE

FOLDER = REPO / "tests" / "e2e"
_NAME = "e2e"
_IMAGES = "cluster and images"
_PICTURES = STATE / "log" / "pictures"  # of the page in a browser
# Environment variables with the images of Python programs, for the story.
_PYTHON_IMAGE_VARIABLES = {
    "learner-pytorch": "PLIANT_PYTORCH_IMAGE",
    "learner-tensorflow": "PLIANT_TENSORFLOW_IMAGE",
}


@dataclass(frozen=True)
class Play:
    """Arguments of tests/e2e/run.py, and the images of Python programs that it needs."""

    arguments: tuple[str, ...] = ()
    images: tuple[str, ...] = tuple(_PYTHON_IMAGE_VARIABLES)
    browser: bool = False  # whether Chromium shows the operator's page


# The story trains a PyTorch script and a native learner, and kills the operator after each step.
STORY = Play(("--only", "the story"), ("learner-pytorch",))
SHORT = Play()
LONG = Play(("--all",), browser=True)


def moments(
    what: Play,
    cifar10: Path | None = None,
    passed: Callable[[], Collection[str]] = frozenset,
) -> list[Moment]:
    """`passed`: the names of rows that need not be repeated."""
    of_story: dict[str, str] = {}

    def prepare() -> None:
        of_story.update(environment(starting.up()))
        for name in what.images:
            variable = _PYTHON_IMAGE_VARIABLES[name]
            of_story[variable] = product.build_python_image(name)
            product.load_image(of_story[variable])
        if what.browser:
            of_story["PLIANT_CHROMIUM"] = host.browser()
            of_story["PLIANT_PICTURES"] = str(_PICTURES)
        if cifar10:
            # To a folder that the nodes share.
            on_nodes = cluster.CHECKPOINTS / cifar10.resolve().name
            shutil.copytree(cifar10, on_nodes, dirs_exist_ok=True)
            of_story["PLIANT_CIFAR10"] = on_nodes.name

    def play(add: AddRow) -> None:
        prefix = f"{_NAME}: "
        over = [name.removeprefix(prefix) for name in passed() if name.startswith(prefix)]
        _play(what.arguments, of_story, over, add)

    return [moment(_IMAGES, prepare), Moment(_NAME, play, (_IMAGES,))]


def _play(
    arguments: Sequence[str], of_story: dict[str, str], over: Sequence[str], add: AddRow
) -> None:
    results = log_file("test-story").with_suffix(".results")
    results.unlink(missing_ok=True)
    # fmt: off
    command: list[str | Path] = [sys.executable, "-B", FOLDER / "run.py", *arguments, f"--results={results}",
               *(f"--skip={name}" for name in over)]
    # fmt: on
    told: list[Row] = []

    def heard() -> None:
        for row in rows_of(results.read_text() if results.exists() else "")[len(told) :]:
            told.append(row)
            add(row)

    counts = storyteller.run("the end-to-end story", command, of_story, heard)
    unexplained = counts.failed - total(told).failed
    if unexplained > 0:  # the preparation failed, or the program ended early
        add(Row(_NAME, 0.0, Counts(failed=unexplained), "the log says what failed"))


def rows_of(results: str) -> list[Row]:
    """The moments that run.py has played, one JSON line each. An incomplete last line is
    ignored."""
    lines = results.splitlines(keepends=True)
    values = [json.loads(line) for line in lines if line.endswith("\n")]
    return [
        Row(f"{_NAME}: {each['name']}", each["seconds"], Counts(each["passed"], each["failed"]))
        for each in values
    ]


def environment(images: product.ProductImages) -> dict[str, str]:
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
