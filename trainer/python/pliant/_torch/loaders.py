"""What a torch.utils.data.DataLoader says of a training: pliant.attach takes it from there."""

import dataclasses
from typing import Any

from torch.utils.data import BatchSampler, DataLoader, RandomSampler, SequentialSampler
from torch.utils.data.distributed import DistributedSampler

from .._say import say
from .._settings import TorchSettings
from ..errors import InvalidProgram


def take_apart(train_data: Any, settings: TorchSettings) -> tuple[Any, bool, TorchSettings]:
    """The data set, whether it is read in order, and the settings, completed by those of the
    loaders. Where both say something, the setting counts; but sizes of batches must agree."""
    changes: dict[str, Any] = {}
    in_order = False
    if isinstance(train_data, DataLoader):
        in_order = _check(train_data, "training")
        changes |= _settings_of(train_data, settings)
        train_data = train_data.dataset
    if isinstance(settings.test_data, DataLoader):
        _check(settings.test_data, "test")
        changes |= {
            "test_data": settings.test_data.dataset,
            "test_collate_fn": settings.test_collate_fn or settings.test_data.collate_fn,
        }
    return train_data, in_order, dataclasses.replace(settings, **changes)


def _check(loader: DataLoader[Any], what: str) -> bool:
    """Raises InvalidProgram if its samples are drawn in a way that learners cannot share. Returns
    whether it reads the data set in order."""
    whole = type(loader.batch_sampler) is BatchSampler
    sampler = loader.sampler if whole else loader.batch_sampler
    if whole and _reads_all(sampler, loader.dataset):
        shuffles = type(sampler) is RandomSampler or getattr(sampler, "shuffle", False)
        return not shuffles
    if loader.batch_size is None and loader.batch_sampler is None:
        raise InvalidProgram(
            f"the DataLoader of the {what} data makes no batches (batch_size=None): give its "
            "dataset, whose samples pliant.attach puts into batches"
        )
    raise InvalidProgram(
        f"the DataLoader of the {what} data has a {type(sampler).__name__}: it draws samples in one "
        "process, but each learner must know its samples by their numbers. Give a dataset that has "
        "the wanted samples, in their proportions, and shuffle=True"
    )


def _reads_all(sampler: Any, dataset: Any) -> bool:
    """Whether it reads each sample of the data set once an epoch, on all processes together."""
    if type(sampler) is DistributedSampler:
        return sampler.dataset is dataset
    if type(sampler) is RandomSampler and (
        sampler.replacement or sampler.num_samples != len(dataset)
    ):
        return False
    plain = type(sampler) in (RandomSampler, SequentialSampler)
    return plain and len(sampler.data_source) == len(dataset)


def _settings_of(loader: DataLoader[Any], settings: TorchSettings) -> dict[str, Any]:
    found: dict[str, Any] = {"collate_fn": settings.collate_fn or loader.collate_fn}
    found["drop_last"] = settings.drop_last or loader.drop_last
    found["num_workers"] = settings.num_workers or loader.num_workers
    if settings.seed is None and loader.generator is not None:
        found["seed"] = loader.generator.initial_seed()
    if loader.worker_init_fn is not None:
        say(
            "worker_init_fn of the DataLoader is not called: random numbers are seeded for each "
            "sample"
        )
    return found | _sizes_of(loader.batch_size, settings)


def _sizes_of(size: int | None, settings: TorchSettings) -> dict[str, Any]:
    """The loader's batches are global batches, or micro-batches if `batch_size` is given."""
    batch, shards = settings.batch_size, settings.logical_shards
    if batch is None:
        return {"batch_size": size}
    micro = settings.micro_batch_size or (batch // shards if shards else None)
    if batch != size and micro not in (None, size):
        raise InvalidProgram(
            f"batches of the DataLoader have {size} samples: that is neither the batch_size of "
            f"{batch} nor that of a micro-batch, {micro}: leave one of them out"
        )
    return {} if batch == size or micro else {"micro_batch_size": size}
