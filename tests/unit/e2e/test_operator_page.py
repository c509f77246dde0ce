import json
import os
import stat
import subprocess
import tempfile
import unittest
from pathlib import Path

from story import operator_page
from story.errors import StoryError
from story.kubectl import Kubectl

_PICTURE = Path(__file__).resolve().parents[2] / "e2e" / "picture.js"

DOCUMENT = {
    "replica": "r", "sequence": 5, "from": 99_000, "begin": 99_000, "now": 140_000,
    "frame": {"node": {"n": {"gpus": 8}}},
    "changes": [
        {"at": 99_500, "held": "demo/a</script>", "node": "n", "set": {"gpus": 8}},
        {"at": 115_000, "held": "demo/a</script>", "node": "n", "set": {"gpus": 4}},
        {"at": 130_000, "held": "demo/a</script>", "node": "n", "set": None},
        {"at": 131_000, "held": "other/b", "node": "n", "set": {"gpus": 8}},
    ],
}  # fmt: skip


def page(document: dict) -> str:
    data = json.dumps([{"name": "", "document": document}]).replace("<", "\\u003c")
    return f'<p>before</p><script type="application/json" id="saved">{data}</script><script>after</script>'


class PageTest(unittest.TestCase):
    def test_the_document_of_a_saved_page_is_the_one_that_was_saved(self) -> None:
        self.assertEqual(operator_page.saved_document(page(DOCUMENT)), DOCUMENT)
        with self.assertRaisesRegex(StoryError, "the saved page has no record"):
            operator_page.saved_document("<html></html>")

    def test_a_part_has_the_times_of_the_story(self) -> None:
        part = operator_page.part_of(DOCUMENT, 100.0, 130.0)
        self.assertEqual([part[key] for key in ("from", "begin", "origin", "now")], [100_000, 100_000, 100_000, 130_000])
        self.assertEqual(part["changes"], DOCUMENT["changes"][:3])

    def test_the_picture_of_a_part_begins_with_its_state(self) -> None:
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(operator_page.part_of(DOCUMENT, 100.0, 130.0), file)
            file.flush()
            ran = subprocess.run(["node", _PICTURE, file.name], capture_output=True, text=True, check=True)
        self.assertIn("GPUs over time from 0:00:00 to 0:00:30: demo/a&lt;/script&gt;, idle", ran.stdout)
        # All eight GPUs for the first half, then four: 290 pixels are eight GPUs.
        self.assertRegex(ran.stdout, r'd="M48 8h452(\.\d+)?v290h-452(\.\d+)?zM500 153h')


class OpenedTest(unittest.TestCase):
    """With a program in the place of kubectl."""

    def kubectl(self, script: str) -> Kubectl:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        program = self.folder / "kubectl"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        return Kubectl(str(program), "pliant-system")

    def test_the_page_is_there_until_the_story_ends(self) -> None:
        script = 'cd "$(dirname "$0")"; echo "$@" > called; echo $$ > pid; echo http://127.0.0.1:5/; exec sleep 60'
        with operator_page.opened(self.kubectl(script)) as address:
            self.assertEqual(address, "http://127.0.0.1:5/")
            self.assertRegex((self.folder / "called").read_text(), r"\Apliant ui --namespace pliant-system( --no-browser)?\n")
            pid = int((self.folder / "pid").read_text())
            os.kill(pid, 0)
        with self.assertRaises(ProcessLookupError):
            os.kill(pid, 0)

    def test_a_failure_of_kubectl_is_said(self) -> None:
        with self.assertRaisesRegex(StoryError, "kubectl pliant ui: error: there is no Lease"):
            with operator_page.opened(self.kubectl("echo error: there is no Lease >&2; exit 1")):
                self.fail("it cannot be open")


if __name__ == "__main__":
    unittest.main()
