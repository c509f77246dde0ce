"""The signature and the documentation of pliant.attach, made of the classes of its settings."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, overload

from ._settings import Settings, own_settings

if TYPE_CHECKING:
    import keras
    import torch

    from ._keras.elastic import KerasElastic
    from ._torch.elastic import TorchElastic

_OfTorch = ParamSpec("_OfTorch")
_OfKeras = ParamSpec("_OfKeras")


class Attach(Protocol[_OfTorch, _OfKeras]):
    """For editors and type checkers: the settings are the arguments of the settings' classes."""

    @overload
    def __call__(
        self,
        model: torch.nn.Module,
        optimizer: torch.optim.Optimizer,
        train_data: Any,
        *_: _OfTorch.args,
        **settings: _OfTorch.kwargs,
    ) -> TorchElastic: ...
    @overload
    def __call__(
        self,
        model: keras.Model,
        optimizer: keras.optimizers.Optimizer | str,
        train_data: Any,
        *_: _OfKeras.args,
        **settings: _OfKeras.kwargs,
    ) -> KerasElastic: ...


def with_settings(
    of_torch: Callable[_OfTorch, Settings], of_keras: Callable[_OfKeras, Settings]
) -> Callable[[Callable[..., Any]], Attach[_OfTorch, _OfKeras]]:
    """Replaces the `**settings` of a function by those of both classes, in its signature and in its
    docstring."""
    kinds: Any = (Settings, of_torch, of_keras)

    def described(function: Any) -> Any:
        plain = inspect.signature(function)
        parameters = [each for each in plain.parameters.values() if each.kind != each.VAR_KEYWORD]
        lines = [inspect.cleandoc(function.__doc__ or "")]
        for kind in kinds:
            of_kind = inspect.signature(kind).parameters
            only = f"{kind.framework} only: " if kind.framework else ""
            for name, (shown, _, meaning) in own_settings(kind).items():
                parameters.append(of_kind[name].replace(annotation=shown))
                line = f"    {name}: {only}{meaning}"
                lines.append(textwrap.fill(line, 96, subsequent_indent=" " * 8))
        function.__signature__ = plain.replace(parameters=parameters)
        function.__doc__ = "\n".join(lines)
        return function

    return described
