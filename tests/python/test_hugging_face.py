"""Models of transformers and adapters of PEFT: the final model is read by their own libraries, and the base of an
adapter stays on each learner. The models are made here, small; nothing is fetched."""

import json
import sys
import unittest
from unittest import mock

import torch
from peft import LoraConfig, PeftModel, PromptTuningConfig, get_peft_model
from pliant import _learner
from pliant.errors import InvalidProgram
from transformers import AutoModelForCausalLM, GPT2Config, GPT2LMHeadModel

import pliant

from resumable import ResumableTest


def gpt2(layers=2, width=32, seed=3):
    torch.manual_seed(seed)
    config = GPT2Config(
        vocab_size=64, n_positions=32, n_embd=width, n_layer=layers, n_head=2,
        resid_pdrop=0.1, bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    return GPT2LMHeadModel(config)


def with_lora(model, **settings):
    torch.manual_seed(4)
    return get_peft_model(model, LoraConfig(r=4, target_modules=["c_attn"], fan_in_fan_out=True, **settings))


def texts(count=24):
    generator = torch.Generator().manual_seed(1)
    return [{"input_ids": torch.randint(0, 64, (16,), generator=generator)} for _ in range(count)]


class HuggingFaceTest(ResumableTest):
    def train(self, model, folder="one", stop_at=None, **settings):
        trained = [each for each in model.parameters() if each.requires_grad]
        elastic = pliant.attach(
            model,
            torch.optim.AdamW(trained, lr=1e-2),
            texts(),
            **{"epochs": 2, "batch_size": 8, "logical_shards": 4, **settings},
            checkpoint_dir=self.scratch / folder,
        )
        self.addCleanup(elastic.close)
        model.train()
        for step in elastic.steps():
            for batch in step:
                tokens = batch["input_ids"]
                step.backward(model(**batch, labels=tokens).loss, weight=tokens.numel())
            step.commit(max_norm=1.0)
            if step.number == stop_at:
                elastic.close()
                return None
        return elastic.ending.parameters_sha256

    def folder(self, folder="one"):
        return self.scratch / folder / "local"

    def assert_equal_logits(self, first, second):
        tokens = torch.stack([each["input_ids"] for each in texts(3)])
        with torch.no_grad():
            one, other = (each.eval()(input_ids=tokens).logits for each in (first, second))
        self.assertTrue(torch.equal(one, other))

    def test_a_final_model_is_read_by_transformers(self):
        model = gpt2()
        with mock.patch.object(_learner, "FINAL_FILE_BYTES", 20_000):
            self.train(model)
        final = self.folder() / "final"
        self.assertGreater(len(list(final.glob("model-*.safetensors"))), 2)
        self.assertEqual(json.loads((final / "config.json").read_text())["architectures"], ["GPT2LMHeadModel"])
        self.assert_equal_logits(AutoModelForCausalLM.from_pretrained(final), model)

    def test_a_frozen_body_at_home_is_in_the_final_model(self):
        model = gpt2()
        for parameter in model.transformer.h[0].parameters():
            parameter.requires_grad_(False)
        self.train(model, frozen="at_home")
        (newest, *_) = sorted(self.folder().glob("step-*"), reverse=True)
        kept = newest / "model-00001-of-00001.safetensors"
        self.assertNotIn(b"transformer.h.0.", kept.read_bytes())
        self.assert_equal_logits(AutoModelForCausalLM.from_pretrained(self.folder() / "final"), model)

    def test_an_adapter_is_read_by_peft_on_its_base(self):
        model = with_lora(gpt2())
        self.train(model)
        final = self.folder() / "final"
        self.assertEqual(
            {path.name for path in final.iterdir()},
            {"adapter_model.safetensors", "adapter_config.json", "manifest.json"},
        )
        self.assertTrue(json.loads((final / "adapter_config.json").read_text())["inference_mode"])
        self.assert_equal_logits(PeftModel.from_pretrained(gpt2(), final), model)

    def test_the_base_of_an_adapter_is_neither_sent_nor_kept(self):
        """Of a model with more than 100 MB frozen, the state has less than 1 %."""
        model = with_lora(gpt2(layers=3, width=896))
        frozen = sum(each.nbytes for each in model.parameters() if not each.requires_grad)
        self.assertGreater(frozen, 100 << 20)
        self.train(model, stop_at=3)
        (checkpoint, *_) = sorted(self.folder().glob("step-*"), reverse=True)
        kept = sum(path.stat().st_size for path in checkpoint.iterdir())
        self.assertLess(kept, frozen / 100)

    def test_an_adapter_resumes_on_its_base_only(self):
        expected = self.train(with_lora(gpt2()), "whole")
        self.train(with_lora(gpt2()), stop_at=3)
        with self.assertRaisesRegex(pliant.TrainingFailed, "was written with the base model"):
            self.train(with_lora(gpt2(seed=5)))
        self.assertEqual(self.train(with_lora(gpt2())), expected)
        late = with_lora(gpt2())
        self.train(late)  # the training is complete: this process gets the adapter
        self.assert_equal_logits(late, PeftModel.from_pretrained(gpt2(), self.folder() / "final"))

    def test_a_head_outside_of_the_adapter_comes_to_late_processes(self):
        def with_head():
            model = with_lora(gpt2())
            model.get_base_model().transformer.ln_f.requires_grad_(True)
            return model

        model = with_head()
        self.train(model)
        self.assertIn("PEFT does not read it, it is in final/further.safetensors", self.told.getvalue())
        late = with_head()
        self.train(late)
        self.assert_equal_logits(late, model)

    def test_prompts_are_computed_when_they_are_saved(self):
        def with_prompts():
            torch.manual_seed(4)
            return get_peft_model(gpt2(), PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=2))

        with self.assertRaisesRegex(InvalidProgram, "is computed when it is saved, .*give frozen='sent'"):
            self.train(with_prompts())
        model = with_prompts()
        self.train(model, frozen="sent")
        self.assertIn("final/ has all tensors, and is not read by PEFT", self.told.getvalue())
        late = with_prompts()
        self.train(late, frozen="sent")
        self.assert_equal_logits(late, model)

    def test_adapters_may_be_off_in_a_batch(self):
        """As in the reference pass of DPO."""
        model = with_lora(gpt2())
        forward, off = model.forward, []

        def twice(**inputs):
            with torch.no_grad(), model.disable_adapter():
                off.append(forward(**inputs).loss.item())
            return forward(**inputs)

        model.forward = twice
        self.assertIsNotNone(self.train(model))
        self.assertEqual(len(off), 24)

    def test_a_merged_base_is_an_error(self):
        model = with_lora(gpt2())

        def merge(evaluation):
            model.merge_adapter()

        elastic = pliant.attach(
            model, torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1), texts(),
            epochs=2, batch_size=24, test_data=texts(2), evaluate=lambda batch: 0.0, checkpoint_dir=self.scratch / "m",
        )  # fmt: skip
        self.addCleanup(elastic.close)
        elastic.add_callback(pliant.LambdaCallback(on_test_end=merge))
        with self.assertRaisesRegex(InvalidProgram, r"the frozen parameter base_model.*c_attn.* was changed"):
            for step in elastic.steps():
                for batch in step:
                    step.backward(model(**batch, labels=batch["input_ids"]).loss)
                step.commit()

    def test_the_base_has_the_name_that_the_model_knows(self):
        model = gpt2()
        model.config._name_or_path, model.config._commit_hash = "gpt2", "607a30d783dfa663caf39e06633721c8d4cfcd7e"
        self.train(with_lora(model), stop_at=1)
        (newest, *_) = sorted(self.folder().glob("step-*"), reverse=True)
        self.assertEqual(json.loads((newest / "manifest.json").read_text())["base"]["name"], "gpt2@607a30d783df")


if __name__ == "__main__":
    print(f"transformers {sys.modules['transformers'].__version__}, peft {sys.modules['peft'].__version__}", flush=True)
    unittest.main(verbosity=2)
