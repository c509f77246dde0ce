"""Checks the operator's timeline against what the story saw of the cluster, and against itself. Pure."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from .checks import Check
from .timeline import Piece, Recorded, between, clipped
from .world import World

# A replica looks twice a second at what its watches have brought, as the story's watcher does at the API server.
_MAX_APART_SECONDS = 2.0
_SEEN_SECONDS = 1.0  # a size that lasts for less may be missed
_STEADY_SECONDS = 5.0  # a size that lasts for this time is in every record
_MAX_PROBLEMS = 5  # of one check


@dataclass(frozen=True)
class Lane:
    """One job in words: of the page, or of kubectl get."""

    name: str
    phase: str
    gpus: int
    reason: str
    label: str = ""  # of the page, for screen readers


def lanes_of_page(told: Mapping) -> dict[str, Lane]:
    return {
        each["name"]: Lane(each["name"], each["phase"], each["gpus"], each["reason"], each["label"])
        for each in told["lanes"]
    }


def lanes_of_kubectl(table: str, namespace: str) -> dict[str, Lane]:
    """From the output of `kubectl get etj -o wide`. A cell begins below its title."""
    header, *rows = table.splitlines() or [""]
    begins = {title[0]: title.start() for title in re.finditer(r"\S+", header)}
    order = sorted(begins.values())

    def cell(row: str, title: str) -> str:
        begin = begins[title]
        return row[begin : next((each for each in order if each > begin), None)].strip()

    found = {}
    for row in rows:
        name = f"{namespace}/{cell(row, 'NAME')}"
        gpus = cell(row, "GPUS")
        found[name] = Lane(name, cell(row, "PHASE"), int(gpus) if gpus.isdecimal() else 0, cell(row, "REASON"))
    return found


def lane_problems(page: Mapping[str, Lane], kubectl: Mapping[str, Lane]) -> list[str]:
    """A difference may be the age of one of the answers: the caller asks again."""
    problems = [f"the page has {sorted(page)}, kubectl {sorted(kubectl)}"] if {*page} != {*kubectl} else []
    for name in sorted({*page} & {*kubectl}):
        ours, theirs = page[name], kubectl[name]
        # The page has the reason's code before its sentence, or alone if there is none.
        same_reason = re.fullmatch(rf"(\w+: )?{re.escape(theirs.reason)}" if theirs.reason else r"\w+|–", ours.reason)
        if (ours.phase, ours.gpus) != (theirs.phase, theirs.gpus) or not same_reason:
            problems.append(
                f"{name}: the page says {ours.phase}, {ours.gpus} GPUs, {ours.reason}; "
                f"kubectl {theirs.phase}, {theirs.gpus} GPUs, {theirs.reason}"
            )
        if not (ours.label.startswith(f"{name}, ") and ours.label.endswith(f", {ours.phase}, {ours.gpus} GPUs")):
            problems.append(f"{name}: the label of its lane is {ours.label}")
    return problems


def check_stacks(told: Sequence[Mapping], capacity: int) -> Check:
    """`told`: what the page shows of each document. `capacity`: of all nodes, which does not change."""
    found = [problem for each in told for stack in each["stacks"] for problem in _stack_problems(stack, capacity)]
    bands = [band for each in told for stack in each["stacks"] for band in stack["bands"]]
    if not any(band["kind"] == "job" and band["gpus"] for band in bands):
        found.append("no job has a band")
    return Check("the bands of the page's stack add up to the capacity at each change", tuple(found[:_MAX_PROBLEMS]))


def _stack_problems(stack: Mapping, capacity: int) -> Iterator[str]:
    total = sum(band["gpus"] for band in stack["bands"])
    if total != capacity or stack["top"] != capacity:
        bands = ", ".join(f"{band['label']} {band['gpus']}" for band in stack["bands"])
        yield f"at {stack['at']}: {bands}: {total} of {capacity} GPUs"
    for band in stack["bands"]:
        if band["gpus"] < 0:
            yield f"at {stack['at']}: {band['label']} has {band['gpus']} GPUs"


def check_nodes(recorded: Sequence[Recorded]) -> Check:
    problems = [
        f"{each.replica}, {name} at {moment.time:.3f}: jobs hold {use.held}, pods use {use.used} of {use.gpus} GPUs"
        for each in recorded
        for moment in each.moments
        for name, use in sorted(moment.nodes.items())
        if not use.held <= use.used <= use.gpus
    ]
    name = "on every node of the timeline, jobs hold no more than pods use, and pods no more than there is"
    return Check(name, tuple(problems[:_MAX_PROBLEMS]))


def check_worlds(recorded: Sequence[Recorded], worlds: Sequence[World], namespace: str) -> Check:
    """The GPUs of each training over time, in both directions."""
    problems = [
        problem
        for each in recorded
        for name in sorted({name for world in worlds for name in world.trainings})
        for problem in _apart(each, f"{namespace}/{name}", _seen(worlds, name))
    ]
    if not any(each.jobs() for each in recorded):
        problems.append("the timeline has no job with GPUs")
    name = f"the timeline has the GPUs of each training as they were seen, within {_MAX_APART_SECONDS:g} s"
    return Check(name, tuple(problems[:_MAX_PROBLEMS]))


def _seen(worlds: Sequence[World], name: str) -> list[tuple[float, int]]:
    trainings = [(world.time, world.training(name)) for world in worlds]
    return [(time, training.gpus_held if training else 0) for time, training in trainings]


def _apart(recorded: Recorded, job: str, seen: Sequence[tuple[float, int]]) -> Iterator[str]:
    pieces = recorded.pieces(job)
    for time, gpus in seen:
        begin, end = time - _MAX_APART_SECONDS, time + _MAX_APART_SECONDS
        near = between(pieces, begin, end)
        if recorded.begin <= begin and end <= recorded.end and not _on_the_way(gpus, near):
            yield f"{job} had {gpus} GPUs at {time:.3f}; {recorded.replica} has {near}"
    for piece in pieces:
        begin, end = piece.begin - _MAX_APART_SECONDS, piece.end + _MAX_APART_SECONDS
        near = [gpus for time, gpus in seen if begin <= time <= end]
        looked = any(piece.begin <= time <= piece.end for time, _ in seen)  # the API server may have been slow
        if piece.seconds >= _SEEN_SECONDS and looked and not _on_the_way(piece.gpus, near):
            yield f"{recorded.replica} has {piece.gpus} GPUs of {job} at {piece.begin:.3f}; {near} were seen"


def _on_the_way(gpus: int, near: Sequence[int]) -> bool:
    """Pods come and go one by one: between two sizes, each observer sees others of those that lie between."""
    return min(near) <= gpus <= max(near)


def check_replicas(recorded: Sequence[Recorded]) -> Check:
    """Two replicas tell the same history of the time that both recorded: the same steady sizes of each job in the same
    order, and at each time sizes that lie between those of the other."""
    problems = []
    pairs = [(a, b) for a in recorded for b in recorded if a.replica != b.replica and _overlap(a, b) > 0]
    for a, b in pairs:
        begin, end = max(a.begin, b.begin), min(a.end, b.end)
        for job in sorted(a.jobs() | b.jobs()):
            one, other = (list(clipped(each.pieces(job), begin, end)) for each in (a, b))
            steady = [piece for piece in one if piece.seconds >= _STEADY_SECONDS]
            lasting = [piece for piece in one if piece.seconds >= _SEEN_SECONDS]
            if not _in_order(steady, other) or not all(_is_near(piece, other) for piece in lasting):
                problems.append(f"{job}: {a.replica} has {_sizes(lasting)}, {b.replica} has {_sizes(other)}")
    if not pairs:
        problems.append("no two replicas recorded the same time")
    return Check("the replicas tell the same history of each job", tuple(problems[:_MAX_PROBLEMS]))


def check_outlived(recorded: Sequence[Recorded], kills: Mapping[str, float]) -> Check:
    """`kills`: when replicas were killed. Another replica, asked later, still has the time before each kill."""
    problems = []
    for replica, killed in kills.items():
        before = [each for each in recorded if each.replica == replica and each.end <= killed]
        after = [each for each in recorded if each.replica != replica and each.begin < killed < each.end]
        if not before or not any(_overlap(a, b) > _SEEN_SECONDS for a in before for b in after):
            problems.append(f"nobody else has what {replica} recorded until {killed:.3f}")
    if not kills:
        problems.append("no replica was killed")
    return Check("another replica has the history of one that was killed", tuple(problems))


def _overlap(a: Recorded, b: Recorded) -> float:
    return min(a.end, b.end) - max(a.begin, b.begin)


def _in_order(pieces: Sequence[Piece], among: Sequence[Piece]) -> bool:
    """Whether the pieces are also among the others, in their order and at about their time."""
    rest = iter(among)
    return all(
        any(
            other.gpus == piece.gpus
            and other.begin <= piece.end + _MAX_APART_SECONDS
            and other.end >= piece.begin - _MAX_APART_SECONDS
            for other in rest
        )
        for piece in pieces
    )


def _is_near(piece: Piece, others: Sequence[Piece]) -> bool:
    near = between(others, piece.begin - _MAX_APART_SECONDS, piece.end + _MAX_APART_SECONDS)
    return _on_the_way(piece.gpus, near)


def _sizes(pieces: Sequence[Piece]) -> str:
    return ", ".join(f"{piece.gpus} from {piece.begin:.1f}" for piece in pieces)
