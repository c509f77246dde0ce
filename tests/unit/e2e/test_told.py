import unittest

import builders
from story.resizes import Request
from story.told import Told

NAMES = ("training-1", "training-2")
HASHES = {name: f"hash of {name}" for name in NAMES}


def ended(name: str, uid: str, sha256: str) -> builders.Training:
    ends = {
        "phase": "Succeeded", "step": 240, "steps_total": 240, "accuracy": 0.97, "parameters_sha256": sha256,
        "evaluations": ((120, 0.9), (240, 0.97)),
    }  # fmt: skip
    return builders.Training(builders.job(name, uid=uid, **ends), (), None)


class ToldTest(unittest.TestCase):
    def test_it_holds_if_both_ended_like_their_undisturbed_runs(self) -> None:
        requests = [Request("apply 1", 0.0)]
        resizes = [("training-1", builders.resize(0, 8, running=4.0))]
        for second, held in ((HASHES["training-2"], True), ("another hash", False)):
            with self.subTest(held=held):
                first = ended("training-1", "u1", HASHES["training-1"])
                last = builders.world(9.0, first, ended("training-2", "u2", second))
                told = Told.of(NAMES, [builders.world(0.0), last], requests, resizes, HASHES)
                self.assertEqual(told.held, held)
                self.assertEqual([each.name for each in told.outcomes], [*NAMES])
                self.assertEqual([each.seconds for each in told.resizes], [4.0])

    def test_a_resize_that_loses_a_step_does_not_hold(self) -> None:
        last = builders.world(9.0, *(ended(name, name, HASHES[name]) for name in NAMES))
        told = Told.of(NAMES, [last], [], [("training-1", builders.resize(8, 4, running=4.0, lost=1))], HASHES)
        self.assertFalse(told.held)
