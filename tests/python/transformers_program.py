"""Scripts with a Trainer: `transformers_program.py KIND`. Models, tokenizers and texts are made here, small."""

import json
import os
import pathlib
import sys

import torch
from transformers import (
    EarlyStoppingCallback,
    GPT2Config,
    GPT2LMHeadModel,
    PreTrainedTokenizerFast,
    TrainerCallback,
    TrainingArguments,
)

WORDS = 60


def gpt2(dropout=0.1, layers=2, width=32):
    torch.manual_seed(3)
    config = GPT2Config(
        vocab_size=64, n_positions=32, n_embd=width, n_layer=layers, n_head=2,
        bos_token_id=0, eos_token_id=0, pad_token_id=0,
        resid_pdrop=dropout, embd_pdrop=dropout, attn_pdrop=dropout,
    )  # fmt: skip
    return GPT2LMHeadModel(config)


def tokenizer():
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = {word: number for number, word in enumerate(["<pad>", "<unk>", *(f"w{n}" for n in range(WORDS))])}
    made = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=made, pad_token="<pad>", eos_token="<pad>", unk_token="<unk>")


def texts(count=48, seed=1, empty=()):
    """Sentences of different lengths, as numbers of words. Those of `empty` have no label."""
    generator = torch.Generator().manual_seed(seed)
    made = []
    for number in range(count):
        length = int(torch.randint(4, 16, (), generator=generator))
        words = torch.randint(2, 62, (length,), generator=generator)
        labels = torch.full_like(words, -100) if number in empty else words
        made.append({"input_ids": words, "labels": labels})
    return made


def padded(samples):
    """A batch of `texts`."""
    pad = torch.nn.utils.rnn.pad_sequence
    return {
        "input_ids": pad([each["input_ids"] for each in samples], batch_first=True),
        "attention_mask": pad([torch.ones_like(each["input_ids"]) for each in samples], batch_first=True),
        "labels": pad([each["labels"] for each in samples], batch_first=True, padding_value=-100),
    }


def arguments(folder, kind=TrainingArguments, **chosen):
    given = {
        "per_device_train_batch_size": 2,
        "gradient_accumulation_steps": 4,
        "num_train_epochs": 2,
        "learning_rate": 5e-3,
        "logging_steps": 1,
        "report_to": "none",
        "use_cpu": True,
        "save_strategy": "no",
        "seed": 7,
        **chosen,
    }
    return kind(output_dir=str(folder), **given)


class Logs(TrainerCallback):
    """Writes what a Trainer logs, on the learner that writes for all."""

    def on_log(self, args, state, control, logs=None, **_):
        if state.is_world_process_zero:
            print("\nlogged", json.dumps({"step": state.global_step, **logs}), flush=True)


def sentences(count=64):
    return [" ".join(f"w{number - 2}" for number in each["input_ids"].tolist()) for each in texts(count)]


def lora(**chosen):
    from peft import LoraConfig

    return LoraConfig(r=4, target_modules=["c_attn"], fan_in_fan_out=True, task_type="CAUSAL_LM", **chosen)


def trainer(folder, given):
    from pliant.transformers import PliantTrainer

    args = arguments(
        folder,
        **given,
        eval_strategy="epoch",
        save_strategy="epoch",
        save_total_limit=2,
        metric_for_best_model="loss",
        load_best_model_at_end=True,
        include_num_input_tokens_seen="all",
    )
    return PliantTrainer(
        model=gpt2(),
        args=args,
        train_dataset=texts(120, empty=range(8)),
        eval_dataset=texts(16, seed=2),
        data_collator=padded,
        callbacks=[EarlyStoppingCallback(early_stopping_patience=50)],
    )


def sft(folder, given):
    from datasets import Dataset
    from pliant.transformers import PliantTrainer
    from trl import SFTConfig, SFTTrainer

    class Trainer(PliantTrainer, SFTTrainer):
        pass

    args = arguments(folder, SFTConfig, **given, packing=True, max_length=16)
    torch.manual_seed(4)
    data = Dataset.from_dict({"text": sentences(400)})
    return Trainer(model=gpt2(), args=args, train_dataset=data, processing_class=tokenizer(), peft_config=lora())


def pairs(count=64):
    from datasets import Dataset

    said = sentences(2 * count)
    return Dataset.from_dict({"prompt": ["w1 w2"] * count, "chosen": said[:count], "rejected": said[count:]})


def dpo(folder, given):
    """Its reference is the model with the adapter off."""
    import pliant.transformers
    from trl import DPOConfig, DPOTrainer

    torch.manual_seed(4)
    made = DPOTrainer(
        model=gpt2(),
        args=arguments(folder, DPOConfig, **given, max_length=24),
        train_dataset=pairs(),
        processing_class=tokenizer(),
        peft_config=lora(),
    )
    pliant.transformers.elastic(made)
    return made


def reward(folder, given):
    from pliant.transformers import PliantTrainer
    from transformers import GPT2ForSequenceClassification
    from trl import RewardConfig, RewardTrainer

    class Trainer(PliantTrainer, RewardTrainer):
        pass

    config = gpt2().config
    config.num_labels = 1
    torch.manual_seed(4)
    model = GPT2ForSequenceClassification(config)
    args = arguments(folder, RewardConfig, **given, max_length=24)
    return Trainer(model=model, args=args, train_dataset=pairs(), processing_class=tokenizer())


def kto(folder, given):
    from datasets import Dataset
    from pliant.transformers import PliantTrainer
    from trl import KTOConfig, KTOTrainer

    class Trainer(PliantTrainer, KTOTrainer):
        pass

    said = sentences(64)
    data = Dataset.from_dict(
        {"prompt": ["w1 w2"] * 64, "completion": said, "label": [n % 3 > 0 for n in range(64)]}
    )
    torch.manual_seed(4)
    return Trainer(
        model=gpt2(),
        args=arguments(folder, KTOConfig, **given, max_length=24),
        train_dataset=data,
        processing_class=tokenizer(),
        peft_config=lora(),
    )


def accelerator():
    """The loop of a script with accelerate."""
    from pliant.accelerate import Accelerator
    from torch.utils.data import DataLoader

    epochs = int(os.environ["TOY_EPOCHS"])
    accelerator = Accelerator(gradient_accumulation_steps=8, cpu=True, epochs=epochs)
    model = gpt2()
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 5e-3, 4 * epochs)
    loader = DataLoader(texts(120), batch_size=4, shuffle=True, collate_fn=padded)
    model, optimizer, loader, schedule = accelerator.prepare(model, optimizer, loader, schedule)
    step = accelerator.step
    for _ in range(epochs):
        model.train()
        for batch in loader:
            with accelerator.accumulate(model):
                accelerator.backward(model(**batch).loss)
                norm = None
                if accelerator.sync_gradients:
                    norm = accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
            if accelerator.sync_gradients:
                step += 1
                if accelerator.is_main_process:
                    said = {"step": step, "learning_rate": schedule.get_last_lr(), "grad_norm": float(norm)}
                    print("\nlogged", json.dumps(said), flush=True)
    print("\ndone", step, schedule.get_last_lr(), flush=True)


def main(kind):
    if kind == "accelerator":
        return accelerator()
    folder = pathlib.Path(os.environ["PLIANT_CHECKPOINT_DIR"], "trainer")
    given = {
        "per_device_train_batch_size": 4,
        "gradient_accumulation_steps": 8,
        "num_train_epochs": int(os.environ["TOY_EPOCHS"]),
    }
    kinds = {"trainer": trainer, "sft": sft, "dpo": dpo, "reward": reward, "kto": kto}
    made = kinds[kind](folder, given)
    made.add_callback(Logs())
    made.train()
    made.save_model()
    print("\ndone", made.state.global_step, made.lr_scheduler.get_last_lr(), made.state.best_metric, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
