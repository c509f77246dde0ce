"""What a Trainer counts: part of the training's state, so that it is the same on all learners."""

import os
from typing import Any

from transformers.trainer_callback import ExportableState

# Attribute of TrainerState.
_OF_STATE = (
    "global_step",
    "best_metric",
    "best_global_step",
    "num_input_tokens_seen",
    "total_flos",
)
# Attribute of Trainer, or of TRL's trainers.
_OF_TRAINER = ("_total_loss_scalar", "_globalstep_last_logged", "current_flos", "_total_train_tokens")


class Progress:
    """Without the history of the log, which grows: each learner has what it logged itself."""

    def __init__(self, trainer: Any) -> None:
        self._trainer = trainer

    def state_dict(self) -> dict[str, Any]:
        trainer = self._trainer
        return {
            **{name: getattr(trainer.state, name) for name in _OF_STATE},
            **{name: getattr(trainer, name) for name in _OF_TRAINER if hasattr(trainer, name)},
            "tr_loss": float(trainer._tr_loss),
            # Without the path, which may differ from learner to learner.
            "best_model": os.path.basename(trainer.state.best_model_checkpoint or ""),
            "callbacks": {name: each.state()["attributes"] for name, each in self._stateful()},
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        trainer = self._trainer
        for name in _OF_STATE:
            setattr(trainer.state, name, state_dict[name])
        for name in _OF_TRAINER:
            if name in state_dict:
                setattr(trainer, name, state_dict[name])
        trainer._tr_loss.fill_(state_dict["tr_loss"])
        best, folder = state_dict["best_model"], trainer._get_output_dir(trial=None)
        trainer.state.best_model_checkpoint = os.path.join(folder, best) if best else None
        for name, each in self._stateful():
            for attribute, value in state_dict["callbacks"][name].items():
                setattr(each, attribute, value)

    def _stateful(self) -> list[tuple[str, Any]]:
        callbacks = self._trainer.callback_handler.callbacks
        return [
            (f"{place}.{type(each).__name__}", each)
            for place, each in enumerate(callbacks)
            if isinstance(each, ExportableState)
        ]
