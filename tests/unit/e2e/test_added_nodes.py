import unittest

from story import added_node, ordinary_pod, slices


def pod(gpus: int, reason: str = "Unschedulable", status: str = "False") -> dict:
    return {
        "spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": str(gpus)}}}, {"resources": {}}]},
        "status": {"conditions": [{"type": "PodScheduled", "status": status, "reason": reason}]},
    }


class AddedNodeTest(unittest.TestCase):
    def test_an_autoscaler_counts_what_the_scheduler_cannot_place(self) -> None:
        pods = {"items": [pod(2), pod(1), pod(4, "SchedulingGated"), pod(8, "", "True"), {"spec": {"containers": []}}]}
        self.assertEqual(added_node.gpus_without_a_node(pods), 3)


class FillingTest(unittest.TestCase):
    def test_only_slow_pods_are_named(self) -> None:
        self.assertEqual(ordinary_pod.late({"a": 2.5, "b": 30.0}), ())
        self.assertEqual(ordinary_pod.late({"a": 2.5, "b": 31.0}), ("b took 31.0 s, more than 30",))


class SlicesTest(unittest.TestCase):
    def test_learners_that_ask_for_something_else_are_named(self) -> None:
        def pods(limits: dict) -> dict:
            spec = {"containers": [{"resources": {"limits": limits}}]}
            return {"items": [{"metadata": {"name": "a"}, "spec": spec}]}

        self.assertEqual(slices.asks_for_others(pods({slices.RESOURCE: "1"})), ())
        for limits in ({}, {"nvidia.com/gpu": "1"}, {slices.RESOURCE: "1", "nvidia.com/gpu": "1"}):
            self.assertIn("a asks for", slices.asks_for_others(pods(limits))[0])
        self.assertEqual(len(slices.asks_for_others({"items": []})), 1)


if __name__ == "__main__":
    unittest.main()
