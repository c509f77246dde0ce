"""The timeline's page: its scripts' own tests, a picture that they draw, their bundle, and that its files keep to the
policy that guards it."""

import re
import subprocess
import tempfile
import unittest
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

HERE = Path(__file__).resolve().parent
REPO = HERE.parents[2]
PAGE = REPO / "operator/web/page"
GOLDEN = HERE / "golden"

# Each of these would run or load what a tenant wrote, or what the policy refuses.
SVG_NAME = 'xmlns="http://www.w3.org/2000/svg"'  # a name, from which nothing is loaded
FORBIDDEN = (
    "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "DOMParser", "createContextualFragment", "eval(",
    "new Function", "javascript:", "http://", "https://", "srcdoc", 'setAttribute("style"', "localStorage",
)  # fmt: skip


def run(*command: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(each) for each in command], capture_output=True, text=True, timeout=120)


def texts(suffix: str) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted(PAGE.glob(f"*{suffix}"))}


class ScriptTest(unittest.TestCase):
    def test_the_scripts_pass_their_tests(self) -> None:
        programs = sorted(HERE.glob("*_test.js"))
        self.assertGreaterEqual(len(programs), 4)
        for program in programs:
            with self.subTest(program.name):
                ran = run("node", program)
                self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
                self.assertRegex(ran.stdout, r"^(\d+) of \1 tests passed")


class PictureTest(unittest.TestCase):
    def test_a_small_document_has_this_picture(self) -> None:
        """To make the golden file again: node tests/e2e/picture.js tests/unit/page/golden/document.json > …/picture.svg"""
        ran = run("node", REPO / "tests/e2e/picture.js", GOLDEN / "document.json")
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))
        self.assertEqual(ran.stdout, (GOLDEN / "picture.svg").read_text())
        root = ElementTree.fromstring(ran.stdout)
        self.assertEqual(root.get("viewBox"), "0 0 960 356")
        written = [each.text for each in root.iter("{http://www.w3.org/2000/svg}text")]
        self.assertIn('demo/<two>&"', written)

    def test_it_says_what_is_no_document(self) -> None:
        for text in ("", "{}", "[1]", '{"frame": 5}'):
            with self.subTest(text), tempfile.NamedTemporaryFile("w", suffix=".json") as file:
                file.write(text)
                file.flush()
                ran = run("node", REPO / "tests/e2e/picture.js", file.name)
                self.assertEqual(ran.returncode, 1, ran.stdout)
                self.assertRegex(ran.stderr, r"\Apicture\.js: \S+ is no timeline document: [^\n]+\n\Z")


class BundleTest(unittest.TestCase):
    def test_no_two_modules_declare_the_same_name(self) -> None:
        declared = Counter(
            name
            for text in texts(".js").values()
            for name in re.findall(r"^(?:export )?(?:async )?(?:const|let|var|function\*?|class) (\w+)", text, re.MULTILINE)
        )
        self.assertEqual([name for name, count in declared.items() if count > 1], [])
        self.assertGreater(len(declared), 60)

    def test_the_modules_are_one_script(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            bundle = Path(folder) / "bundle.mjs"
            made = self.bundle(PAGE, bundle)
            self.assertEqual(made.returncode, 0, made.stderr)
            checked = run("node", "--check", bundle)
            self.assertEqual(checked.returncode, 0, checked.stderr)
            # Nothing but imports and the word `export` is taken away.
            left = Counter(line for line in bundle.read_text().splitlines() if not re.fullmatch(r"// \w+\.js|", line))
            want: Counter[str] = Counter()
            for text in texts(".js").values():
                body = re.sub(r'^import \{[^}]*\} from "[^"]+";\n', "", text, flags=re.MULTILINE)
                want.update(re.sub("^export ", "", line) for line in body.splitlines() if line)
            self.assertEqual(left, want)

    def test_modules_that_cannot_be_one_script_are_refused(self) -> None:
        wrong = {
            "a circle": {"a.js": 'import { b } from "./b.js";\n', "b.js": 'import { a } from "./a.js";\n'},
            "another form": {"a.js": 'import * as b from "./b.js";\n', "b.js": ""},
            "a default": {"a.js": "export { x };\n"},
        }
        for name, files in wrong.items():
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                for file, text in files.items():
                    (Path(folder) / file).write_text(text)
                self.assertNotEqual(self.bundle(Path(folder), Path(folder) / "all").returncode, 0)

    def bundle(self, folder: Path, output: Path) -> subprocess.CompletedProcess[str]:
        return run("cmake", f"-DFOLDER={folder}", f"-DOUTPUT={output}", "-P", PAGE / "bundle.cmake")


class PolicyTest(unittest.TestCase):
    def test_nothing_is_inserted_as_markup_and_nothing_is_loaded_from_elsewhere(self) -> None:
        for file, text in {**texts(".js"), **texts(".html"), **texts(".css")}.items():
            found = [each for each in FORBIDDEN if each in text.replace(SVG_NAME, "")]
            self.assertEqual(found, [], file)

    def test_the_markup_has_no_scripts_styles_or_handlers_of_its_own(self) -> None:
        (html,) = texts(".html").values()
        html = html.replace('<script type="application/json" id="saved"></script>', "")  # data of a saved page
        self.assertEqual(re.findall(r"<script(?![^>]*src=)|<style|\son\w+=|\sstyle=", html), [])

    def test_pictures_and_tables_have_names(self) -> None:
        (html,) = texts(".html").values()
        found = re.findall(r'<(?:canvas|table) id="(\w+)"([^>]*)>', html)
        self.assertGreater(len(found), 3)
        unnamed = {each for each, attributes in found if not re.search(r"aria-label(ledby)?=", attributes)}
        # The names of curves have their numbers at the time mark.
        curves = set(re.findall(r'\["(\w+)", "[A-Z][^"]+"\]', texts(".js")["panels.js"]))
        self.assertEqual(unnamed, curves)
        self.assertIn('canvas.setAttribute("aria-label", ', texts(".js")["panels.js"])

    def test_times_have_24_hours_everywhere(self) -> None:
        """Browsers show hour12: false as 24:05 at midnight, and without a choice the axis differs from the tables."""
        whole = "".join(texts(".js").values())
        formats = re.findall(r"DateTimeFormat\(undefined|toLocale(?:Time)?String\(undefined", whole)
        self.assertEqual(whole.count('hourCycle: "h23"'), len(formats))
        self.assertNotIn("hour12", whole)

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
