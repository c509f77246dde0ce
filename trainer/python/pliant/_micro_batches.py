"""How many logical shards a batch has, from the two ways to say it."""

from ._learner import Job
from ._settings import Settings
from .errors import InvalidProgram

_DEFAULT_BATCH = 256  # as in the library


def logical_shards(settings: Settings, job: Job) -> int | None:
    """None: the program does not say. Raises InvalidProgram if it contradicts itself or the job."""
    micro = settings.micro_batch_size
    if micro is None:
        return settings.logical_shards
    batch = settings.batch_size or job.global_batch_size or _DEFAULT_BATCH
    shards, rest = divmod(batch, micro)
    if rest or shards & (shards - 1) or shards == 0:
        raise InvalidProgram(
            f"micro_batch_size is {micro}, but a batch of {batch} samples is computed in a power of "
            f"two of micro-batches: {_nearest(batch, micro)}"
        )
    for whose, number in (
        ("logical_shards of pliant.attach", settings.logical_shards),
        ("spec.training.logicalShards of the job", job.logical_shards),
    ):
        if number is not None and number != shards:
            raise InvalidProgram(
                f"micro_batch_size is {micro}, so a batch of {batch} samples has {shards} logical "
                f"shards, but {whose} is {number}: remove one of them, or make them equal"
            )
    return shards


def _nearest(batch: int, micro: int) -> str:
    """The sizes that are possible around this one."""
    possible = []
    size = batch
    while True:
        possible.append(size)
        if size % 2:
            break
        size //= 2
    smaller = [size for size in possible if size < micro]
    larger = [size for size in possible if size > micro]
    if not smaller and not larger:
        return f"only {batch} is possible"
    near = [*smaller[:1], *larger[-1:]]
    return f"{' or '.join(map(str, near))} is possible"
