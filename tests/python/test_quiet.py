"""Programs that would train something else on several learners, and end without a word: each has the bits of a run
alone, or is refused with the name of what differs and the remedy. `test_quiet.py --program HABIT...` is such a program."""

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


def train(habits):
    """The script of a user: each habit is a line or two."""
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Dropout(0.3), nn.Linear(16, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 3, 0.9) if "schedule" in habits else None
    train, test = Points(256, of_process="process" in habits), Points(64)
    average = torch.optim.swa_utils.AveragedModel(model, use_buffers=True)
    metric = Metric()
    tested = average if "average" in habits else model

    def loss_of(net, batch):
        return nn.functional.cross_entropy(net(batch[0]), batch[1])

    def evaluate(batch):
        if "evaluate" in habits:
            metric.count += int(batch[1].sum())
        return loss_of(tested, batch)

    elastic = pliant.attach(
        model, optimizer, train, epochs=int(os.environ["TOY_EPOCHS"]), test_data=test, evaluate=evaluate,
        num_workers=int(os.environ.get("TOY_WORKERS", "0")),
    )  # fmt: skip
    if habits & {"metric", "evaluate", "late metric"}:
        elastic.register("metric", metric)
    if "average" in habits:
        elastic.register("average", average)
    steps_here = 0
    for step in elastic.steps():
        if "data" in habits:
            train.epoch = step.epoch
        for batch in step:
            loss = loss_of(model, batch)
            if "passes" in habits and step.number % 2 == 0:
                step.backward(0.5 * loss_of(model, batch))
            step.backward(loss)
            if "metric" in habits or ("late metric" in habits and step.number > 8):
                metric.count += int(batch[1].sum())
        step.commit()
        steps_here += 1
        if "schedule" in habits:
            schedule.step()
        if "variable" in habits:
            optimizer.param_groups[0]["lr"] = 0.1 / (1 + steps_here)
        if "average" in habits:
            average.update_parameters(model)
        if "eval" in habits and step.last_of_epoch:
            model.eval()
            with torch.no_grad():
                loss_of(model, next(iter(DataLoader(test, 64))))
    state = average if "average" in habits else model
    bits = b"".join(value.numpy().tobytes() for value in state.state_dict().values())
    print(f"done {hashlib.sha256(bits).hexdigest()} {metric.count}")


def program(*habits):
    return [sys.executable, "-B", __file__, "--program", *habits]


class QuietTest(ScenarioTest):
    def assert_equal_bits(self, *habits, **of_joiner):
        """One joins, and the first is killed."""
        job, learners = self.running_job([0, 1], program=program(*habits), epochs=10, shard_milliseconds=250)
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

    def assert_refused(self, habit, said):
        """The one that joins is refused, with these words in its termination message."""
        # One learner before, because two may differ already. It trains until the other is there.
        job, learners = self.running_job(
            [0], program=program(habit), epochs=200, shard_milliseconds=50,
            environment={"PLIANT_TEST_SETTINGS": "checkStateEverySteps=5"},
        )  # fmt: skip
        joiner = job.start_learner(1)
        job.plan([*learners, joiner])
        self.assertEqual(joiner.exit_code(), 2, "a failure that is not tried again")
        self.assertRegex(joiner.termination()["message"], said)
        problem = job.wait("the coordinator says so", lambda: job.progress().get("problem"))
        self.assertRegex(problem["message"], said)
        return job

    def test_a_schedule_that_is_not_registered_a_model_in_evaluation_mode_and_two_backward_passes(self):
        self.assert_equal_bits("schedule", "eval", "passes")

    def test_data_that_change_after_the_workers_were_forked_and_an_average_that_is_evaluated(self):
        self.assert_equal_bits("data", "average", TOY_WORKERS="2")

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
        train(set(sys.argv[2:]))
    else:
        unittest.main(verbosity=2)
