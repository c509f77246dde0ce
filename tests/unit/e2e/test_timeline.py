import copy
import json
import shutil
import subprocess
import unittest
from pathlib import Path

import builders
from story import timeline_checks
from story.checks import Check
from story.timeline import NodeUse, Piece, Recorded

ROOT = Path(__file__).resolve().parents[3]
ENGINE = shutil.which("node") or shutil.which("nodejs")
JOB = "ns/training-1"
OTHER = "ns/training-2"


def change(seconds: float, **values: object) -> dict:
    return {"at": int(seconds * 1000), **values}


# training-1 holds 4 GPUs from 10 s on, 2 from 20 s on, then training-2 the other 2; training-1 ends at 30 s.
DOCUMENT = {
    "replica": "pliant-a_1",
    "from": 5000,
    "now": 40_000,
    "frame": {
        "job": {JOB: {"queue": "default", "phase": "Queued", "reason": "it waits"}},
        "node": {"n1": {"pool": "default", "gpus": 3, "ready": 1}, "n2": {"gpus": 3, "used": 1}},
    },
    "changes": [
        change(10, held=JOB, node="n1", set={"gpus": 2}),
        change(10, held=JOB, node="n2", set={"gpus": 2}),
        change(10, node="n1", set={"used": 2}),
        change(10, node="n2", set={"used": 3}),
        change(11, job=JOB, set={"phase": "Running", "reason": "4 of 6 GPUs"}),
        change(20, held=JOB, node="n2", set=None),
        change(20, held=OTHER, node="n2", set={"gpus": 2}),
        change(20, job=OTHER, set={"queue": "default", "phase": "Running"}),
        change(30, held=JOB, node="n1", set=None),
        change(30, node="n1", set={"used": None}),
        change(30, job=JOB, set={"phase": "Succeeded", "code": "Succeeded", "reason": "complete"}),
    ],
}


def document(**changes: object) -> dict:
    return {**copy.deepcopy(DOCUMENT), **changes}


def without(held: str, seconds: float) -> dict:
    """The document without the changes of what a job holds at one time."""
    changes = [each for each in DOCUMENT["changes"] if (each["at"], each.get("held")) != (seconds * 1000, held)]
    return document(changes=changes)


def worlds(*sizes: tuple[float, int]) -> list[builders.World]:
    return [builders.world(time, builders.training(gpus)) for time, gpus in sizes]


SEEN = worlds((7, 0), (9.5, 0), (10.5, 4), (15, 4), (20.5, 2), (25, 2), (31, 0), (35, 0))


class RecordedTest(unittest.TestCase):
    def test_changes_of_one_time_are_one_moment(self) -> None:
        recorded = Recorded.parse(DOCUMENT)
        self.assertEqual([each.time for each in recorded.moments], [5, 10, 11, 20, 30])
        self.assertEqual(recorded.moments[1].held, {JOB: 4})
        self.assertEqual(recorded.moments[1].nodes, {"n1": NodeUse(2, 2, 3), "n2": NodeUse(2, 3, 3)})
        self.assertEqual(recorded.moments[4].nodes["n1"], NodeUse(0, 0, 3))
        self.assertEqual((recorded.begin, recorded.end, recorded.jobs()), (5.0, 40.0, {JOB, OTHER}))

    def test_pieces_have_no_gap(self) -> None:
        pieces = Recorded.parse(DOCUMENT).pieces(JOB)
        self.assertEqual(pieces, [Piece(5, 10, 0), Piece(10, 20, 4), Piece(20, 30, 2), Piece(30, 40, 0)])

    def test_a_node_that_goes(self) -> None:
        gone = Recorded.parse(document(changes=[change(6, node="n1", set=None)]))
        self.assertEqual({*gone.moments[1].nodes}, {"n2"})


class ChecksTest(unittest.TestCase):
    def assert_problem(self, check: Check, pattern: str) -> None:
        self.assertRegex("\n".join(check.problems), pattern)

    def test_nodes(self) -> None:
        self.assertEqual(timeline_checks.check_nodes([Recorded.parse(DOCUMENT)]).problems, ())
        for values, problem in (
            ({"used": 1}, r"pliant-a_1, n1 at 10.000: jobs hold 2, pods use 1 of 3 GPUs"),
            ({"gpus": 1}, r"pliant-a_1, n1 at 10.000: jobs hold 2, pods use 2 of 1 GPUs"),
        ):
            broken = document()
            broken["changes"][2]["set"].update(values)
            with self.subTest(values=values):
                self.assert_problem(timeline_checks.check_nodes([Recorded.parse(broken)]), problem)

    def test_worlds(self) -> None:
        def check(recorded: dict, seen: list[builders.World]) -> Check:
            return timeline_checks.check_worlds([Recorded.parse(recorded)], seen, "ns")

        self.assertEqual(check(DOCUMENT, SEEN).problems, ())
        self.assert_problem(check(without(JOB, 20), SEEN), r"ns/training-1 had 2 GPUs at 25.000; pliant-a_1 has \[4\]")
        # 0 GPUs until 13 s: the change is three seconds apart.
        late = [*SEEN[:2], *worlds((10.5, 0), (12.5, 0), (15, 4)), *SEEN[4:]]
        self.assert_problem(check(DOCUMENT, late), r"had 0 GPUs at 12.500; pliant-a_1 has \[4\]")
        # The watcher saw a change a second later.
        self.assertEqual(check(DOCUMENT, [*SEEN[:4], *worlds((20.5, 4), (21.5, 4)), *SEEN[5:]]).problems, ())
        # The record has a size that nobody saw.
        bump = document(changes=[*DOCUMENT["changes"], change(36, held=JOB, node="n1", set={"gpus": 1})])
        bump["changes"].append(change(38, held=JOB, node="n1", set=None))
        looked = [*SEEN, *worlds((37, 0))]
        self.assert_problem(check(bump, looked), r"has 1 GPUs of ns/training-1 at 36.000; \[0, 0\] were seen")
        self.assert_problem(check(document(changes=[]), worlds((7, 0))), "the timeline has no job with GPUs")

    def test_replicas(self) -> None:
        def check(**changes: object) -> Check:
            return timeline_checks.check_replicas([Recorded.parse(DOCUMENT), Recorded.parse(document(**changes))])

        later = [{**each, "at": each["at"] + 500} for each in DOCUMENT["changes"]]
        self.assertEqual(check(replica="pliant-b_1", changes=later).problems, ())
        # It saw half of the pods first.
        blink = [change(9.8, held=JOB, node="n1", set={"gpus": 1}), *DOCUMENT["changes"]]
        self.assertEqual(check(replica="pliant-b_1", changes=blink).problems, ())
        short = without(JOB, 20)["changes"]
        self.assert_problem(check(replica="pliant-b_1", changes=short), r"ns/training-1: pliant-a_1 has .*2 from 20.0")
        much = [{**each, "at": each["at"] + 4000} for each in DOCUMENT["changes"] if each["at"] < 30_000]
        self.assert_problem(check(replica="pliant-b_1", changes=much), r"ns/training-1: ")
        self.assert_problem(check(), "no two replicas recorded the same time")
        begins_at_the_end = {"from": 40_000, "changes": []}
        self.assert_problem(check(replica="pliant-b_1", **begins_at_the_end), "no two replicas recorded the same time")

    def test_an_order_of_sizes_that_differs(self) -> None:
        def sizes(replica: str, *gpus: int) -> Recorded:
            changes = [change(10 + 6 * i, held=JOB, node="n1", set={"gpus": each}) for i, each in enumerate(gpus)]
            return Recorded.parse(document(replica=replica, changes=changes))

        self.assertEqual(timeline_checks.check_replicas([sizes("a", 3, 2, 1), sizes("b", 3, 2, 1)]).problems, ())
        self.assertNotEqual(timeline_checks.check_replicas([sizes("a", 3, 2, 1), sizes("b", 2, 3, 1)]).problems, ())

    def test_the_history_outlives_a_replica(self) -> None:
        killed = Recorded.parse(document(now=20_000, changes=DOCUMENT["changes"][:5]))
        survivor = Recorded.parse(document(replica="pliant-b_1"))
        self.assertEqual(timeline_checks.check_outlived([killed, survivor], {"pliant-a_1": 21.0}).problems, ())
        self.assert_problem(timeline_checks.check_outlived([killed], {"pliant-a_1": 21.0}), "nobody else has what pliant-a")
        young = Recorded.parse(document(replica="pliant-b_1", **{"from": 22_000}, changes=[]))
        self.assert_problem(timeline_checks.check_outlived([killed, young], {"pliant-a_1": 21.0}), "nobody else has")
        self.assert_problem(timeline_checks.check_outlived([killed, survivor], {}), "no replica was killed")


class LanesTest(unittest.TestCase):
    TABLE = (
        "NAME         QUEUE     GPUS   PHASE       SAMPLES/S   REASON                     AGE\n"
        "training-1   default   4      Running     1234        4 of 8 GPUs: fair share    9m\n"
        "training-2   default          Suspended                                          8m\n"
    )

    def lanes(self) -> dict[str, timeline_checks.Lane]:
        return {
            JOB: timeline_checks.Lane(
                JOB, "Running", 4, "FairShare: 4 of 8 GPUs: fair share", f"{JOB}, queue default, Running, 4 GPUs"
            ),
            OTHER: timeline_checks.Lane(OTHER, "Suspended", 0, "–", f"{OTHER}, queue default, Suspended, 0 GPUs"),
        }

    def test_cells_begin_below_their_titles(self) -> None:
        found = timeline_checks.lanes_of_kubectl(self.TABLE, "ns")
        self.assertEqual(found[JOB], timeline_checks.Lane(JOB, "Running", 4, "4 of 8 GPUs: fair share"))
        self.assertEqual(found[OTHER], timeline_checks.Lane(OTHER, "Suspended", 0, ""))
        self.assertEqual(timeline_checks.lanes_of_kubectl("", "ns"), {})

    def test_the_same(self) -> None:
        kubectl = timeline_checks.lanes_of_kubectl(self.TABLE, "ns")
        self.assertEqual(timeline_checks.lane_problems(self.lanes(), kubectl), [])
        lanes = self.lanes()
        lanes[OTHER] = timeline_checks.Lane(**{**vars(lanes[OTHER]), "reason": "Suspended"})
        self.assertEqual(timeline_checks.lane_problems(lanes, kubectl), [])

    def test_each_difference_is_found(self) -> None:
        kubectl = timeline_checks.lanes_of_kubectl(self.TABLE, "ns")
        for name, values in (
            (JOB, {"phase": "Resizing"}), (JOB, {"gpus": 3}), (JOB, {"reason": "FairShare: 4 of 8"}), (JOB, {"label": "x"}),
            (OTHER, {"reason": "it waits"}), (OTHER, {"label": f"{OTHER}, queue default, Suspended, 1 GPUs"}),
        ):  # fmt: skip
            with self.subTest(name=name, values=values):
                lanes = self.lanes()
                lanes[name] = timeline_checks.Lane(**{**vars(lanes[name]), **values})
                in_the_label = "phase" in values or "gpus" in values
                self.assertEqual(len(timeline_checks.lane_problems(lanes, kubectl)), 1 + in_the_label)
        lanes = self.lanes()
        del lanes[OTHER]
        problems = timeline_checks.lane_problems(lanes, kubectl)
        self.assertEqual(problems, ["the page has ['ns/training-1'], kubectl ['ns/training-1', 'ns/training-2']"])


@unittest.skipUnless(ENGINE, "needs Node.js")
class TellTest(unittest.TestCase):
    """The page's own scripts tell the document."""

    def tell(self, *documents: dict) -> list[dict]:
        program = [str(ENGINE), str(ROOT / "tests/e2e/page/tell.js")]
        ran = subprocess.run(program, input=json.dumps(documents), capture_output=True, text=True, timeout=120, check=True)
        return json.loads(ran.stdout)

    def test_lanes_and_stacks(self) -> None:
        told = self.tell(DOCUMENT)
        lanes = timeline_checks.lanes_of_page(told[0])
        self.assertEqual(lanes[JOB].reason, "Succeeded: complete")
        self.assertEqual([each["state"] for each in told[0]["lanes"]], ["running", "ended"])
        self.assertEqual([each["at"] for each in told[0]["stacks"]], [5000, 10_000, 11_000, 20_000, 30_000])
        self.assertEqual(timeline_checks.check_stacks(told, 6).problems, ())

    def test_a_stack_that_is_too_high(self) -> None:
        broken = document()
        broken["changes"][0]["set"]["gpus"] = 5
        problems = timeline_checks.check_stacks(self.tell(broken), 6).problems
        self.assertRegex(problems[0], "^at 10000: ns/training-1 7, .*: 7 of 6 GPUs")
        self.assertRegex(timeline_checks.check_stacks(self.tell(DOCUMENT), 5).problems[0], "6 of 5 GPUs")
        self.assertEqual(timeline_checks.check_stacks(self.tell(document(changes=[])), 6).problems, ("no job has a band",))

    def test_a_band_that_is_negative(self) -> None:
        told = self.tell(DOCUMENT)
        bands = told[0]["stacks"][1]["bands"]
        bands[0]["gpus"] += 3
        bands[-1]["gpus"] -= 3
        self.assertEqual(timeline_checks.check_stacks(told, 6).problems, ("at 10000: idle has -2 GPUs",))


if __name__ == "__main__":
    unittest.main()
