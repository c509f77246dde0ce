import argparse
import unittest

from story import where
from story.errors import StoryError


def node(name: str, gpus: int, *, ready: bool = True, cordoned: bool = False) -> dict:
    return {
        "metadata": {"name": name},
        "spec": {"unschedulable": True} if cordoned else {},
        "status": {
            "allocatable": {where.GPU: str(gpus), "cpu": "3500m"},
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
        },
    }


def pod(node_name: str, gpus: int, phase: str = "Running", namespace: str = "others") -> dict:
    return {
        "metadata": {"namespace": namespace},
        "spec": {"nodeName": node_name, "containers": [{"resources": {"requests": {where.GPU: str(gpus)}}}, {}]},
        "status": {"phase": phase},
    }


def parsed(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    where.add_arguments(parser)
    return parser.parse_args(arguments)


class FreeGpusTest(unittest.TestCase):
    def test_are_those_that_a_story_could_have(self) -> None:
        two = [node("a", 4), node("b", 8)]
        for name, nodes, pods, free in (
            ("all", two, [], 12),
            ("less those of others", two, [pod("a", 1), pod("b", 2)], 9),
            ("an ended pod holds none", two, [pod("a", 1, "Failed")], 12),
            ("an earlier story goes", two, [pod("a", 4, namespace="pliant-demo")], 12),
            ("a pod elsewhere does not matter", two, [pod("c", 1)], 12),
            ("a cordoned node takes no pods", [node("a", 4), node("b", 8, cordoned=True)], [pod("b", 8)], 4),
            ("nor does one that is not ready", [node("a", 4), node("b", 8, ready=False)], [], 4),
        ):
            with self.subTest(name):
                self.assertEqual(where.free_gpus(nodes, pods), free)


class StageTest(unittest.TestCase):
    def test_the_command_line_says_what_it_lacks(self) -> None:
        for arguments, problem in (
            (["--cluster=current"], "--cluster=current needs --learner-image"),
            (["--cluster=current", "--learner-image=x"], "--cluster=current needs --checkpoint-claim"),
            (["--learner-image=x"], "--learner-image is for --cluster=current"),
        ):
            with self.subTest(arguments), self.assertRaisesRegex(StoryError, problem):
                where.stage_of(parsed(*arguments))


if __name__ == "__main__":
    unittest.main()
