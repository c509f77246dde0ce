"""A Trainer of a small GPT-2, as the bench runs it: `trainer_program.py plain|pliant ACCUMULATION STEPS`. Its last line is
the list of the seconds of its steps. With RANK and WORLD_SIZE a plain one is a process of DistributedDataParallel."""

import json
import os
import sys
import tempfile
import time
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "python"))

import torch
from transformers import Trainer, TrainerCallback
from transformers_program import arguments, gpt2

LENGTH = 32  # tokens of a text


class Times(TrainerCallback):
    def __init__(self) -> None:
        self.ended: list[float] = []

    def on_step_end(self, *_: object, **__: object) -> None:
        self.ended.append(time.perf_counter())


def main(kind: str, accumulation: int, steps: int) -> None:
    torch.set_num_threads(1)
    if kind == "pliant":
        from pliant.transformers import PliantTrainer as OwnTrainer
    else:
        OwnTrainer = Trainer
    generator = torch.Generator().manual_seed(1)
    words = torch.randint(2, 62, (256, LENGTH), generator=generator)
    texts = [{"input_ids": each, "labels": each} for each in words]
    times = Times()
    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("PLIANT_CHECKPOINT_DIR", folder)
        args = arguments(
            folder, per_device_train_batch_size=4, gradient_accumulation_steps=accumulation, max_steps=steps,
            disable_tqdm=True, logging_steps=1000, ddp_backend="gloo" if "RANK" in os.environ else None,
            ddp_find_unused_parameters=False,
        )  # fmt: skip
        OwnTrainer(model=gpt2(layers=6, width=192), args=args, train_dataset=texts, callbacks=[times]).train()
    print("\n" + json.dumps([after - before for before, after in zip(times.ended, times.ended[1:])]), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
