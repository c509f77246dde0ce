"""kubectl pliant logs: learners that come, leave and crash; connections that break; its own end."""

import json
import signal
import subprocess
import time
import unittest

from kubectl_pliant.log_lines import Position, shown
from kubectl_pliant.pods import read_learner
from kubectl_pliant.watch import EventDecoder
from play import JOBS, ProgramTest


class LinesTest(unittest.TestCase):
    def test_lines_that_were_printed_before_are_left_out(self) -> None:
        log = [b"2026-11-27T11:30:00.1Z a\n", b"2026-11-27T11:30:00.1Z b\n", b"2026-11-27T11:30:00.25Z c\n"]
        for printed in range(len(log) + 1):
            with self.subTest(printed=printed):
                position = Position()
                first = [position.take(line) for line in log[:printed]]
                position.resume()
                second = [position.take(line) for line in log]
                self.assertEqual([line for line in first + second if line is not None], [b"a\n", b"b\n", b"c\n"])

    def test_it_resumes_at_a_whole_second(self) -> None:
        position = Position()
        self.assertIsNone(position.resume())
        position.take(b"2026-11-27T13:30:00.999+02:00 a\n")
        self.assertEqual(position.resume(), "2026-11-27T11:30:00Z")

    def test_a_line_without_a_time_is_the_rest_of_one(self) -> None:
        self.assertEqual(Position().take(b"abc def\n"), b"abc def\n")

    def test_a_line_is_printed_with_its_prefix(self) -> None:
        for line, want in (
            (b"a\tb\n", ["p: a\tb"]),
            (b"10%\r20%\r\n", ["p: 10%", "p: 20%"]),
            (b"\x1b[2J\xff\n", ["p: \\x1b[2J\ufffd"]),
            (b"\n", ["p: "]),
        ):
            with self.subTest(line=line):
                self.assertEqual(shown("p", line), want)


class EventDecoderTest(unittest.TestCase):
    def decode(self, text: str) -> list[str]:
        decoder = EventDecoder()
        events = [decoder.feed(line.encode()) for line in text.splitlines(keepends=True)]
        return [event.kind for event in events if event is not None]

    def test_events_are_found_and_what_is_none_is_left_out(self) -> None:
        event = json.dumps({"type": "ADDED", "object": {"a": {"b": 1}}}, indent=4)
        short = json.dumps({"type": "DELETED", "object": {}})
        self.assertEqual(self.decode(f"{event}\n{short}\n{event}\n"), ["ADDED", "DELETED", "ADDED"])
        self.assertEqual(self.decode(f"{event[:-10]}\n}}\n{short}\n"), ["DELETED"])
        self.assertEqual(self.decode('{"type": 5}\n[]\n}\n5\n'), [])


class PodsTest(unittest.TestCase):
    def test_a_malformed_pod_is_no_learner(self) -> None:
        for value in (None, 5, {}, {"metadata": {"name": "a"}}, {"metadata": {"name": 5, "uid": "u"}}):
            with self.subTest(value=value):
                self.assertIsNone(read_learner(value))
        learner = read_learner({"metadata": {"name": "a", "uid": "u", "labels": {"pliant.dev/learner": "٣"}}})
        assert learner is not None
        self.assertEqual((learner.prefix, learner.has_log, learner.ended), ("a", False, False))


class FollowTest(ProgramTest):
    def pod(self, number: int) -> dict:
        pods = self.cluster.read("pods.json")["items"]
        return next(each for each in pods if each["metadata"]["labels"]["pliant.dev/learner"] == str(number))

    def ended(self, number: int) -> dict:
        status = {"phase": "Succeeded", "containerStatuses": [{"name": "learner", "state": {"terminated": {}}}]}
        return {**self.pod(number), "status": status}

    def running(self, number: int) -> dict:
        status = {"phase": "Running", "containerStatuses": [{"name": "learner", "state": {"running": {}}}]}
        return {**self.pod(number), "status": status}

    def job(self, phase: str) -> dict:
        job = self.cluster.read(f"{JOBS}.json")["items"][0]
        return {**job, "status": {**job["status"], "phase": phase}}

    def event(self, kind: str, value: dict, after: float = 0.1) -> dict:
        return {"after": after, "event": {"type": kind, "object": value}}

    def follow(self) -> list[str]:
        ended = self.run_it("logs -f digits")
        self.assertEqual((ended.code, ended.stderr), (0, "digits is Succeeded\n"))
        return ended.stdout.splitlines()

    def test_learners_come_and_crash_and_connections_break(self) -> None:
        events = [
            self.event("MODIFIED", self.running(11)),
            self.event("MODIFIED", self.ended(2), 0.3),
            self.event("DELETED", self.ended(10)),
            self.event("MODIFIED", self.ended(11)),
        ]
        self.cluster.write("watch-pods.json", events)
        self.cluster.write(f"watch-{JOBS}.json", [self.event("MODIFIED", self.job("Succeeded"), 1.5)])
        lines = self.follow()
        of_2 = [line for line in lines if line.startswith("learner-2: ")]
        self.assertEqual(of_2, ["learner-2: epoch 3", "learner-2: loss 0.213", "learner-2: \taccuracy 0.91"])
        of_0 = [line for line in lines if line.startswith("learner-0: ")]
        self.assertEqual(len(of_0), 2)
        self.assertIn("learner-11: a learner that came later", lines)
        self.assertEqual(len(lines), 2 + 3 + 4 + 1, lines)

    def test_a_watch_that_dies_is_started_again(self) -> None:
        items = self.cluster.read("pods.json")["items"]
        later = [self.ended(2), self.ended(10), self.ended(11)]
        self.cluster.write("watch-pods.json", [{"after": 0.1, "save": [*items[:1], *later]}, {"die": True}])
        self.cluster.write(f"watch-{JOBS}.json", [self.event("MODIFIED", self.job("Succeeded"), 2.5)])
        self.assertIn("learner-11: a learner that came later", self.follow())

    def test_a_job_that_has_ended_is_printed_to_its_end(self) -> None:
        self.cluster.write("pods.json", {"items": [self.ended(2), self.ended(10)]})
        self.cluster.write(f"{JOBS}.json", {"items": [self.job("Succeeded")]})
        self.assertEqual(len(self.follow()), 3 + 4)

    def test_a_log_that_ends_before_its_pod_is_read_again(self) -> None:
        log = self.cluster.folder / "logs" / "digits-00000-2.txt"
        log.write_text("2026-11-27T11:30:00.1Z a\n#end\n2026-11-27T11:30:00.2Z b\n")
        self.cluster.write("pods.json", {"items": [self.running(2)]})
        self.cluster.write("watch-pods.json", [self.event("MODIFIED", self.ended(2), 2.0)])
        self.cluster.write(f"watch-{JOBS}.json", [self.event("MODIFIED", self.job("Succeeded"), 0.5)])
        self.assertEqual(self.follow(), ["learner-2: a", "learner-2: b"])

    def test_a_job_that_is_deleted(self) -> None:
        self.cluster.write("pods.json", {"items": []})
        self.cluster.write(f"watch-{JOBS}.json", [self.event("DELETED", self.job("Running"))])
        ended = self.run_it("logs -f digits")
        self.assertEqual((ended.code, ended.stdout, ended.stderr), (0, "", "digits is deleted\n"))

    def test_one_may_not_watch(self) -> None:
        said = 'Error from server (Forbidden): pods is forbidden: User "jane" cannot watch resource "pods" in API group "" in the namespace "team-a"'
        self.cluster.fault("pods --watch", stderr=said, code=1)
        ended = self.run_it("logs -f digits")
        self.assertEqual(ended.code, 1)
        self.assertIn("forbidden: you may not watch pods in namespace team-a", ended.stderr)

    def test_ctrl_c_ends_it_and_the_processes_that_it_started(self) -> None:
        context = self.cluster.folder.name  # in the arguments of its processes, and of no others
        process = self.cluster.start(["logs", "-f", "digits", f"--context={context}"])
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        assert process.stdout and process.stderr
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.assertTrue(process.stdout.readline())
        time.sleep(0.5)
        listed = ["ps", "-eo", "args"]
        before = subprocess.run(listed, capture_output=True, text=True, check=True).stdout
        self.assertGreaterEqual(before.count(f"--context={context} "), 2)  # two watches
        process.send_signal(signal.SIGINT)
        self.assertEqual((process.wait(10), process.stderr.read()), (130, ""))
        left = subprocess.run(listed, capture_output=True, text=True, check=True).stdout
        self.assertNotIn(context, left)


if __name__ == "__main__":
    unittest.main()
