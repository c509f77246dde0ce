"""kubectl pliant ui: the address that it prints answers until Ctrl-C."""

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


if __name__ == "__main__":
    unittest.main()
