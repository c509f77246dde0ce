import unittest
from pathlib import Path

import layers
import shape
from layers import Arrow

_ARCHITECTURE = Path(__file__).resolve().parents[3] / "docs" / "architecture.md"

_TABLE = """
| folder | what it is | uses |
|---|---|---|
| `base` | clocks | – |
| `operator/api` | objects | `base` |
| `operator` | main | `operator/api` |
"""


class TableTest(unittest.TestCase):
    def test_arrows_reach_through_others(self) -> None:
        uses = layers.table(_TABLE)
        self.assertEqual(uses["operator"], {"operator/api"})
        self.assertEqual(layers.allowed(uses)["operator"], {"operator", "operator/api", "base"})

    def test_a_row_names_only_rows_above_it(self) -> None:
        with self.assertRaisesRegex(ValueError, "base uses operator"):
            layers.table("| `base` | clocks | `operator` |\n| `operator` | main | – |")

    def test_an_arrow_that_the_table_does_not_have_is_found(self) -> None:
        files = {
            "base/clock.h": '#include <chrono>\n#include "operator/api/job.h"\n',
            "operator/api/job.h": '#include "base/clock.h"\n',
            "operator/main.cc": '  #  include "operator/api/job.h"\n#include "base/clock.h"\n',
            "operator/api/late.h": '#include "operator/main.h"\n',
            "operator/api/lost.h": '#include "elsewhere/lost.h"\n',
        }
        self.assertEqual(
            layers.forbidden(files, layers.table(_TABLE)),
            [
                Arrow("base/clock.h", "operator/api/job.h"),
                Arrow("operator/api/late.h", "operator/main.h"),
                Arrow("operator/api/lost.h", "elsewhere/lost.h"),
            ],
        )


    def test_a_folder_in_a_folder_needs_a_row_of_its_own(self) -> None:
        files = ["operator/main.cc", "operator/api/job.h", "operator/new_2/x.h"]
        self.assertEqual(layers.unlisted(files, layers.table(_TABLE)), ["operator/new_2/x.h"])
        uses = layers.table("| `operator/new_2` | new | – |")
        self.assertEqual(layers.unlisted(["operator/new_2/x.h"], uses), [])


class ProductTest(unittest.TestCase):
    def setUp(self) -> None:
        self.uses = layers.table(_ARCHITECTURE.read_text())

    def test_every_folder_stands_in_the_table(self) -> None:
        self.assertEqual(layers.unlisted(shape.product(shape.CPP), self.uses), [])

    def test_every_include_follows_an_arrow(self) -> None:
        self.assertEqual(layers.forbidden(shape.product(shape.CPP), self.uses), [])

    def test_every_arrow_is_used(self) -> None:
        """The table must not allow more than is needed."""
        drawn = {(folder, used) for folder, direct in self.uses.items() for used in direct}
        self.assertEqual(drawn - layers.arrows(shape.product(shape.CPP), self.uses), set())


if __name__ == "__main__":
    unittest.main()
