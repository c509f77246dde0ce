"""kubectl pliant ui: the address that it prints answers until Ctrl-C; a saved page is a file."""

import os
import signal
import stat
import unittest
import urllib.request
from urllib.error import URLError

from play import ProgramTest


class UiTest(ProgramTest):
    def start(self, *arguments: str, **environment: str) -> str:
        """Its first line."""
        self.process = self.cluster.start(["ui", *arguments], **environment)
        self.addCleanup(self.process.wait)
        self.addCleanup(self.process.terminate)  # not killed: it ends the kubectl that it started
        assert self.process.stdout and self.process.stderr
        self.addCleanup(self.process.stdout.close)
        self.addCleanup(self.process.stderr.close)
        return self.process.stdout.readline().strip()

    def test_the_address_answers_until_ctrl_c(self) -> None:
        address = self.start("--no-browser")
        self.assertRegex(address, r"\Ahttp://127\.0\.0\.1:\d+/\Z")
        with urllib.request.urlopen(address, timeout=10) as answer:
            self.assertIn(b"<title>Pliant</title>", answer.read())
        self.process.send_signal(signal.SIGINT)
        self.assertEqual(self.process.wait(10), 130)
        with self.assertRaises(URLError):
            urllib.request.urlopen(address, timeout=10)

    def test_a_browser_opens_it(self) -> None:
        browser = self.cluster.folder / "browser"
        browser.write_text(f'#!/bin/sh\necho "$1" > "{self.cluster.folder}/opened"\n')
        browser.chmod(browser.stat().st_mode | stat.S_IXUSR)
        address = self.start(BROWSER=f"{browser} %s", DISPLAY=os.environ.get("DISPLAY", ":9"))
        assert self.process.stderr
        self.assertEqual(self.process.stderr.readline(), "Ctrl-C ends it\n")
        self.assertEqual((self.cluster.folder / "opened").read_text().strip(), address)

    def test_an_operator_without_the_page(self) -> None:
        self.cluster.write("http-6061.json", {})
        self.assert_fails("ui --no-browser", 1, "the operator answers 404: nothing is here")

    def test_a_saved_page_is_a_file(self) -> None:
        text = "<!doctype html><title>saved</title>\n"
        self.cluster.write("http-6061.json", {"/saved.html?from=1795777200000": [200, text]})
        file = self.cluster.folder / "page.html"
        ended = self.cluster.run(["ui", "--save", str(file)])
        self.assertEqual((ended.code, ended.stdout), (0, ""))
        self.assertRegex(ended.stderr, r"\A/\S+/page\.html has the last 1h00m of pod pliant-\S+'s record\n\Z")
        self.assertEqual(file.read_text(), text)

    def test_a_saved_page_goes_back_as_far_as_is_said(self) -> None:
        for since, begin in (("90s", 1795780710), ("30m", 1795779000), ("2h", 1795773600), ("3d", 1795521600)):
            with self.subTest(since):
                self.cluster.write("http-6061.json", {f"/saved.html?from={begin}000": [200, since]})
                file = self.cluster.folder / "page.html"
                self.assertEqual(self.cluster.run(["ui", "--since", since, "--save", str(file)]).code, 0)
                self.assertEqual(file.read_text(), since)

    def test_a_page_that_cannot_be_saved(self) -> None:
        self.cluster.write("http-6061.json", {"/saved.html?from=1795777200000": [200, "x"]})
        for file in ("/", "/nowhere/page.html", "", "a\x1b[31m\n/b"):
            with self.subTest(file):
                ended = self.cluster.run(["ui", "--save", file])
                self.assertEqual((ended.code, ended.stdout), (1, ""))
                self.assertRegex(ended.stderr, r"\A[^\n\x1b]*--save: [^\n\x1b]* cannot be written: [^\n]+; name another file\n\Z")
        self.cluster.write("http-6061.json", {})
        self.assert_fails("ui --save page.html", 1, "this operator has no page that can be saved: update it, or turn its page on")

    def test_times_that_are_none(self) -> None:
        for since in ("0h", "2", "h", "-1h", "1w", "1.5h", "1000000s", "", "²h"):
            with self.subTest(since):
                ended = self.cluster.run(["ui", "--save", "page.html", f"--since={since}"])
                self.assertEqual(ended.code, 2)
                self.assertIn("must be a number with one of the units s, m, h and d", ended.stderr)
        self.assert_fails("ui --since 2h", 2, "--since is for a saved page: name its file with --save")


if __name__ == "__main__":
    unittest.main()
