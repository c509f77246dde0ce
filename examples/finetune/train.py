"""train.py: LoRA on a tiny model that is made on the spot, by TRL's SFTTrainer."""

import os

import torch
from datasets import Dataset
from peft import LoraConfig
from pliant.transformers import PliantTrainer  # added
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast
from trl import SFTConfig, SFTTrainer


class Trainer(PliantTrainer, SFTTrainer):  # added
    pass


words = Tokenizer(models.WordLevel({"<end>": 0, **{f"w{n}": n for n in range(1, 50)}}, unk_token="<end>"))
words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, eos_token="<end>", pad_token="<end>")
texts = [" ".join(f"w{1 + (start + 3 * n) % 49}" for n in range(20)) for start in range(256)]
torch.manual_seed(0)  # the script initializes the parameters
trainer = Trainer(  # was: SFTTrainer(
    model=GPT2LMHeadModel(GPT2Config(vocab_size=50, n_positions=64, n_embd=64, n_layer=2, n_head=2)),
    args=SFTConfig(
        os.path.join(os.environ.get("PLIANT_CHECKPOINT_DIR", "."), "out"),  # in a job: on its volume
        num_train_epochs=2,
        per_device_train_batch_size=2,
        gradient_accumulation_steps=8,
        bf16=torch.cuda.is_available(),
    ),
    train_dataset=Dataset.from_dict({"text": texts}),
    processing_class=tokenizer,
    peft_config=LoraConfig(r=8, target_modules=["c_attn"], fan_in_fan_out=True, task_type="CAUSAL_LM"),
)
trainer.train()
trainer.save_model()  # one learner writes it
