import unittest

import words
from words import WORDINGS

_CPP = """// Of two lines
// that are one comment.
int elements_most = 1;  // given up
/* But for this. */
const char* text = "made anew // no comment";
constexpr int kLinesMost = 2, most_of_all = 3;
"""
_PYTHON = 'def f():\n    """Anew."""\n    # Who asks.\n    name_least = f"mended {1}"\n'


class PlacesTest(unittest.TestCase):
    def test_comments_texts_and_names_are_told_apart(self) -> None:
        files = {"a.cc": _CPP, "b.py": _PYTHON, "c.md": "# Who is told\nIt begins anew.\n"}
        for name, found in (
            ("no-subject", ["a.cc:1: Of two lines that are one comment.", "b.py:3: Who asks."]),
            ("give-up", ["a.cc:3: given up"]),
            ("but-for", ["a.cc:4: But for this."]),
            ("anew", ['a.cc:5: "made anew // no comment"', "b.py:2: Anew.", "c.md:2: It begins anew."]),
            ("is-told", ["c.md:1: # Who is told"]),
            ("most-least", ["a.cc:3: elements_most", "a.cc:6: kLinesMost", "b.py:4: name_least"]),
        ):
            with self.subTest(name=name):
                self.assertEqual(words.places(WORDINGS[name], files), found)

    def test_what_is_said_of_counts(self) -> None:
        one = {"anew": words._words("anew", "again", 3)}
        for count, said in ((3, []), (4, ["anew: 4 places, and 3 at most: write again"]), (2, ["anew: 2 places: lower"])):
            with self.subTest(count=count):
                complaints = list(words.complaints({"anew": count}, one))
                self.assertEqual([each[: len(begin)] for each, begin in zip(complaints, said, strict=True)], said)


class TreeTest(unittest.TestCase):
    def test_no_wording_becomes_more_frequent(self) -> None:
        files = words.tree()
        counts = {name: len(words.places(wording, files)) for name, wording in WORDINGS.items()}
        self.assertEqual(list(words.complaints(counts, WORDINGS)), [])


if __name__ == "__main__":
    unittest.main()
