"""What Prometheus reads about a training job: statistics of the coordinator and of each learner that agree."""

import re
import time
import unittest
import urllib.request

from harness import ScenarioTest, write_pace

JOB = '{job_name="toy",job_namespace="test"'


def figures(text):
    """Values by series."""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return {series: float(value) for series, value in (line.rsplit(" ", 1) for line in lines)}


class MetricsTest(ScenarioTest):
    def scrape(self, learner):
        (started,) = learner.logged("learner starts")
        with urllib.request.urlopen(f"http://127.0.0.1:{started['metricsPort']}/metrics", timeout=10) as answer:
            self.assertTrue(answer.headers["Content-Type"].startswith("text/plain; version=0.0.4"))
            return figures(answer.read().decode())

    def test_a_waiting_process_takes_no_processor(self):
        """One learner is slow; the other waits for its shards, and the coordinator for messages of both."""
        job = self.make_job(epochs=5000, shard_milliseconds=50)  # it sleeps during a shard
        job.start_coordinator()
        slow = job.folder / "slow"
        write_pace(slow, 250)
        learners = [job.start_learner(0), job.start_learner(1, PLIANT_PACE_FILE=str(slow))]
        job.plan(learners)
        job.wait_for_members(learners)
        job.wait_for_step(2)
        processes = [job.coordinator, *learners]
        before = [process.processor_seconds() for process in processes]
        began = time.monotonic()
        time.sleep(3)
        elapsed = time.monotonic() - began
        for process, used in zip(processes, before):
            self.assertLess((process.processor_seconds() - used) / elapsed, 0.3, process.name)

    def test_learners_and_coordinator_tell_of_the_same_training(self):
        job = self.make_job(epochs=5000)  # too long to end by itself
        job.start_coordinator()
        learners = [job.start_learner(number, PLIANT_METRICS_PORT="0") for number in range(3)]
        job.plan(learners)
        job.wait_for_members(learners)
        step = job.progress().get("step") or 0
        job.wait_for_step(step + 20)

        seen = [self.scrape(learner) for learner in learners]
        # All take part in the same steps, except for one that may still run.
        steps = [each[f"pliant_learner_steps_total{JOB}}}"] for each in seen]
        self.assertGreaterEqual(min(steps), 20)
        for each in seen:
            self.assertEqual(each[f"pliant_learner_member{JOB}}}"], 1)
            for name in ("samples_total", "compute_seconds_total", "sent_bytes_total", "received_bytes_total"):
                self.assertGreater(each[f"pliant_learner_{name}{JOB}}}"], 0, name)
            # The series exists but may be 0: the data are in memory or generated.
            self.assertIn(f"pliant_learner_data_wait_seconds_total{JOB}}}", each)
        # They share batches of 32 samples; the last batch of an epoch is smaller.
        samples = sum(each[f"pliant_learner_samples_total{JOB}}}"] for each in seen)
        self.assertTrue(16 * min(steps) <= samples <= 32 * max(steps), (samples, steps))

        def committed():
            status, text = job.status("/metrics")
            self.assertEqual(status, 200)
            return figures(text)[f"pliant_train_samples_total{JOB}}}"]

        job.wait("the coordinator counts them", lambda: committed() >= 16 * min(steps))

    def test_a_taken_port_is_no_reason_not_to_train(self):
        job = self.make_job()
        job.start_coordinator()
        learners = [job.start_learner(number, PLIANT_METRICS_PORT=str(job.status_port)) for number in range(2)]
        job.plan(learners)
        job.wait_for_members(learners)
        for learner in learners:
            self.assertTrue(learner.logged("no metrics"))
        self.assert_completes(job, learners)


if __name__ == "__main__":
    unittest.main(verbosity=2)
