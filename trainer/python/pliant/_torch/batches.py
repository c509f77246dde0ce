"""Makes the batch of a shard from sample indices."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.utils.data import TensorDataset, default_collate

from .._data.wrappers import remedy_for
from .._learner import Plan
from .._seeds import mix
from .._settings import Collate
from .._streams import Streams, is_stream
from ..errors import InvalidProgram
from .numerics import seed_all


def size_of(data: Any, what: str) -> int:
    """The number of samples. Raises InvalidProgram, with the remedy, if the data have none."""
    if isinstance(data, str | bytes | os.PathLike):
        raise InvalidProgram(
            f"the {what} data are a path ({data!r}): open it as a data set, whose samples have "
            "numbers (__len__ and __getitem__)"
        )
    if isinstance(data, Mapping):
        of_tensors = all(isinstance(each, torch.Tensor) for each in data.values())
        raise InvalidProgram(
            f"the {what} data are a dict with {', '.join(map(repr, list(data)[:5]))}: give "
            + (
                "torch.utils.data.TensorDataset(*data.values())"
                if of_tensors
                else "one of its data sets"
            )
        )
    if isinstance(data, tuple | list) and data and all(hasattr(each, "shape") for each in data):
        raise InvalidProgram(
            f"the {what} data are {len(data)} tensors or arrays, of which each would be a sample: "
            "give torch.utils.data.TensorDataset(*tensors)"
        )
    if not hasattr(data, "__len__"):
        raise InvalidProgram(
            f"the {what} data ({type(data).__name__}) have no __len__: "
            + (
                remedy_for(data)
                or "samples are assigned to learners by their index, so a map-style dataset is "
                "needed (__len__ and __getitem__), or one with __len__ and stream(shard, start)"
            )
        )
    iterable = isinstance(data, torch.utils.data.IterableDataset)
    if not is_stream(data) and (iterable or not hasattr(data, "__getitem__")):
        raise InvalidProgram(
            f"the {what} data ({type(data).__name__}) have no __getitem__, nor stream(shard, start)"
        )
    size = len(data)
    if size < 1:
        raise InvalidProgram(f"the {what} data are empty")
    return size


class Batches:
    """Makes batches of one dataset. Random numbers of a sample (augmentation) depend on the job's
    seed, the epoch and the sample, not on the process that reads it."""

    def __init__(self, data: Any, size: int, collate: Collate | None, plan: Plan) -> None:
        self._data = data
        self._collate = collate or default_collate
        self._seed = plan.seed
        self._streams = Streams(data, size, plan, seed_all) if is_stream(data) else None
        # A TensorDataset draws no random numbers, and returns many samples at once. A subclass may
        # differ.
        own = self._collate is not default_collate
        self._tensors = type(data) is TensorDataset and not own

    @property
    def in_order(self) -> bool:
        return self._streams is not None

    @property
    def sources(self) -> dict[str, Any]:
        return {"data": self._data, "collate": self._collate}

    def load(self, samples: Sequence[int], epoch: int) -> Any:
        if self._streams is not None:
            return self._collate(self._streams.read(samples, epoch))
        if self._tensors:
            index = torch.tensor(samples)
            return [tensor[index] for tensor in self._data.tensors]
        return self._collate([self._sample(index, epoch) for index in samples])

    def _sample(self, index: int, epoch: int) -> Any:
        seed_all(mix(self._seed, epoch, index))
        return self._data[index]


def to_device(batch: Any, device: torch.device) -> Any:
    """The batch with all its tensors on the device."""
    if isinstance(batch, torch.Tensor):
        return batch.to(device)
    if isinstance(batch, dict):
        return {key: to_device(value, device) for key, value in batch.items()}
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(to_device(value, device) for value in batch))
    if isinstance(batch, list | tuple):
        return type(batch)(to_device(value, device) for value in batch)
    return batch
