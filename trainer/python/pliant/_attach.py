"""pliant.attach for every framework: finds the model's framework, and the settings that it has."""

import difflib
import inspect
import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ._foreign import REMEDIES
from ._settings import KerasSettings, Settings, TorchSettings, own_settings
from ._signature import with_settings
from .errors import InvalidProgram
from .process import Guard

if TYPE_CHECKING:
    from ._loop import Elastic


def is_keras(model: Any) -> bool:
    """Checked before torch: with the PyTorch backend a Keras model is also a torch.nn.Module.
    Raises InvalidProgram for a model of Keras 2."""
    keras = sys.modules.get("keras")
    if _is_of_keras_2(model, str(getattr(keras, "__version__", ""))):
        with Guard().beginning():
            raise InvalidProgram(
                "the model is of Keras 2 (tf_keras, or tf.keras of a TensorFlow before 2.16): "
                "Keras 3 is needed. tf.keras is Keras 3 from TensorFlow 2.16 on, unless "
                "TF_USE_LEGACY_KERAS is set"
            )
    return keras is not None and isinstance(model, keras.Model)


def _is_of_keras_2(model: Any, keras_version: str) -> bool:
    """Decided without importing Keras: only Keras 2 may be installed."""
    modules = [kind.__module__ for kind in type(model).__mro__ if kind.__name__ == "Model"]
    old: tuple[str, ...] = ("tf_keras.", "tensorflow.python.keras.")
    if keras_version.startswith("2."):
        old += ("keras.",)
    return any(f"{module}.".startswith(old) for module in modules)


@with_settings(TorchSettings, KerasSettings)
def attach(model: Any, optimizer: Any, train_data: Any, **settings: Any) -> "Elastic[Any]":
    """Makes the training of a torch.nn.Module or a keras.Model elastic.

    In a pod of an ElasticTrainingJob the job decides who trains. Elsewhere this process trains
    alone, with the same result, writes checkpoints, and resumes from the newest one it finds.
    Iterate `steps()` of the returned object. Raises InvalidProgram if an argument is wrong.

    Arguments:
        model: the model, complete (all parameters and buffers exist) and on one device.
        optimizer: PyTorch: any optimizer whose step needs only gradients, so not LBFGS. Keras: an
            optimizer or its name.
        train_data: a map-style dataset (`__len__`, `__getitem__`), or one with `__len__` and
            `stream(shard, start)` (see StreamShard); with Keras also arrays (inputs, truth).
    """
    _check_names(settings)
    if is_keras(model):
        _refuse_settings_of(TorchSettings, settings, "a Keras model: leave it out")
        from ._keras.elastic import attach as attach_keras

        return attach_keras(model, optimizer, train_data, **settings)
    _refuse_settings_of(
        KerasSettings,
        settings,
        "not one: with a PyTorch model the loop computes the loss and calls step.backward(loss)",
    )
    from ._torch.elastic import attach as attach_torch

    return attach_torch(model, optimizer, train_data, **settings)


def _check_names(settings: Mapping[str, Any]) -> None:
    """Raises InvalidProgram: the job would be tried again after a TypeError."""
    known = inspect.signature(attach).parameters
    with Guard().beginning():
        for name in settings:
            if name not in known:
                raise InvalidProgram(f"pliant.attach has no argument {name!r}{_hint(name, known)}")


def _hint(name: str, known: Iterable[str]) -> str:
    if name in REMEDIES:
        return f": {REMEDIES[name]}"
    close = difflib.get_close_matches(name, known, n=2)
    return f": did you mean {' or '.join(map(repr, close))}?" if close else ""


def _refuse_settings_of(kind: type[Settings], settings: dict[str, Any], this: str) -> None:
    """Removes the settings that only the other framework has. They may have their defaults."""
    for name in own_settings(kind):
        default = getattr(kind, name)
        value = settings.pop(name, default)
        if type(value) is not type(default) or value != default:
            with Guard().beginning():
                raise InvalidProgram(
                    f"{name} is for {kind.framework} models, and this is {this}"
                )
