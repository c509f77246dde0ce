"""Reads from the file of a job how its batches are cut into logical shards."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ._checks import Check, one_of, power_of_two, whole
from .errors import InvalidProgram

_KIND = "ElasticTrainingJob"


@dataclass(frozen=True)
class JobShards:
    name: str  # NAMESPACE/NAME, or NAME
    batch: int  # samples of a global batch
    ranks_of_learner: int
    min_learners: int
    max_learners: int
    shards: int
    bitwise: bool  # otherwise a learner computes its share at once, and shards cost nothing

    @property
    def max_ranks(self) -> int:
        return self.max_learners * self.ranks_of_learner


def default_shards(batch: int, max_ranks: int) -> int:
    """As base/default_shards.h: a test compares them."""
    divides = batch & -batch
    return min(divides, 1 << (2 * max_ranks - 1).bit_length())


def read(text: str) -> JobShards:
    """The only job of a manifest in YAML or JSON. Raises InvalidProgram, with the field named."""
    try:
        found = [each for each in _objects(text) if each.get("kind") == _KIND]
    except RecursionError:
        raise InvalidProgram("is nested too deeply: give the manifest of a job") from None
    if len(found) != 1:
        raise InvalidProgram(
            f"has {len(found)} objects of kind {_KIND}: give a file with the one job to look at"
        )
    job = found[0]
    spec = _part(job, "spec")
    training, elastic = _part(spec, "training", "spec."), _part(spec, "elastic", "spec.")
    at = "spec.training."
    batch = _value(training, at, "globalBatchSize", whole(1, 1 << 24))
    mode = one_of("Bitwise", "Statistical")
    bitwise = _value(training, at, "reproducibility", mode, "Bitwise") == "Bitwise"
    at = "spec.elastic."
    ranks = _value(elastic, at, "gpusPerLearner", whole(1, 16), 1)
    most = _value(elastic, at, "maxLearners", whole(1, 1024))
    least = _value(elastic, at, "minLearners", whole(1, 1024), 1)
    if least > most:
        raise InvalidProgram(
            f"spec.elastic.minLearners is {least}: it must be at most maxLearners, which is {most}"
        )
    # An admitted job keeps the number that it was admitted with, whatever the default is now.
    status = _part(_part(job, "status", optional=True), "training", "status.", optional=True)
    shards = _value(status, "status.training.", "logicalShards", power_of_two(4096), 0)
    if not shards:
        default = default_shards(batch, most * ranks)
        shards = _value(training, "spec.training.", "logicalShards", power_of_two(4096), default)
    if batch % shards:
        raise InvalidProgram(
            f"spec.training.globalBatchSize is {batch}: it must be divisible by logicalShards, "
            f"which is {shards}"
        )
    return JobShards(_name(job), batch, ranks, least, most, shards, bitwise)


def _objects(text: str) -> Iterator[Mapping[str, Any]]:
    for each in _documents(text):
        if isinstance(each, Mapping):
            items = each.get("items")
            objects = items if each.get("kind") == "List" and isinstance(items, list) else [each]
            yield from (item for item in objects if isinstance(item, Mapping))


def _documents(text: str) -> list[Any]:
    try:
        return [json.loads(text)]
    except ValueError:
        pass
    try:
        import yaml
    except ImportError:
        raise InvalidProgram(
            "is no JSON, and PyYAML is not installed: pip install pyyaml, or make JSON of it with "
            "kubectl create --dry-run=client -o json -f FILE"
        ) from None
    try:
        return list(yaml.safe_load_all(text))
    except yaml.YAMLError as error:
        raise InvalidProgram(f"is no YAML: {' '.join(str(error).split())}") from None


def _part(
    of: Mapping[str, Any], name: str, at: str = "", *, optional: bool = False
) -> Mapping[str, Any]:
    part = of.get(name)
    if part is None and optional:
        return {}
    if not isinstance(part, Mapping):
        shown = "missing" if part is None else f"{part!r:.60}"
        raise InvalidProgram(f"{at}{name} is {shown}: it must be an object with fields of the job")
    return part


def _value(of: Mapping[str, Any], at: str, name: str, check: Check, default: object = None) -> Any:
    if of.get(name) is None and default is not None:
        return default
    return check(at + name, of.get(name))


def _name(job: Mapping[str, Any]) -> str:
    meta = _part(job, "metadata", optional=True)
    return "/".join(str(meta[each]) for each in ("namespace", "name") if meta.get(each)) or "job"
