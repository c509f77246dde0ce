"""Programs that would train something else on several learners, and end without a word: each has the bits of a run
alone, or is refused with the name of what differs and the remedy. `test_quiet.py --program KIND` is such a program."""

import hashlib
import os
import re
import sys
import unittest

import torch
from harness import ScenarioTest, undisturbed_hash
from torch import nn
from torch.utils.data import DataLoader, Dataset

import pliant


class Points(Dataset):
    """Samples that depend on an attribute that the loop sets, or on the process."""

    epoch = 0

    def __init__(self, count, *, of_process=False):
        self.of_process = of_process
        self.inputs = torch.randn(count, 8, generator=torch.Generator().manual_seed(count))

    def __len__(self):
        return len(self.inputs)

    def __getitem__(self, index):
        if self.of_process:
            return self.inputs[index] + os.getpid() / 1e6, int(self.inputs[index].sum() > 0)
        return self.inputs[index] * (1 + self.epoch), int(self.inputs[index].sum() > 0)


class Metric:
    """Counts samples of a class: two learners with as many samples have other counts."""

    def __init__(self):
        self.count = 0

    def state_dict(self):
        return {"count": self.count}

    def load_state_dict(self, state):
        self.count = state["count"]


def train(kind):
    """The script of a user: each kind differs in a line or two."""
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Dropout(0.3), nn.Linear(16, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 3, 0.9) if kind == "schedule" else None
    train, test = Points(256, of_process=kind == "process"), Points(64)
    average = torch.optim.swa_utils.AveragedModel(model, use_buffers=True)
    metric = Metric()
    tested = average if kind == "average" else model

    def loss_of(net, batch):
        return nn.functional.cross_entropy(net(batch[0]), batch[1])

    def evaluate(batch):
        if kind == "evaluate":
            metric.count += int(batch[1].sum())
        return loss_of(tested, batch)

    elastic = pliant.attach(
        model, optimizer, train, epochs=int(os.environ["TOY_EPOCHS"]), test_data=test, evaluate=evaluate,
        num_workers=int(os.environ.get("TOY_WORKERS", "0")),
    )  # fmt: skip
    if kind in ("metric", "evaluate", "late metric"):
        elastic.register("metric", metric)
    if kind == "average":
        elastic.register("average", average)
    steps_here = 0
    for step in elastic.steps():
        if kind == "data":
            train.epoch = step.epoch
        for batch in step:
            loss = loss_of(model, batch)
            if kind == "passes" and step.number % 2 == 0:
                step.backward(0.5 * loss_of(model, batch))
            step.backward(loss)
            if kind == "metric" or (kind == "late metric" and step.number > 8):
                metric.count += int(batch[1].sum())
        step.commit()
        steps_here += 1
        if kind == "schedule":
            schedule.step()
        if kind == "variable":
            optimizer.param_groups[0]["lr"] = 0.1 / (1 + steps_here)
        if kind == "average":
            average.update_parameters(model)
        if kind == "eval" and step.last_of_epoch:
            model.eval()
            with torch.no_grad():
                loss_of(model, next(iter(DataLoader(test, 64))))
    state = average if kind == "average" else model
    bits = b"".join(value.numpy().tobytes() for value in state.state_dict().values())
    print(f"done {hashlib.sha256(bits).hexdigest()} {metric.count}")


def program(kind):
    return [sys.executable, "-B", __file__, "--program", kind]


class QuietTest(ScenarioTest):
    def assert_equal_bits(self, kind, **of_joiner):
        """One joins, and the first is killed."""
        job, learners = self.running_job([0, 1], program=program(kind), epochs=10, shard_milliseconds=250)
        learners.append(job.start_learner(2, **of_joiner))
        job.plan(learners)
        job.wait_for_members(learners)
        learners[0].kill()
        job.wait_for_members(learners[1:])
        self.assert_completes(job, learners[1:])
        done = {re.search("^done .*$", each.log.read_text(), re.MULTILINE)[0] for each in learners[1:]}
        undisturbed_hash(job)
        alone = (job.folder / "alone.log").read_text()
        self.assertEqual(done, {re.search("^done .*$", alone, re.MULTILINE)[0]})

    def assert_refused(self, kind, said):
        """The one that joins is refused, with these words in its termination message."""
        # One learner before, because two may differ already. It trains until the other is there.
        job, learners = self.running_job(
            [0], program=program(kind), epochs=200, shard_milliseconds=50,
            environment={"PLIANT_CHECK_STATE_EVERY_STEPS": "5"},
        )  # fmt: skip
        joiner = job.start_learner(1)
        job.plan([*learners, joiner])
        self.assertEqual(joiner.exit_code(), 2, "a failure that is not tried again")
        self.assertRegex(joiner.termination()["message"], said)
        problem = job.wait("the coordinator says so", lambda: job.progress().get("problem"))
        self.assertRegex(problem["message"], said)
        return job

    def test_a_schedule_that_is_not_registered(self):
        self.assert_equal_bits("schedule")

    def test_a_model_that_is_left_in_evaluation_mode(self):
        self.assert_equal_bits("eval")

    def test_data_that_change_after_the_workers_were_forked(self):
        self.assert_equal_bits("data", TOY_WORKERS="2")

    def test_an_average_with_buffers_that_is_evaluated(self):
        self.assert_equal_bits("average")

    def test_two_backward_passes_in_even_steps(self):
        self.assert_equal_bits("passes")

    def test_a_number_in_a_variable(self):
        self.assert_refused(
            "variable",
            r"its state at step \d+ differs from that of the other learners in optimizer\.param_groups\[0\]\.lr "
            r"\(0\.\d+ here, 0\.\d+ there\): the program sets it from .*a variable.*Register what lasts over steps",
        )

    def test_registered_state_that_counts_the_batches_of_one_learner(self):
        """In the first step the loop is refused at once, and later when learners compare their states."""
        job = self.make_job(program=program("metric"))
        job.start_coordinator()
        learner = job.start_learner(0)
        job.plan([learner])
        self.assertEqual(learner.exit_code(), 2)
        self.assertRegex(
            learner.termination()["message"],
            r"the registered state metric\.count was changed by the loop over the step.*after step\.commit",
        )
        # The step that the joiner computes first decides which of the two says so.
        self.assert_refused("late metric", r"metric\.count (was changed by the loop|\(\d+ here, \d+ there\))")

    def test_data_that_depend_on_the_process(self):
        """Two learners compute a shard after their first step together: all fail, and say which shard."""
        job = self.make_job(program=program("process"), epochs=10)
        job.let_go()
        job.start_coordinator()
        learners = job.start_learners([0, 1])
        job.plan(learners)
        for learner in learners:
            self.assertEqual(learner.exit_code(), 2, "a failure that is not tried again")
            self.assertRegex(
                learner.termination()["message"],
                r"shard \d of step \d+ \(samples \d+, .*\) has another result on toy-[01] than on toy-[01]: its data",
            )

    def test_registered_state_that_evaluate_changes(self):
        self.assert_refused("evaluate", r"differs .* in registered\.metric\.count \(\d+ here, \d+ there\)")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--program"]:
        train(sys.argv[2])
    else:
        unittest.main(verbosity=2)
