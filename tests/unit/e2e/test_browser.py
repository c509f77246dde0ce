import json
import os
import threading
import unittest
from collections.abc import Callable, Mapping

from browser import page_checks
from browser.chromium import Complaints
from browser.page import Band, Row, Stop
from browser.pipe import BrowserError, Pipe
from story import browsed


class PipeTest(unittest.TestCase):
    """Against a browser that is a thread at the other ends of the pipes."""

    def setUp(self) -> None:
        self.commands, to_browser = os.pipe()
        from_browser, self.answers = os.pipe()
        self.events: list[Mapping] = []
        self.pipe = Pipe(from_browser, to_browser, self.events.append)
        for each in (self.commands, to_browser, from_browser, self.answers):
            self.addCleanup(self.close, each)

    @staticmethod
    def close(descriptor: int) -> None:
        try:
            os.close(descriptor)
        except OSError:
            pass  # the test has closed it

    def answer(self, answers: Callable[[dict], bytes]) -> None:
        def run() -> None:
            asked = b""
            while not asked.endswith(b"\0"):
                asked += os.read(self.commands, 1)
            for byte in answers(json.loads(asked[:-1])):
                os.write(self.answers, bytes([byte]))

        thread = threading.Thread(target=run)
        thread.start()
        self.addCleanup(thread.join)

    def test_a_command_and_events_before_its_answer(self) -> None:
        def answers(asked: dict) -> bytes:
            self.assertEqual(asked, {"id": 1, "method": "Page.navigate", "params": {"url": "x"}, "sessionId": "s"})
            event = {"method": "Page.loaded", "params": {"é": 1}}
            texts = [event, {"id": 7, "result": {"of": "another"}}, {"id": 1, "result": {"ok": 1}}]
            return b"".join(json.dumps(each).encode() + b"\0" for each in texts)

        self.answer(answers)
        self.assertEqual(self.pipe.command("Page.navigate", {"url": "x"}, session="s"), {"ok": 1})
        self.assertEqual(self.events, [{"method": "Page.loaded", "params": {"é": 1}}])

    def test_a_malformed_or_late_answer_is_an_error(self) -> None:
        for text, said in (
            (b'{"id": 1, "error": {"message": "no such tab"}}\0', "X.y: no such tab"),
            (b"{\0", "a message is no JSON"),
            (b"5\0", "a message is no object"),
            (b"", "X.y has no answer after 0.2 s"),
        ):
            with self.subTest(said=said):
                self.setUp()
                self.answer(lambda asked, text=text: text)
                with self.assertRaisesRegex(BrowserError, said):
                    self.pipe.command("X.y", {}, seconds=0.2)

    def test_a_browser_that_ends(self) -> None:
        os.close(self.answers)
        with self.assertRaisesRegex(BrowserError, "the browser has gone"):
            self.pipe.listen(5.0)
        os.close(self.commands)
        with self.assertRaisesRegex(BrowserError, "the browser has gone"):
            self.pipe.command("X.y", {})


class ComplaintsTest(unittest.TestCase):
    def test_each_kind(self) -> None:
        complaints = Complaints()
        for method, parameters in (
            ("Runtime.consoleAPICalled", {"type": "error", "args": [{"value": "bad"}, {"description": "Error: x"}]}),
            ("Runtime.consoleAPICalled", {"type": "log", "args": [{"value": "fine"}]}),
            ("Runtime.exceptionThrown", {"exceptionDetails": {"text": "", "exception": {"description": "TypeError: y"}}}),
            ("Log.entryAdded", {"entry": {"level": "error", "text": "404"}}),
            ("Log.entryAdded", {"entry": {"level": "verbose", "text": "fine"}}),
            ("Audits.issueAdded", {"issue": {"code": "ContentSecurityPolicyIssue", "details": {
                "contentSecurityPolicyIssueDetails": {"violatedDirective": "script-src-elem"}}}}),
            ("Network.requestWillBeSent", {"request": {"url": "http://127.0.0.1:5/app.js"}}),
            ("Network.requestWillBeSent", {"request": {"url": "http://127.0.0.1:55/app.js"}}),
            ("Network.requestWillBeSent", {"request": {"url": "data:,"}}),
            ("Target.created", {}),
        ):  # fmt: skip
            complaints.take({"method": method, "params": parameters})
        self.assertEqual(complaints.errors, ["error: bad Error: x", "TypeError: y", "404"])
        self.assertEqual(complaints.violations, ["script-src-elem: inline"])
        self.assertEqual(complaints.elsewhere("http://127.0.0.1:5"), ["http://127.0.0.1:55/app.js"])


def node(role: str, name: str = "", **more: object) -> Mapping:
    properties = [{"name": key, "value": {"value": value}} for key, value in more.items()]
    return {"role": {"value": role}, "name": {"value": name}, "properties": properties}


class ChecksTest(unittest.TestCase):
    def test_names(self) -> None:
        good = [node("RootWebArea", focusable=True), node("button", "Live"), node("StaticText"), node("generic")]
        self.assertEqual([*page_checks.name_problems(good)], [])
        self.assertEqual([*page_checks.name_problems([*good, node("button", " ")])], ["a button has no name"])
        self.assertEqual([*page_checks.name_problems([*good, node("generic", focusable=True)])], ["a generic has no name"])
        self.assertEqual([*page_checks.name_problems([*good, {**node("image"), "ignored": True}])], [])
        self.assertEqual([*page_checks.name_problems([])], ["the page has no controls"])

    def test_focus(self) -> None:
        stops = [Stop("live", True), Stop("stack", True)]
        self.assertEqual([*page_checks.focus_problems(stops, ["live", "stack"])], [])
        self.assertEqual([*page_checks.focus_problems(stops, ["live", "theme"])], ["Tab does not reach theme"])
        self.assertEqual(
            [*page_checks.focus_problems([Stop("live", False)], ["live"])], ["nobody sees that live has the focus"]
        )
        self.assertEqual([*page_checks.focus_problems([], [])], ["the page has nothing to reach"])

    def test_the_time_mark(self) -> None:
        def problems(*times: str, is_live: bool = True) -> int:
            return len([*page_checks.mark_problems([f"{each}: 8 GPUs held" for each in times], is_live)])

        self.assertEqual(problems("10:00:30", "10:00:20", "10:00:10", "10:00:20", "10:00:31"), 0)
        self.assertEqual(problems("10:00:30", "10:00:20", "10:00:10", "10:00:20", "10:00:31", is_live=False), 1)
        self.assertEqual(problems("10:00:30", "10:00:30", "10:00:30", "10:00:30", "10:00:30"), 1)
        self.assertEqual(problems("10:00:30", "10:00:20", "10:00:10", "10:00:10", "10:00:31"), 1)
        self.assertEqual(problems("10:00:30", "10:00:20", "10:00:10", "10:00:20", "10:00:20"), 1)

    def test_details(self) -> None:
        row = Row("ns/a, queue q", "ns/a", "Running", "4", "ns/a, queue q", "detail-title", {"Reason": "FairShare: x"})
        self.assertEqual([*page_checks.detail_problems([row])], [])
        self.assertEqual(browsed.lane_of(row).gpus, 4)
        for values in ({"title": "ns/ab, queue q"}, {"focus": ""}):
            with self.subTest(values=values):
                self.assertEqual(len([*page_checks.detail_problems([Row(**{**vars(row), **values})])]), 1)
        self.assertEqual([*page_checks.detail_problems([])], ["the list has no jobs"])

    def test_colours(self) -> None:
        one, other = Band("a", 4, {"1,1,1": 0.7, "255,255,255": 0.3}), Band("b", 4, {"2,2,2": 1.0})
        self.assertEqual([*page_checks.colour_problems([one, other, Band("idle", 0, {})])], [])
        self.assertEqual([*page_checks.colour_problems([one])], ["1 bands of the stack have pixels: a"])
        same = Band("c", 1, {**one.colours})
        self.assertEqual([*page_checks.colour_problems([one, same])], ["100% of the pixels of a and c are the same"])

    def test_texts(self) -> None:
        self.assertEqual([*page_checks.text_problems("code 1: <img src=x>", 0, "<img src=x>")], [])
        self.assertEqual(
            [*page_checks.text_problems("code 1: ", 1, "<img src=x>")],
            ["the page does not show <img src=x>", "the page has 1 images"],
        )

    def test_complaints(self) -> None:
        self.assertEqual([*page_checks.complaint_problems([], [], [])], [])
        self.assertEqual(len([*page_checks.complaint_problems(["e"], ["v"], ["http://x"])]), 3)


if __name__ == "__main__":
    unittest.main()
