"""The timeline's page: its scripts' own tests, and that its files keep to the policy that guards it."""

import re
import shutil
import subprocess
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
PAGE = HERE.parents[2] / "operator/web/page"
ENGINE = shutil.which("node") or shutil.which("nodejs")

# Each of these would run or load what a tenant wrote, or what the policy refuses.
FORBIDDEN = (
    "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "DOMParser", "createContextualFragment", "eval(",
    "new Function", "javascript:", "http://", "https://", "srcdoc", 'setAttribute("style"', "localStorage",
)  # fmt: skip


def texts(suffix: str) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted(PAGE.glob(f"*{suffix}"))}


class ScriptTest(unittest.TestCase):
    @unittest.skipUnless(ENGINE, "needs Node.js")
    def test_the_scripts_pass_their_tests(self) -> None:
        programs = sorted(HERE.glob("*_test.js"))
        self.assertGreaterEqual(len(programs), 2)
        for program in programs:
            with self.subTest(program.name):
                ran = subprocess.run([str(ENGINE), str(program)], capture_output=True, text=True, timeout=120)
                self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
                self.assertRegex(ran.stdout, r"^(\d+) of \1 tests passed")


class PolicyTest(unittest.TestCase):
    def test_nothing_is_inserted_as_markup_and_nothing_is_loaded_from_elsewhere(self) -> None:
        for file, text in {**texts(".js"), **texts(".html"), **texts(".css")}.items():
            found = [each for each in FORBIDDEN if each in text]
            self.assertEqual(found, [], file)

    def test_the_markup_has_no_scripts_styles_or_handlers_of_its_own(self) -> None:
        (html,) = texts(".html").values()
        self.assertEqual(re.findall(r"<script(?![^>]*src=)|<style|\son\w+=|\sstyle=", html), [])

    def test_scripts_find_what_they_ask_for(self) -> None:
        (html,) = texts(".html").values()
        ids = re.findall(r'\bid="([^"]+)"', html)
        self.assertEqual(len(ids), len(set(ids)))
        asked = {each for text in texts(".js").values() for each in re.findall(r'byId\("([^"]+)"\)', text)}
        self.assertLessEqual(asked, set(ids))
        self.assertGreater(len(asked), 10)
        referred = re.findall(r'(?:aria-labelledby|aria-describedby|for)="([^"]+)"', html)
        self.assertLessEqual({each for refs in referred for each in refs.split()}, set(ids))
        local = re.findall(r'(?:src|href)="/(\w+\.\w+)"', html)
        for text in texts(".js").values():
            local += re.findall(r'from "\./(\w+\.js)"', text)
        self.assertLessEqual(set(local), {path.name for path in PAGE.iterdir()})

    def test_colours_that_scripts_name_exist_in_every_theme(self) -> None:
        (css,) = texts(".css").values()
        defined = set(re.findall(r"--(\w+):", css))
        named = {each for text in texts(".js").values() for each in re.findall(r'colour\("(\w+)"\)', text)}
        states = {"running", "starting", "waiting", "ended", "foreign", "yielded", "idle"}
        self.assertLessEqual(named | states, defined)


if __name__ == "__main__":
    unittest.main()
