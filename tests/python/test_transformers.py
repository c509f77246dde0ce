"""pliant.transformers in one process: next to a plain Trainer, after a restart, and what is refused."""

import collections
import contextlib
import dataclasses
import importlib.util
import io
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import types
import unittest
from unittest import mock

import torch
import transformers
from pliant._hugging_face.check import SEAMS, check_job, check_version
from pliant._hugging_face.seams import Seams
from pliant._hugging_face.steps import StateChanged
from pliant._hugging_face.trl_metrics import TrlMetrics
from pliant._torch.elastic import TorchElastic
from pliant.errors import InvalidProgram, PliantError
from pliant.transformers import PliantTrainer, elastic
from torch.utils.data import IterableDataset
from transformers.trainer_callback import ExportableState
from transformers import DataCollatorForLanguageModeling, EarlyStoppingCallback, GPT2LMHeadModel, Trainer, TrainerCallback

from pages import script_of
from resumable import ResumableTest
from transformers_program import arguments, gpt2, padded, texts, tokenizer


# Times, and the padded texts: a short batch is divided otherwise.
NOT_COMPARED = re.compile("runtime|per_second|flos")


class Stop(TrainerCallback):
    """The process is lost after this step."""

    def __init__(self, step):
        self.step = step

    def on_step_begin(self, args, state, control, **_):
        if state.global_step == self.step:
            raise KeyboardInterrupt


class TransformersTest(ResumableTest):
    def make(self, kind=PliantTrainer, *, folder="one", model=None, data=None, callbacks=(), compute=None, evaluated=None, **chosen):
        self.enterContext(contextlib.redirect_stdout(io.StringIO()))
        self.enterContext(mock.patch.dict("os.environ", {"PLIANT_CHECKPOINT_DIR": str(self.scratch / folder)}))
        return kind(
            model=model or gpt2(),
            args=arguments(self.scratch / folder / "trainer", disable_tqdm=True, **chosen),
            train_dataset=texts() if data is None else data,
            eval_dataset=evaluated or texts(8, seed=2),
            data_collator=padded,
            compute_loss_func=compute,
            callbacks=list(callbacks),
        )

    def assert_same_model(self, expected, own):
        for name, value in expected.state_dict().items():
            self.assertTrue(torch.equal(value, own.state_dict()[name]), name)


class PlainTest(TransformersTest):
    def logs(self, **chosen):
        found = []
        for kind in (Trainer, PliantTrainer):
            made = self.make(
                kind, folder=kind.__name__, model=gpt2(dropout=0.0), train_sampling_strategy="sequential", **chosen
            )
            made.train()
            found.append(made.state.log_history)
        return zip(*found, strict=True)

    def assert_as_plain(self, steps, **chosen):
        lines = list(self.logs(**chosen))
        self.assertEqual(sum("loss" in plain for plain, _ in lines), steps)
        for plain, own in lines:
            self.assertEqual(set(plain), set(own))
            for name, value in plain.items():
                if not NOT_COMPARED.search(name):
                    with self.subTest(name, step=plain["step"]):
                        self.assertAlmostEqual(own[name] / (value or 1), value / (value or 1), delta=1e-5)

    def test_it_logs_what_a_plain_trainer_with_accumulation_logs(self):
        """50 steps in float32, over texts of different lengths. Two have no label, and the last batch of an epoch is
        short."""
        self.assert_as_plain(
            50,
            data=texts(52, empty=(0, 1, 9)),
            max_steps=50,
            eval_strategy="steps",
            eval_steps=7,
            include_num_input_tokens_seen="non_padding",
            learning_rate=1e-3,
        )

    def test_a_loss_over_samples(self):
        """Its model takes no number of items, so the mean of each batch counts by its samples."""
        with mock.patch.object(GPT2LMHeadModel, "accepts_loss_kwargs", False, create=True):
            self.assert_as_plain(12, learning_rate=1e-3)

    def test_a_loss_function_of_the_script(self):
        def summed(outputs, labels, num_items_in_batch=None):
            scores = outputs.logits[:, :-1].flatten(0, 1)
            loss = torch.nn.functional.cross_entropy(scores, labels[:, 1:].flatten(), reduction="sum")
            return loss / num_items_in_batch

        self.assert_as_plain(12, compute=summed, learning_rate=1e-3)

    def test_several_sets_are_evaluated(self):
        sets = {name: texts(8, seed=seed) for name, seed in (("near", 2), ("far", 3))}
        self.assert_as_plain(
            12, evaluated=sets, eval_strategy="epoch", learning_rate=1e-3, save_strategy="epoch",
            load_best_model_at_end=True, metric_for_best_model="eval_far_loss",
        )  # fmt: skip

    def test_half_an_epoch(self):
        self.assert_as_plain(9, num_train_epochs=1.5, learning_rate=1e-3)


class LeftTest(TransformersTest):
    def test_a_step_that_others_complete_is_left(self):
        """In mid epoch and at its end. The state is then as if it was taken here, and the loop continues after it."""
        whole = self.make()
        whole.train()
        made, left = self.make(folder="two"), []
        plain = made.training_step

        def training_step(model, step, items=None):
            loss = plain(model, step, items)
            if step.number not in (2, 5):
                return loss
            left.append(step.number)
            step.clip(1.0)
            step.commit()
            made.lr_scheduler.step()
            model.zero_grad()
            made.state.global_step = made._globalstep_last_logged = step.number + 1
            made._total_loss_scalar += float(loss)
            raise StateChanged

        made.training_step = training_step
        made.train()
        self.assertEqual(left, [2, 5])
        self.assertEqual(made.state.global_step, 12)
        own, last = made.state.log_history[-1], whole.state.log_history[-1]
        self.assertEqual((own["train_loss"], own["epoch"]), (last["train_loss"], last["epoch"]))
        self.assert_same_model(whole.model, made.model)


class RestartTest(TransformersTest):
    def assert_continues(self, *, stops=(3, 8), prepare=dict, **chosen):
        whole = self.make(**prepare(), **chosen)
        whole.train()
        for stop in stops:
            folder = f"stopped{stop}"
            given = prepare()
            given["callbacks"] = [*given.get("callbacks", ()), Stop(stop)]
            with self.assertRaises(KeyboardInterrupt):
                self.make(folder=folder, **given, **chosen).train()
            again = self.make(folder=folder, **prepare(), **chosen)
            again.train()
            with self.subTest(stop=stop):
                self.assert_same_model(whole.model, again.model)
                for name in ("global_step", "best_metric", "best_global_step", "num_input_tokens_seen", "epoch"):
                    self.assertEqual(getattr(again.state, name), getattr(whole.state, name), name)
                last, own = whole.state.log_history[-1], again.state.log_history[-1]
                self.assertEqual((own["train_loss"], own["total_flos"]), (last["train_loss"], last["total_flos"]))
        return whole

    def test_it_continues_where_it_was(self):
        self.assert_continues(include_num_input_tokens_seen="all", eval_strategy="steps", eval_steps=3)

    def test_it_stops_early_and_loads_the_best_model(self):
        def prepare():
            return {"callbacks": [EarlyStoppingCallback(early_stopping_patience=2)]}

        whole = self.assert_continues(
            prepare=prepare,
            num_train_epochs=9,
            learning_rate=0.05,
            eval_strategy="epoch",
            save_strategy="epoch",
            metric_for_best_model="loss",
            load_best_model_at_end=True,
        )
        self.assertLess(whole.state.global_step, 54)
        self.assertLess(whole.state.best_global_step, whole.state.global_step)
        best = GPT2LMHeadModel.from_pretrained(whole.state.best_model_checkpoint)
        self.assert_same_model(whole.model, best)

    def test_a_complete_training_is_loaded(self):
        whole = self.make()
        whole.train()
        again = self.make()
        again.train(resume_from_checkpoint=True)
        self.assertEqual(again.state.global_step, 12)
        self.assertIn("resume_from_checkpoint is ignored", self.told.getvalue())
        self.assert_same_model(whole.model, again.model)

    def test_a_scale_of_the_loss_continues(self):
        """It begins too high: steps are skipped until it fits, and the schedule waits for them."""

        def with_scaler(trainer):
            trainer.accelerator.scaler = torch.amp.GradScaler("cpu", init_scale=2.0**127, growth_interval=3)
            return trainer

        whole = with_scaler(self.make(max_steps=9))
        whole.train()
        scale = whole.accelerator.scaler.get_scale()
        self.assertLess(scale, 2.0**127)
        rates = [line["learning_rate"] for line in whole.state.log_history if "learning_rate" in line]
        self.assertEqual(rates[0], rates[1], "the step was skipped")
        with self.assertRaises(KeyboardInterrupt):
            with_scaler(self.make(folder="two", max_steps=9, callbacks=[Stop(5)])).train()
        again = with_scaler(self.make(folder="two", max_steps=9))
        again.train()
        self.assertEqual(again.accelerator.scaler.get_scale(), scale)
        self.assert_same_model(whole.model, again.model)


class BestTest(TransformersTest):
    def test_the_best_model_is_chosen_by_one_rule_on_all_learners(self):
        """Evaluations are more frequent than checkpoints, and a folder of another run lies there. A learner that does not
        write chooses as the one that does."""
        chosen = {"eval_strategy": "steps", "eval_steps": 2, "save_strategy": "steps", "save_steps": 4}
        chosen |= {"metric_for_best_model": "score", "load_best_model_at_end": True, "save_total_limit": 1}
        found = []
        for folder, first in (("writes", True), ("reads", False)):
            made = self.make(folder=folder, num_train_epochs=4, **chosen)
            made.compute_metrics = lambda _, trainer=made: {"score": -trainer.state.global_step}
            for step in range(2, 24, 4):
                (self.scratch / folder / "trainer" / f"checkpoint-{step}").mkdir(parents=True)
            with mock.patch.object(TorchElastic, "first", mock.PropertyMock(return_value=first)):
                made.train()
            best = made.state.best_model_checkpoint
            found.append((made.state.best_global_step, best and pathlib.Path(best).name))
        self.assertEqual(found, [(2, None)] * 2, "no checkpoint was written after the best evaluation")
        self.assertTrue((self.scratch / "reads" / "trainer" / "checkpoint-2").exists(), "only the first deletes")
        self.assertEqual(made.args.save_total_limit, 1, "as it was")


class StreamTest(TransformersTest):
    def test_a_stream_has_the_collator_and_the_micro_batches_of_the_trainer(self):
        class Stream:
            def __len__(self):
                return 48

            def stream(self, shard, start):
                return iter(texts()[shard.index :: shard.count][start:])

        made = self.make(data=Stream(), dataloader_drop_last=True)
        made.train()
        self.assertEqual(made.state.global_step, 12)
        self.assertEqual(Seams.of(made)._elastic.plan.logical_shards, 4)

    def test_samples_that_are_left_out_are_counted(self):
        self.make(data=texts(45), dataloader_drop_last=True, max_steps=1).train()
        self.assertIn("dataloader_drop_last leaves out the last 5 samples", self.told.getvalue())


class TrlMetricsTest(unittest.TestCase):
    def test_a_mean_is_over_the_batches_that_have_the_metric(self):
        trainer = types.SimpleNamespace(
            _metrics={"train": collections.defaultdict(list, margin=[7.0])}, _total_train_tokens=100
        )
        metrics, sums = TrlMetrics(trainer), collections.Counter()
        for margin, rejected in ((1.0, None), (2.0, 5.0), (6.0, 9.0)):
            metrics.begin_batch()
            lists = trainer._metrics["train"]
            lists["margin"].append(margin)
            if rejected is not None:
                lists["rejected"].append(rejected)
            trainer._total_train_tokens += 10
            lists["num_tokens"] = [trainer._total_train_tokens]
            sums.update(metrics.end_batch())
        self.assertEqual(trainer._total_train_tokens, 100, "until the step is complete")
        metrics.end_step(sums)
        expected = {"margin": [7.0, 3.0], "rejected": [7.0], "num_tokens": [130]}
        self.assertEqual(trainer._metrics["train"], expected)


class FirstTest(TransformersTest):
    def test_a_learner_that_becomes_the_first_begins_to_log(self):
        """A callback asks at the beginning who logs, so it begins again; not one whose state is the training's."""

        class Logger(TrainerCallback):
            def __init__(self):
                self._initialized, self.steps, self.begun = False, [], 0

            def on_train_begin(self, args, state, control, **_):
                self.begun += 1
                if not self._initialized:
                    self._initialized, self.run = True, self.steps if state.is_world_process_zero else None

            def on_log(self, args, state, control, logs=None, **_):
                if state.is_world_process_zero and "loss" in logs:
                    self.run.append(state.global_step)

        class Stateful(Logger, ExportableState):
            def state(self):
                return {"args": {}, "attributes": {}}

            def on_log(self, *_, **__):
                pass

        logger, stateful = Logger(), Stateful()
        made = self.make(callbacks=[logger, stateful])
        first = mock.PropertyMock(side_effect=lambda: made.state.global_step > 5)
        with mock.patch.object(TorchElastic, "first", first):
            made.train()
        self.assertEqual(logger.steps, list(range(7, 13)))
        self.assertEqual((logger.begun, stateful.begun), (2, 1))

    def test_learners_of_a_job_log_to_one_run(self):
        with mock.patch.dict("os.environ", {"PLIANT_JOB_UID": "a-job", "WANDB_RESUME": "must"}):
            self.make()
            run = os.environ["WANDB_RUN_ID"]
            self.assertEqual(os.environ["WANDB_RESUME"], "must", "what the script says counts")
            self.make(folder="two")
            self.assertEqual(os.environ["WANDB_RUN_ID"], run)
        self.assertRegex(run, "^[0-9a-f]{16}$")


class RefusedTest(TransformersTest):
    def test_a_trainer_that_cannot_work_is_refused_before_it_trains(self):
        class Generates(Trainer):
            def get_train_dataloader(self):
                raise AssertionError

        class Stream(IterableDataset):
            def __iter__(self):
                return iter(texts())

        def changed(**attributes):
            made = self.make(Trainer)
            for name, value in attributes.items():
                setattr(made, name, value)
            return made

        def synchronized(made):
            made.args.sync_ref_model = True
            return made

        masks = DataCollatorForLanguageModeling(tokenizer(), mlm=False, seed=3)
        cases = [
            (lambda: object(), {}, "was given a object: give a transformers.Trainer"),
            (lambda: self.make(Trainer), {"epochs": 3}, "has no setting 'epochs': it has logical_shards"),
            (lambda: self.make(Generates), {}, "Generates has a get_train_dataloader of its own"),
            (lambda: self.make(Trainer, gradient_accumulation_steps=6), {}, "is 6: .* such as 4 or 8"),
            (lambda: self.make(Trainer, auto_find_batch_size=True), {}, "auto_find_batch_size changes the batch"),
            (lambda: changed(is_model_parallel=True), {}, "spread over several devices"),
            (lambda: changed(is_deepspeed_enabled=True), {}, "deepspeed spreads"),
            (lambda: changed(is_fsdp_enabled=True), {}, "fsdp spreads"),
            (lambda: changed(data_collator=masks), {}, "the data collator has a seed"),
            (lambda: synchronized(self.make(Trainer)), {}, "sync_ref_model changes the reference model"),
            (lambda: changed(train_dataset=None), {}, "no train_dataset"),
            (lambda: self.make(Trainer, data=Stream(), max_steps=3), {}, r"\(Stream\) have no __len__"),
            (lambda: self.make(PliantTrainer), {}, "called twice"),
        ]  # fmt: skip
        for make, settings, said in cases:
            with self.subTest(said), self.assertRaisesRegex(InvalidProgram, said) as refused:
                elastic(make(), **settings)
            self.assertEqual(refused.exception.exit_code, 2)
        with self.assertRaisesRegex(InvalidProgram, "has a LengthGroupedSampler: it draws samples in one"):
            self.make(train_sampling_strategy="group_by_length").train()

    def test_a_second_training_is_refused(self):
        made = self.make()
        made.train()
        with self.assertRaisesRegex(InvalidProgram, r"train\(\) is called twice"):
            made.train()
        with self.assertRaisesRegex(InvalidProgram, "a search of hyperparameters"):
            self.make(folder="two").train(trial=object())

    def test_the_shards_of_the_job_count(self):
        for shards, said in (("2", 1), ("4", 0)):
            with mock.patch.dict("os.environ", {"PLIANT_LOGICAL_SHARDS": shards}):
                self.make(folder=f"of{shards}", max_steps=1).train()
            self.assertEqual(self.told.getvalue().count("is computed 4 at a time"), said)
            self.told.seek(self.told.truncate(0))
        with mock.patch.dict("os.environ", {"PLIANT_LOGICAL_SHARDS": "0"}), self.assertRaises(PliantError):
            self.make(folder="none", max_steps=1).train()
        for batch, remedy in (("16", "set gradient_accumulation_steps=8"), ("9", "make them equal")):
            job = mock.patch.dict("os.environ", {"PLIANT_GLOBAL_BATCH_SIZE": batch})
            said = rf"batch is 2 .* × 4 .* = 8 samples, but .*globalBatchSize of the job is {batch}: {remedy}"
            with job, self.subTest(batch), self.assertRaisesRegex(InvalidProgram, said):
                self.make()

    def test_learners_that_might_decide_differently_are_refused(self):
        plateau = {"lr_scheduler_type": "reduce_lr_on_plateau", "eval_strategy": "epoch"}
        best = {"metric_for_best_model": "loss"}
        for place, (chosen, decides) in enumerate((({}, False), (best, True), (plateau, True))):
            made = self.make(folder=str(place), max_steps=1, **chosen)
            made.train()
            for alone, bitwise in ((True, False), (False, True), (False, False)):
                job = dataclasses.replace(Seams.of(made)._elastic.job, alone=alone, bitwise=bitwise)
                refused = decides and not alone and not bitwise
                said = self.assertRaisesRegex(InvalidProgram, "spec.training.reproducibility to Bitwise")
                with self.subTest(chosen, alone=alone, bitwise=bitwise), said if refused else contextlib.nullcontext():
                    check_job(made, job)

    def test_another_version_has_a_line(self):
        check_version(transformers.__version__, Trainer)
        self.assertEqual(self.told.getvalue(), "", "the tested versions have these methods")
        other = types.new_class("Other", (Trainer,))
        check_version("5.99.1", other)
        self.assertIn("transformers 5.99.1 is newer than the tested versions", self.told.getvalue())
        other.training_step = lambda self, model: None
        check_version("5.24.0", other)
        self.assertIn("Trainer.training_step of transformers 5.24.0 takes model, where", self.told.getvalue())
        for name in SEAMS:
            lacking = mock.Mock(spec=[each for each in SEAMS if each != name])
            with self.subTest(name), self.assertRaisesRegex(InvalidProgram, rf"has no Trainer\.{name}: .*pip install"):
                check_version("4.57.0", lacking)


@unittest.skipUnless(importlib.util.find_spec("trl"), "pip install trl peft datasets")
class ExampleTest(unittest.TestCase):
    def test_the_script_of_the_example_trains_and_is_that_of_the_page(self):
        root = pathlib.Path(__file__).parents[2]
        script = (root / "examples" / "finetune" / "train.py").read_text()
        self.assertEqual(script_of("hugging-face"), script)
        with tempfile.TemporaryDirectory(prefix="pliant-example-") as folder:
            ran = subprocess.run(
                [sys.executable, "-c", script], cwd=folder, capture_output=True, text=True, timeout=300
            )
            self.assertEqual(ran.returncode, 0, ran.stderr)
            self.assertTrue(pathlib.Path(folder, "out", "adapter_model.safetensors").exists())
            final = pathlib.Path(folder, "checkpoints", "local", "final", "adapter_model.safetensors")
            self.assertTrue(final.exists())


if __name__ == "__main__":
    unittest.main(verbosity=2)
