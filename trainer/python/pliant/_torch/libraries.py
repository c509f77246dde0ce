"""What a model is to other libraries. None of them is imported: a model of one needs it anyway."""

import sys
from typing import Any

import torch

from ..errors import InvalidProgram

_COMPILED = "_orig_mod."


def is_peft(model: torch.nn.Module) -> bool:
    peft = sys.modules.get("peft")
    return peft is not None and isinstance(model, peft.PeftModel)


def is_hugging_face(model: torch.nn.Module) -> bool:
    transformers = sys.modules.get("transformers")
    return transformers is not None and isinstance(model, transformers.PreTrainedModel)


def plain(model: torch.nn.Module) -> torch.nn.Module:
    """The model that torch.compile wraps, or the model itself. Raises InvalidProgram for a wrapper
    that spreads a model over processes or GPUs."""
    for kind in ("DataParallel", "DistributedDataParallel", "FullyShardedDataParallel"):
        if any(base.__name__ == kind for base in type(model).__mro__):
            raise InvalidProgram(
                f"the model is a {kind}, which divides a batch among GPUs itself: give the model "
                "inside (model.module), and a GPU to each learner"
            )
    inside = getattr(model, "_orig_mod", None)
    return inside if isinstance(inside, torch.nn.Module) else model


def plain_name(name: str) -> str:
    """The name that a parameter or buffer has if no part of the model is compiled."""
    return name.replace(_COMPILED, "")


def own_text(thing: Any, file: str) -> str:
    """What `thing.save_pretrained` writes to this file."""
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory(prefix="pliant-") as folder:
        thing.save_pretrained(folder)
        return Path(folder, file).read_text()
