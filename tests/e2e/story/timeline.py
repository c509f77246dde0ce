"""A replica's record of who held which GPUs, as the operator's timeline tells it. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby


@dataclass(frozen=True)
class NodeUse:
    """GPUs of one node."""

    held: int  # by jobs
    used: int  # by pods
    gpus: int


@dataclass(frozen=True)
class Moment:
    time: float  # Unix seconds
    held: Mapping[str, int]  # GPUs by job
    nodes: Mapping[str, NodeUse]


@dataclass(frozen=True)
class Piece:
    """A time in which a job held the same number of GPUs."""

    begin: float  # Unix seconds
    end: float
    gpus: int

    @property
    def seconds(self) -> float:
        return self.end - self.begin


@dataclass(frozen=True)
class Recorded:
    """The moments at which the replica recorded a change; the first one is the beginning."""

    replica: str  # another one after a restart
    moments: tuple[Moment, ...]
    end: float

    @property
    def begin(self) -> float:
        return self.moments[0].time

    @staticmethod
    def parse(document: Mapping) -> "Recorded":
        held: dict[tuple[str, str], int] = {}  # by job and node
        nodes: dict[str, dict[str, int]] = {}
        for job, by_node in document["frame"].get("held", {}).items():
            for node, amounts in by_node.items():
                held[job, node] = amounts.get("gpus", 0)
        for node, values in document["frame"].get("node", {}).items():
            nodes[node] = dict(values)
        moments = [_moment(document["from"], held, nodes)]
        for at, changes in groupby(document["changes"], key=lambda change: change["at"]):
            for change in changes:
                _apply(change, held, nodes)
            moments.append(_moment(at, held, nodes))
        return Recorded(document["replica"], tuple(moments), document["now"] / 1000)

    def pieces(self, job: str) -> list[Piece]:
        """Without a gap from the beginning to the end."""
        found: list[Piece] = []
        ends = [each.time for each in self.moments[1:]] + [self.end]
        for moment, end in zip(self.moments, ends, strict=True):
            gpus = moment.held.get(job, 0)
            if found and found[-1].gpus == gpus:
                found[-1] = Piece(found[-1].begin, end, gpus)
            else:
                found.append(Piece(moment.time, end, gpus))
        return found

    def jobs(self) -> set[str]:
        return {job for moment in self.moments for job in moment.held}


def _apply(change: Mapping, held: dict[tuple[str, str], int], nodes: dict[str, dict[str, int]]) -> None:
    values = change["set"]
    if "held" in change:
        held[change["held"], change["node"]] = (values or {}).get("gpus") or 0
    elif "node" in change and values is None:
        nodes.pop(change["node"], None)
    elif "node" in change:
        nodes.setdefault(change["node"], {}).update({name: value or 0 for name, value in values.items() if name != "pool"})


def _moment(milliseconds: int, held: Mapping[tuple[str, str], int], nodes: Mapping[str, Mapping[str, int]]) -> Moment:
    by_job: dict[str, int] = {}
    by_node: dict[str, int] = {}
    for (job, node), gpus in held.items():
        by_job[job] = by_job.get(job, 0) + gpus
        by_node[node] = by_node.get(node, 0) + gpus
    use = {
        name: NodeUse(
            by_node.get(name, 0), nodes.get(name, {}).get("used", 0), nodes.get(name, {}).get("gpus", 0)
        )
        for name in {*nodes, *(name for name, gpus in by_node.items() if gpus)}
    }
    return Moment(milliseconds / 1000, {job: gpus for job, gpus in by_job.items() if gpus}, use)


def between(pieces: Sequence[Piece], begin: float, end: float) -> list[int]:
    """The sizes within this time, in their order."""
    return [piece.gpus for piece in pieces if piece.begin <= end and piece.end >= begin]


def clipped(pieces: Sequence[Piece], begin: float, end: float) -> Iterator[Piece]:
    for piece in pieces:
        if piece.begin < end and piece.end > begin:
            yield Piece(max(piece.begin, begin), min(piece.end, end), piece.gpus)
