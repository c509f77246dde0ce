"""Random order in blocks: samples change places only within their block of a stream.

So a stream that is opened at any place needs only the block of this place, whatever was read
before. A shuffle buffer would need all that was read before.
"""

import random
from collections.abc import Iterator

from .._seeds import mix


def part_of(shard: int, count: int, samples: int) -> tuple[int, int]:
    """The first sample and the number of samples of one of `count` streams that divide `samples`
    into contiguous parts. The first streams have one sample more than the others."""
    least, longer = divmod(samples, count)
    return shard * least + min(shard, longer), least + (shard < longer)


def block_size(shuffle: int, count: int) -> int:
    """Samples in a block of each of `count` streams. All blocks of the job have `shuffle` samples
    together, so memory does not depend on the number of streams."""
    return max(1, -(-shuffle // count))


def order_of(block: int, size: int, seed: int) -> list[int]:
    """The samples of a block, by number in the block, in their random order.

    `random` promises the same sequence of `random()` in all versions of Python, but not the same
    `shuffle`.
    """
    draw = random.Random(mix(seed, block)).random
    keys = [draw() for _ in range(size)]
    return sorted(range(size), key=keys.__getitem__)


def numbers(start: int, length: int, size: int, seed: int) -> Iterator[int]:
    """The numbers of a stream's samples from its place `start` on. `size`: samples in a block."""
    if size == 1:
        yield from range(start, length)
        return
    for block in range(start // size, -(-length // size)):
        first = block * size
        order = order_of(block, min(size, length - first), seed)
        for number in order[max(0, start - first) :]:
            yield first + number
