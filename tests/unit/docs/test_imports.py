import unittest
from pathlib import Path

import imports

_ROOT = Path(__file__).resolve().parents[3]
_PYTHON = _ROOT / "trainer" / "python"


def _texts(folder: Path, pattern: str) -> dict[str, str]:
    return {str(file.relative_to(folder)): file.read_text() for file in folder.glob(pattern)}


class ImportsTest(unittest.TestCase):
    def test_every_form_is_seen_wherever_it_stands(self) -> None:
        files = {
            "p/__init__.py": "from .a import x\n",
            "p/a.py": "def f():\n    from .sub.b import y\n    import p.c\n",
            "p/c.py": "import os\nfrom p import a\n",
            "p/sub/__init__.py": "",
            "p/sub/b.py": "from .. import c\nfrom ..a import x as z\nfrom . import b\n",
        }
        self.assertEqual(
            imports.imports(files),
            {
                "p": {"p.a"},
                "p.a": {"p.sub.b", "p.c"},
                "p.c": {"p.a"},
                "p.sub": set(),
                "p.sub.b": {"p.c", "p.a"},
            },
        )

    def test_circles_are_found_by_way_of_others(self) -> None:
        for graph, want in (
            ({"a": {"b"}, "b": {"c"}, "c": set()}, []),
            ({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}, [("a", "b", "c")]),
            ({"a": {"b"}, "b": {"a"}, "c": {"d"}, "d": {"c"}}, [("a", "b"), ("c", "d")]),
        ):
            with self.subTest(graph=graph):
                self.assertEqual(imports.circles({of: frozenset(to) for of, to in graph.items()}), want)

    def test_a_name_that_no_module_has_is_missing(self) -> None:
        package = {
            "p/__init__.py": "from .a import x\n",
            "p/a.py": "x: int = 1\nclass C: pass\ntry:\n    import q as r\nexcept ImportError:\n    r, s = None, 1\n",
            "p/b.py": "from .a import C, gone\nfrom os import path\n",
        }
        users = {
            **package,
            "test.py": "import p.a\nimport p.gone, q.gone\nfrom p import a, b, c\nfrom p.a import r, s, x, y\nfrom p.old import z\n",
        }
        self.assertEqual(
            imports.missing(package, users),
            [
                "p/b.py: from p.a import gone",
                "test.py: from p import c",
                "test.py: from p.a import y",
                "test.py: from p.old import z",
                "test.py: import p.gone",
            ],
        )


class ProductTest(unittest.TestCase):
    def test_no_module_comes_back_to_itself(self) -> None:
        graph = imports.imports(_texts(_PYTHON, "pliant/**/*.py"))
        self.assertGreater(sum(map(len, graph.values())), 50)
        self.assertEqual(imports.circles(graph), [])

    def test_each_imported_name_exists(self) -> None:
        package = _texts(_PYTHON, "pliant/**/*.py")
        folders = ("tests/python", "examples", "trainer/python/compatibility")
        tests = {file: text for folder in folders for file, text in _texts(_ROOT, f"{folder}/**/*.py").items()}
        self.assertTrue(any("from pliant._" in text for text in tests.values()))
        self.assertEqual(imports.missing(package, {**package, **tests}), [])


if __name__ == "__main__":
    unittest.main()
