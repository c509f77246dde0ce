"""The job's parameters for scripts that use pth_parameter_mgr: data, batch, epochs, optimizer,
learning rate. They come from one JSON file and from environment variables, which take precedence.
docs/fabric-model.md has the table.

They are read once per process: a later change of a config map has no effect.
"""

import functools
import json
import math
import os
import re
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISREG
from typing import Any

from ._accelerator import global_batch_size, logical_shards, wrong
from ._say import say

_FILE = "PLIANT_PARAMETERS"
_PREFIX = "PLIANT_PARAMETER_"
_MAX_FILE_BYTES = 1 << 20
_MAX_COUNT = 1 << 24

# The supported optimizers and the defaults of their settings. torch's other optimizers need more
# than gradients (LBFGS), or do not use these keys.
_OPTIMIZERS: dict[str, dict[str, float]] = {
    "SGD": {"lr": 0.01, "momentum": 0.9, "weight_decay": 0.0},
    "Adam": {"lr": 0.001, "weight_decay": 0.0},
    "AdamW": {"lr": 0.001, "weight_decay": 0.01},
    "RMSprop": {"lr": 0.01, "momentum": 0.0, "weight_decay": 0.0},
    "Adagrad": {"lr": 0.01, "weight_decay": 0.0},
    "Adadelta": {"lr": 1.0, "weight_decay": 0.0},
    "Adamax": {"lr": 0.002, "weight_decay": 0.0},
    "NAdam": {"lr": 0.002, "weight_decay": 0.0},
    "RAdam": {"lr": 0.001, "weight_decay": 0.0},
}

# Learning rate policies and the keys that each uses.
_POLICIES: dict[str, tuple[str, ...]] = {
    "fixed": (),
    "step": ("stepSize", "gamma"),
    "multistep": ("milestones", "gamma"),
    "exponential": ("gamma",),
    "cosine": (),
    "poly": ("power",),
    "inverse": ("gamma", "power"),
    "plateau": ("gamma", "patience"),
}


class _Unfit(Exception):
    """A value is not accepted; the text says what it must be instead."""


@dataclass(frozen=True)
class _Given:
    """A value and its source."""

    value: Any
    where: str  # "epochs of /etc/parameters.json", "PLIANT_PARAMETER_EPOCHS"


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value or "\0" in value:
        raise _Unfit("a text that is not empty")
    return value


def _whole(least: int, most: int) -> Callable[[Any], int]:
    def parse(value: Any) -> int:
        if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
            return value
        raise _Unfit(f"a whole number from {least} to {most}")

    return parse


def _number(accepted: str, fits: Callable[[float], bool]) -> Callable[[Any], float]:
    def parse(value: Any) -> float:
        if isinstance(value, int | float) and not isinstance(value, bool):
            try:
                number = float(value)
            except OverflowError:  # an integer of hundreds of digits
                number = math.inf
            if math.isfinite(number) and fits(number):
                return number
        raise _Unfit(accepted)

    return parse


def _milestones(value: Any) -> list[int]:
    whole = _whole(1, _MAX_COUNT)
    try:
        epochs = [whole(each) for each in value] if isinstance(value, list) else []
    except _Unfit:
        epochs = []
    if not epochs or epochs != sorted(set(epochs)):
        raise _Unfit("a list of epochs, each later than the one before, as [30, 60]")
    return epochs


def _optimizer(value: Any) -> str:
    for name in _OPTIMIZERS:
        if isinstance(value, str) and value.lower() == name.lower():
            return name
    names = ", ".join(_OPTIMIZERS)
    if isinstance(value, str) and value.lower() == "lbfgs":
        raise _Unfit(
            f"one of {names}. A step of LBFGS computes the loss as often as it needs it, and a "
            "step that several learners share has one gradient"
        )
    raise _Unfit(f"one of {names}")


def _policy(value: Any) -> str:
    if not isinstance(value, str) or value.lower() not in _POLICIES:
        raise _Unfit(f"one of {', '.join(_POLICIES)}")
    return value.lower()


_positive = _number("a number greater than 0", lambda number: number > 0)
_not_negative = _number("a number of at least 0", lambda number: number >= 0)
_below_one = _number("a number of at least 0 and below 1", lambda number: 0 <= number < 1)
_share = _number("a number greater than 0 and below 1", lambda number: 0 < number < 1)

_KEYS: dict[str, Callable[[Any], Any]] = {
    "trainData": _text,
    "testData": _text,
    "validationData": _text,
    "epochs": _whole(1, _MAX_COUNT),
    "trainBatchSize": _whole(1, _MAX_COUNT),
    "testBatchSize": _whole(1, _MAX_COUNT),
    "optimizer": _optimizer,
    "learningRate": _positive,
    "momentum": _below_one,
    "weightDecay": _not_negative,
    "learningRatePolicy": _policy,
    "stepSize": _whole(1, _MAX_COUNT),
    "milestones": _milestones,
    "gamma": _share,
    "power": _positive,
    "patience": _whole(0, _MAX_COUNT),
}
_TEXTS = ("trainData", "testData", "validationData", "optimizer", "learningRatePolicy")


def _variable(key: str) -> str:
    """trainBatchSize: PLIANT_PARAMETER_TRAIN_BATCH_SIZE."""
    return _PREFIX + re.sub(r"(?=[A-Z])", "_", key).upper()


# ---- Reading ----


@functools.cache
def _given() -> Mapping[str, _Given]:
    """All given parameters, each checked, also those that the script does not ask for."""
    found = {**_of_file(), **_of_environment()}
    given = {key: _checked(key, each) for key, each in found.items()}
    _check_use(given)
    return given


def _of_environment() -> dict[str, _Given]:
    keys = {_variable(key): key for key in _KEYS}
    given = {}
    for name, text in os.environ.items():
        if not name.startswith(_PREFIX):
            continue
        if name not in keys:
            raise wrong(f"{name} is not known: there are {', '.join(keys)}")
        key = keys[name]
        given[key] = _Given(text if key in _TEXTS else _value_of(key, text), name)
    return given


def _value_of(key: str, text: str) -> Any:
    """The number or list in a variable's text; the text itself if it is neither."""
    if key == "milestones":
        return [_value_of("", each) for each in text.split(",")]
    if re.fullmatch(r"[+-]?[0-9]{1,20}", text):
        return int(text)
    number = re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", text)
    return float(text) if number else text


def _of_file() -> dict[str, _Given]:
    path = os.environ.get(_FILE)
    if not path:
        return {}
    content = _object_in(path)
    unknown = [key for key in content if key not in _KEYS]
    if unknown:
        raise wrong(
            f"{_FILE}: {path} has the key {_shown(unknown[0])}, which is not known: there are "
            f"{', '.join(_KEYS)}"
        )
    return {key: _Given(value, f"{key} of {path} ({_FILE})") for key, value in content.items()}


def _object_in(path: str) -> dict[str, Any]:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        names = [name for name, _ in pairs]
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise _Unfit(f"the key {_shown(twice[0])} once")
        return dict(pairs)

    problem = f"{_FILE} is {path}, which must be a file of one JSON object"
    try:
        # Checked first: to read a pipe would block.
        if not S_ISREG(os.stat(path).st_mode):
            raise wrong(f"{problem}: it is not a file")
        with open(path, "rb") as file:
            data = file.read(_MAX_FILE_BYTES + 1)
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL
        raise wrong(f"{problem}: {error}") from None
    if len(data) > _MAX_FILE_BYTES:
        raise wrong(f"{problem} of at most {_MAX_FILE_BYTES} bytes: it has more")
    try:
        content = json.loads(data, object_pairs_hook=once)
    except _Unfit as unfit:
        raise wrong(f"{problem}, with {unfit}") from None
    except (ValueError, RecursionError) as error:
        raise wrong(f"{problem}: {error}") from None
    if not isinstance(content, dict):
        raise wrong(f"{problem}: it holds {_shown(content)}")
    return content


def _checked(key: str, given: _Given) -> _Given:
    try:
        return _Given(_KEYS[key](given.value), given.where)
    except _Unfit as unfit:
        raise wrong(f"{given.where} is {_shown(given.value)}: it must be {unfit}") from None


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 100 else text[:100] + "…"


def _check_use(given: Mapping[str, _Given]) -> None:
    """A parameter that would have no effect is an error."""
    optimizer = _chosen(given, "optimizer", "SGD")
    policy = _chosen(given, "learningRatePolicy", "fixed")
    if "momentum" in given and "momentum" not in _OPTIMIZERS[optimizer]:
        users = [name for name, settings in _OPTIMIZERS.items() if "momentum" in settings]
        raise wrong(
            f"{given['momentum'].where} is {_shown(given['momentum'].value)}: the optimizer "
            f"{optimizer} does not use it, only {_listed(users)} do"
        )
    for key in sorted({key for keys in _POLICIES.values() for key in keys} & set(given)):
        if key not in _POLICIES[policy]:
            users = [name for name, keys in _POLICIES.items() if key in keys]
            raise wrong(
                f"{given[key].where} is {_shown(given[key].value)}: the learning rate's policy "
                f"{policy} does not use it, only {_listed(users)} "
                f"{'does' if len(users) == 1 else 'do'}"
            )


def _chosen(given: Mapping[str, _Given], key: str, default: str) -> str:
    return str(given[key].value) if key in given else default


def _listed(names: list[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _value(key: str, default: Any) -> Any:
    given = _given().get(key)
    return default if given is None else given.value


# ---- For pth_parameter_mgr ----


def data(kind: str, as_list: bool) -> str | list[str]:
    """All files below the folder of the data, sorted; without `as_list` the folder itself. `kind`:
    "train", "test" or "validation"."""
    folder = _folder(kind)
    if not as_list:
        return folder
    if not Path(folder).is_dir():
        raise wrong(
            f"there is no folder {folder}, where the {kind} data should be: {kind}Data "
            f"({_variable(kind + 'Data')}) or DATA_DIR names it"
        )
    return sorted(str(Path(at, name)) for at, _, names in os.walk(folder) for name in names)


def _folder(kind: str) -> str:
    given = _given().get(f"{kind}Data")
    if given is not None:
        if not Path(given.value).is_dir():
            raise wrong(f"{given.where} is {_shown(given.value)}: there is no such folder")
        return str(given.value)
    root = os.environ.get("DATA_DIR") or tempfile.gettempdir()
    below = Path(root, kind)
    if below.is_dir():
        return str(below)
    return _folder("test") if kind == "validation" else root


def epochs() -> int:
    return int(_value("epochs", 10))


def train_batch_size() -> int:
    """Samples in the batch of one device. In a job: the samples of a logical shard."""
    given = _given().get("trainBatchSize")
    batch, shards = global_batch_size(), logical_shards()
    if batch is None or shards is None:
        return 32 if given is None else int(given.value)
    if batch % shards:
        raise wrong(
            f"the job's globalBatchSize is {batch} and its logicalShards {shards}: a device's "
            "batch is the one divided by the other, which must be a whole number"
        )
    if given is not None and given.value != batch // shards:
        raise wrong(
            f"{given.where} is {given.value}: in this job it must be {batch // shards}, its "
            f"globalBatchSize of {batch} divided by its logicalShards, {shards}. Leave it out, or "
            "change the job"
        )
    return batch // shards


def test_batch_size() -> int:
    given = _given().get("testBatchSize")
    return train_batch_size() if given is None else int(given.value)


def learning_rate_policy() -> str:
    return str(_value("learningRatePolicy", "fixed"))


def optimizer(model: Any) -> Any:
    """A new optimizer over the parameters that require a gradient."""
    import torch

    if not isinstance(model, torch.nn.Module):
        raise wrong(f"getOptimizer is given a {type(model).__name__}: it must be a torch.nn.Module")
    parameters = [each for each in model.parameters() if each.requires_grad]
    if not parameters:
        raise wrong("getOptimizer: no parameter of the model requires a gradient")
    name = str(_value("optimizer", "SGD"))
    settings = dict(_OPTIMIZERS[name])
    for key, setting in (
        ("learningRate", "lr"),
        ("momentum", "momentum"),
        ("weightDecay", "weight_decay"),
    ):
        if setting in settings:
            settings[setting] = _value(key, settings[setting])
    if name == "Adagrad" and torch.cuda.is_available():
        # Adagrad creates its state at once, on the parameters' device, so the parameters move to
        # the GPU first. FabricModel would move them there later.
        model.cuda()
    return getattr(torch.optim, name)(parameters, **settings)


def learning_rate(optimizer: Any) -> Any:
    """A schedule, to be stepped after each epoch; None: the rate is fixed. Repeated calls for one
    optimizer return the same schedule."""
    import torch

    if not isinstance(optimizer, torch.optim.Optimizer):
        raise wrong(
            f"getLearningRate is given a {type(optimizer).__name__}: it must be a "
            "torch.optim.Optimizer"
        )
    present = schedule_of(optimizer)
    if present is None:
        present = _schedule(optimizer)
        # An attribute of the optimizer: it lives as long as the optimizer.
        optimizer._pliant_schedule = present
    return present


def _schedule(optimizer: Any) -> Any:
    from torch.optim import lr_scheduler as schedules

    policy, length = learning_rate_policy(), epochs()
    gamma = _value("gamma", 0.95 if policy == "exponential" else 0.1)
    power = _value("power", 1.0)
    if policy == "step":
        return schedules.StepLR(optimizer, _value("stepSize", max(1, length // 3)), gamma)
    if policy == "multistep":
        halves = sorted({max(1, length // 2), max(1, 3 * length // 4)})
        return schedules.MultiStepLR(optimizer, _value("milestones", halves), gamma)
    if policy == "exponential":
        return schedules.ExponentialLR(optimizer, gamma)
    if policy == "cosine":
        return schedules.CosineAnnealingLR(optimizer, length)
    if policy == "poly":
        return schedules.PolynomialLR(optimizer, length, power)
    if policy == "inverse":
        return schedules.LambdaLR(optimizer, lambda epoch: (1.0 + gamma * epoch) ** -power)
    if policy == "plateau":
        return schedules.ReduceLROnPlateau(optimizer, factor=gamma, patience=_value("patience", 10))
    return None


# ---- For FabricModel ----


def schedule_of(optimizer: Any) -> Any:
    """The schedule that learning_rate made for the optimizer; None: it made none."""
    return getattr(optimizer, "_pliant_schedule", None)


def tell_of_unused_policy(optimizer: Any) -> None:
    """Warns if the script never called getLearningRate: it trains with the initial rate."""
    if "pth_parameter_mgr" not in sys.modules or schedule_of(optimizer) is not None:
        return
    policy = learning_rate_policy()
    if policy != "fixed":
        say(
            f"the learning rate's policy {policy} is not used: the script does not call "
            "pth_parameter_mgr.getLearningRate(optimizer) for the optimizer that it trains with"
        )
