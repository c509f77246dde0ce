"""Makes the batch of a shard from sample indices, in numpy."""

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from .._data.wrappers import remedy_for
from .._learner import Plan
from .._seeds import mix, seed_python
from .._settings import Collate
from .._streams import Streams, StreamShard, is_stream
from ..errors import InvalidProgram


def _arrays_of(data: Any) -> list[np.ndarray] | None:
    """The arrays that the data consist of, such as (images, labels), also nested. None: the data
    are not arrays."""
    if not isinstance(data, tuple | list | dict):
        return None
    leaves = keras.tree.flatten(data)
    arrays = [leaf for leaf in leaves if hasattr(leaf, "shape") and len(leaf.shape) > 0]
    return arrays if arrays and len(arrays) == len(leaves) else None


def _is_image_iterator(data: Any) -> bool:
    """Whether this is an iterator such as ImageDataGenerator.flow returns. It yields batches, but
    its class has a method that makes samples from their indices."""
    return hasattr(data, "n") and hasattr(data, "_get_batches_of_transformed_samples")


def size_of(data: Any, what: str) -> int:
    """The number of samples. Raises InvalidProgram, with the remedy, if the data have none."""
    arrays = _arrays_of(data)
    if arrays is not None:
        sizes = {int(array.shape[0]) for array in arrays}
        if len(sizes) != 1:
            raise InvalidProgram(f"the arrays of the {what} data differ in length: {sorted(sizes)}")
        size = sizes.pop()
    elif _is_image_iterator(data):
        size = int(data.n)
    elif isinstance(data, keras.utils.PyDataset):
        raise InvalidProgram(
            f"the {what} data ({type(data).__name__}) are a PyDataset (Sequence), which makes "
            "batches, but the job decides which samples form a batch: give the arrays it is made "
            "of, (inputs, truth), or an object of a plain class whose __getitem__ returns a sample"
        )
    elif not hasattr(data, "__len__") or not (hasattr(data, "__getitem__") or is_stream(data)):
        raise InvalidProgram(
            f"the {what} data ({type(data).__name__}) have no __len__ and __getitem__: "
            + (
                remedy_for(data)
                or "samples are assigned to learners by their index, so arrays or a map-style "
                "dataset are needed, or a dataset with __len__ and stream(shard, start)"
            )
        )
    else:
        size = len(data)
    if size < 1:
        raise InvalidProgram(f"the {what} data are empty")
    return size


class Batches:
    """Makes batches of one dataset: arrays, a dataset with __getitem__, a stream or an image
    iterator. Random numbers that a sample draws from numpy's and Python's generators depend on the
    job's seed, the epoch and the sample, not on the process that reads it."""

    def __init__(self, data: Any, size: int, collate: Collate | None) -> None:
        self.size = size
        self._data = data
        self._arrays = _arrays_of(data) is not None
        self._image_iterator = _is_image_iterator(data)
        self._collate = collate or _stack
        self._seed = 0
        self._streams: Streams | None = None

    @property
    def in_order(self) -> bool:
        return is_stream(self._data)

    def follow(self, plan: Plan) -> None:
        self._seed = plan.seed
        if self.in_order:
            self._streams = Streams(self._data, self.size, plan, seed_python)

    def one(self) -> Any:
        """A batch with one sample, before a plan exists."""
        if self.in_order:
            first = self._data.stream(StreamShard(index=0, count=1, epoch=0, seed=0), 0)
            return self._collate([next(iter(first))])
        return self.load([0], 0)

    @property
    def sources(self) -> dict[str, Any]:
        return {"data": self._data, "collate": self._collate}

    def load(self, samples: Sequence[int], epoch: int) -> Any:
        if self._streams is not None:
            return self._collate(self._streams.read(samples, epoch))
        if self._arrays:
            index = np.asarray(samples)
            return keras.tree.map_structure(lambda array: np.asarray(array[index]), self._data)
        return self._collate([self._sample(index, epoch) for index in samples])

    def _sample(self, index: int, epoch: int) -> Any:
        seed_python(mix(self._seed, epoch, index))
        if self._image_iterator:
            batch = self._data._get_batches_of_transformed_samples(np.array([index]))
            return keras.tree.map_structure(lambda array: array[0], batch)
        return self._data[index]


def _stack(samples: list[Any]) -> Any:
    return keras.tree.map_structure(lambda *values: np.stack(values), *samples)
