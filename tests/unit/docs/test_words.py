import unittest

import words

_CPP = """// Of two lines
// that are one comment.
int elements_most = 1;  // given up
/* But for this. */
const char* text = "made anew // no comment";
constexpr int kLinesMost = 2, most_of_all = 3;
TEST(Store, WhatIsGivenUp) {}
TEST_F(StoreTest,
       AFileOfWhichNothingIsLeftIsReadAnew) {}
RC_GTEST_PROP(Plan, ThatAGpuOf2IsToldApart, (int seed)) {}
TEST_P(StoreTest, KeepsTheNewHTTPAnewsAsNewAndWhoIsNewest) {}
"""
_PYTHON = """def f():
    '''Anew.'''
    # Who asks.
    name_least = f"mended {1}"
def test_a_file_is_mended(): pass
def test_what_is_kept(): pass
async def test_those_that_wait(): pass
def what_is_kept(): pass
"""


class PlacesTest(unittest.TestCase):
    def test_comments_texts_and_names_are_told_apart(self) -> None:
        files = {"a.cc": _CPP, "b.py": _PYTHON, "c.md": "# Who is told\nIt begins anew.\n"}
        for name, found in (
            ("no-subject", ["a.cc:1: Of two lines that are one comment.", "b.py:3: Who asks."]),
            (
                "test-no-subject",
                [
                    "a.cc:7: What Is Given Up",
                    "a.cc:10: That A Gpu Of 2 Is Told Apart",
                    "b.py:6: what is kept",
                    "b.py:7: those that wait",
                ],
            ),
            ("give-up", ["a.cc:3: given up", "a.cc:7: What Is Given Up"]),
            ("but-for", ["a.cc:4: But for this."]),
            (
                "anew",
                [
                    'a.cc:5: "made anew // no comment"',
                    "a.cc:9: A File Of Which Nothing Is Left Is Read Anew",
                    "b.py:2: Anew.",
                    "c.md:2: It begins anew.",
                ],
            ),
            ("is-told", ["a.cc:10: That A Gpu Of 2 Is Told Apart", "c.md:1: # Who is told"]),
            ("mend", ["b.py:5: a file is mended", "b.py:4: mended "]),
            ("limit-last", ["a.cc:3: elements_most", "a.cc:6: kLinesMost", "b.py:4: name_least"]),
        ):
            with self.subTest(name=name):
                self.assertEqual(words.places(files)[name], found)


class TreeTest(unittest.TestCase):
    def test_no_wording_that_slows_a_reader_down(self) -> None:
        complaints = list(words.complaints(words.tree()))
        self.assertEqual(complaints, [], "\n" + "\n".join(complaints))


if __name__ == "__main__":
    unittest.main()
