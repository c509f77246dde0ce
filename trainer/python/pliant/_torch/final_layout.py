"""How the final model is written, so that the model's own library reads it."""

import copy
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from .._final_files import FURTHER
from .._say import say
from .._settings import Frozen
from ..errors import InvalidProgram
from .libraries import is_hugging_face, is_peft, own_text


@dataclass(frozen=True)
class FinalLayout:
    stem: str = "model"  # of the files with tensors
    # Names in the files, by the model's own names. None: all tensors that the model saves.
    names: Mapping[str, str] | None = None
    files: Mapping[str, str] = field(default_factory=dict)  # texts, by file


def layout_of(
    model: torch.nn.Module, tensors: Mapping[str, torch.Tensor], frozen: Frozen | None
) -> FinalLayout:
    """`tensors`: the model's parameters and saved buffers, by name. `frozen`: the setting."""
    if is_peft(model):
        try:
            return _of_peft(model, tensors)
        except InvalidProgram as refused:
            if frozen != "sent":
                raise
            say(f"final/ has all tensors, and is not read by PEFT: {refused}")
            return FinalLayout()
    if is_hugging_face(model):
        return FinalLayout(files=_configuration(model))
    return FinalLayout()


def _configuration(model: Any) -> dict[str, str]:
    config = copy.deepcopy(model.config)
    config.architectures = [type(model).__name__]
    dtype = next(model.parameters()).dtype
    setattr(config, "dtype" if hasattr(config, "dtype") else "torch_dtype", dtype)
    files = {"config.json": own_text(config, "config.json")}
    generation = getattr(model, "generation_config", None)
    if generation is not None:
        files["generation_config.json"] = own_text(generation, "generation_config.json")
    return files


def _of_peft(model: Any, tensors: Mapping[str, torch.Tensor]) -> FinalLayout:
    peft: Any = sys.modules["peft"]
    adapter = model.active_adapter
    if not isinstance(adapter, str):
        raise InvalidProgram(
            f"the model has several active adapters ({', '.join(adapter)}): activate one, with "
            "model.set_adapter(name), before pliant.attach"
        )
    # By the memory that they share: the rules of PEFT's names stay PEFT's.
    ours = {tensor.data_ptr(): name for name, tensor in tensors.items() if tensor.numel()}
    names = {}
    saved = peft.get_peft_model_state_dict(model, adapter_name=adapter, save_embedding_layers=False)
    for exported, value in saved.items():
        name = ours.get(value.data_ptr())
        if name is None or tensors[name].shape != value.shape:
            raise InvalidProgram(
                f"{exported} of the adapter {adapter} is computed when it is saved, so it is no "
                "tensor of the model: give frozen='sent' to pliant.attach, and save the adapter in "
                "the script"
            )
        names[name] = exported
    apart = sorted(name for name, t in tensors.items() if t.requires_grad and name not in names)
    if apart:
        say(
            f"{', '.join(apart[:5])}{' ...' if len(apart) > 5 else ''} is trained, but no part of "
            f"the adapter {adapter}: PEFT does not read it, it is in final/{FURTHER}"
        )
    config = copy.deepcopy(model.peft_config[adapter])
    config.inference_mode = True
    if config.base_model_name_or_path is None:
        config.base_model_name_or_path = getattr(model.get_base_model(), "name_or_path", None)
    return FinalLayout(
        stem="adapter_model",
        names=names,
        files={"adapter_config.json": own_text(config, "adapter_config.json")},
    )
