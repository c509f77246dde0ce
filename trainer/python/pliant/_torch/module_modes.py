"""Whether modules are in training mode or in evaluation mode. It is part of a training's state: a
program that leaves a module in evaluation mode trains it so on every learner."""

import contextlib
from collections.abc import Iterator

import torch


class ModuleModes:
    """The modes of a model and of registered modules."""

    def __init__(self) -> None:
        self._roots: list[torch.nn.Module] = []
        self._modules: dict[str, torch.nn.Module] = {}
        self._seen: list[bool] = []  # the modes of `_plain`
        self._plain: dict[str, bool] = {}

    def add(self, name: str, root: torch.nn.Module) -> None:
        self._roots.append(root)
        for inside, module in root.named_modules(prefix=name):
            self._modules[inside] = module
        self._seen = []

    def plain(self) -> dict[str, bool]:
        """The modes, by name, of modules whose mode is not that of the module around them."""
        modes = [module.training for module in self._modules.values()]
        if modes != self._seen:
            self._seen, self._plain = modes, {}
            by_name = dict(zip(self._modules, modes, strict=True))
            for name, mode in by_name.items():
                if by_name.get(name.rpartition(".")[0]) != mode:
                    self._plain[name] = mode
        return self._plain

    def restore(self, plain: dict[str, bool]) -> None:
        modes: dict[str, bool] = {}
        for name, module in self._modules.items():
            around = modes.get(name.rpartition(".")[0], True)
            modes[name] = module.training = plain.get(name, around)

    @contextlib.contextmanager
    def evaluating(self) -> Iterator[None]:
        """Puts all modules into evaluation mode, and each back into its own afterwards: a program
        may keep some (a frozen BatchNorm) in evaluation mode."""
        before = [module.training for module in self._modules.values()]
        for root in self._roots:
            root.eval()
        try:
            yield
        finally:
            for module, mode in zip(self._modules.values(), before, strict=True):
                module.training = mode
