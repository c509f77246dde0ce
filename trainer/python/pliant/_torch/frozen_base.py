"""Frozen parameters that each learner loads itself: the base that adapters are trained on.

They are neither sent to learners that join, nor written to checkpoints, nor compared. A hash of
their content makes sure that all learners, and a checkpoint, have the same ones.
"""

import hashlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch

from .._settings import Frozen
from ..errors import InvalidProgram
from .libraries import is_peft
from .mirror import sums_of_bits


class Base(NamedTuple):
    sha256: str  # of its content: the same on every device
    name: str  # for people, with a revision: "gpt2@607a30d"; "" if the model does not know it


def is_at_home(model: torch.nn.Module, frozen: Frozen | None) -> bool:
    """Whether frozen parameters stay on each learner. None: those of a PEFT model do."""
    return frozen == "at_home" or (frozen is None and is_peft(model))


def _digest(tensor: torch.Tensor) -> bytes:
    if not tensor.numel():
        return b""
    with torch.no_grad():
        sums = sums_of_bits(tensor.detach()).cpu().numpy().tobytes()
    return hashlib.sha256(sums).digest()


def _name_of(model: Any) -> str:
    config = getattr(model, "config", None)
    name = getattr(config, "_name_or_path", None)
    if not isinstance(name, str) or not name:
        return ""
    revision = getattr(config, "_commit_hash", None)
    return f"{name}@{revision[:12]}"[:200] if isinstance(revision, str) else name[:200]


class Home:
    """The parameters at home, by name. Notices changes of them, which other learners would not
    see."""

    def __init__(self, model: torch.nn.Module, tensors: Mapping[str, torch.Tensor]) -> None:
        self.tensors = dict(tensors)
        self._digests = {name: _digest(tensor) for name, tensor in sorted(tensors.items())}
        self._name = _name_of(model)
        names = {id(tensor): name for name, tensor in tensors.items()}
        self._places = [
            (names[id(tensor)], module._parameters, key, tensor, _state_of(tensor))
            for module in model.modules()
            for key, tensor in module._parameters.items()
            if tensor is not None and id(tensor) in names
        ]

    def base(self) -> Base | None:
        """None: there are no parameters at home."""
        if not self.tensors:
            return None
        whole = hashlib.sha256()
        for name, digest in self._digests.items():
            tensor = self.tensors[name]
            shape = ",".join(map(str, tensor.shape))
            whole.update(f"{name}\0{tensor.dtype}\0{shape}\0".encode() + digest)
        return Base(whole.hexdigest(), self._name)

    def check(self) -> None:
        """Looks at version counters only, which a change through `.data` does not move."""
        for name, holder, key, tensor, state in self._places:
            if holder.get(key) is not tensor or _state_of(tensor) != state:
                raise _changed(name)

    def check_content(self) -> None:
        """Looks at all bytes: seconds for 16 GB on a CPU."""
        for name, digest in self._digests.items():
            if _digest(self.tensors[name]) != digest:
                raise _changed(name)


def _changed(name: str) -> InvalidProgram:
    return InvalidProgram(
        f"the frozen parameter {name} was changed, which learners that join would not see: give "
        "frozen='sent' to pliant.attach, or change it before pliant.attach"
    )


def _state_of(tensor: torch.Tensor) -> tuple[int, int]:
    # Inference tensors have no version counter, and cannot be changed in place.
    return tensor.data_ptr(), 0 if tensor.is_inference() else tensor._version
