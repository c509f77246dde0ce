"""./dev test changed: runs the tests that the changes since a commit may have broken."""

from collections.abc import Sequence
from dataclasses import dataclass

from . import (
    changes,
    cmake_reply,
    ctest,
    e2e,
    file_map,
    parts,
    preflight,
    product,
    selection,
    testing,
)
from .code_graph import Graph
from .moments import Moment, moment
from .selection import Reach


@dataclass(frozen=True)
class Choices:
    since: str | None = None
    preset: str = "release"
    dry_run: bool = False
    no_cluster: bool = False
    fail_fast: bool = False


def run(choices: Choices) -> int:
    commit, words = changes.base(choices.since)
    files = changes.files(commit)
    print(f"changed since {commit[:12]} ({words}): {len(files) or 'no'} files", flush=True)
    if not files:
        return 0
    preflight.check(cluster=False)
    graph = cmake_reply.load(choices.preset)
    selected = selection.select(files, graph)
    reach = selected.whole
    print(*selection.explain(selected, graph), sep="\n", flush=True)
    if choices.preset in parts.SANITIZERS:
        reach = selection.sanitized(reach, parts.SANITIZED_SETS, graph)
        print(f"of these with {choices.preset}")
        print(*selection.wrapped(selection.words(reach, graph), 100), sep="\n", flush=True)
    on_cluster = [part for part in file_map.ON_CLUSTER if part in reach.parts]
    if choices.no_cluster and on_cluster:
        reach = selection.without_cluster(reach)
        print(f"left out by --no-cluster: {', '.join(on_cluster)}", flush=True)
    if choices.dry_run:
        return 0
    return testing.run_once(
        "test-changed",
        of_reach(reach, graph, choices),
        with_cluster=bool(reach.parts & {*file_map.ON_CLUSTER}),
        fail_fast=choices.fail_fast,
        head={"tests": sorted(reach.tests), "parts": sorted(reach.parts)},
    )


def of_reach(reach: Reach, graph: Graph, choices: Choices) -> list[Moment]:
    """The moments to run, quick ones first."""
    by_name = {
        each.name: each
        for each in (
            *(parts.FORMAT, parts.TYPES, parts.CHART, parts.ALERTS),
            *_ctest_moments(reach, graph, choices),
            *(*parts.IN_IMAGES.values(), parts.CUDA, *e2e.moments(e2e.STORY), parts.KILLS),
        )
    }
    wanted = {name for name in by_name if name in reach.parts or name in _OF_CTEST}
    wanted |= {need for name in wanted for need in by_name[name].needs}
    return [each for name, each in by_name.items() if name in wanted]


_COMPILE, _TESTS, _SERVED = "compile", "tests", "integration tests"
_OF_CTEST = (_COMPILE, _TESTS, _SERVED)


def _ctest_moments(reach: Reach, graph: Graph, choices: Choices) -> list[Moment]:
    """The moments of ctest, without tests that this preset does not have."""
    names = sorted(reach.tests & graph.tests.keys())
    targets = to_compile(reach, graph)
    moments = []
    if targets:
        moments.append(moment(_COMPILE, lambda: product.compile_preset(choices.preset, *targets)))
    for title, of_title, served in (
        (_TESTS, [name for name in names if graph.tests[name].set != ctest.SERVED], False),
        (_SERVED, [name for name in names if graph.tests[name].set == ctest.SERVED], True),
    ):
        if of_title:

            def run_them(of_title: Sequence[str] = of_title, served: bool = served):
                return ctest.run_named(
                    of_title, preset=choices.preset, served=served, fail_fast=choices.fail_fast
                )

            moments.append(moment(title, run_them, [_COMPILE] if targets else []))
    return moments


def to_compile(reach: Reach, graph: Graph) -> list[str]:
    """The changed targets, and the programs that the tests run."""
    targets = set(reach.targets)
    for name in reach.tests & graph.tests.keys():
        test = graph.tests[name]
        targets |= {test.program} if test.program else graph.programs_of_scripts(test.set)
    return sorted(targets)
