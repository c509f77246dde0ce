import json
import unittest

import shape
from shape import CYCLE, FIELDS, LINES, MEDIAN, METHODS, PLACES, ClassShape, Shape

_HEADER = """namespace pliant {
class Loop::Impl {
  void A(); void B(int); void B(); void C(); void D() { A(); }
  int a_, b_;
};
namespace kube { struct Pod { int a; void A() { B(); } void B() { A(); } }; }
}
"""


def _shape(fields: int = 1, methods: int = 1, cycle: int = 0, lines: int = 1) -> Shape:
    names = tuple(f"F{number}" for number in range(cycle))
    return Shape((ClassShape("C", "c.h", fields, methods, names),), {"c.h": lines, "a": 1, "b": 1})


class MeasureTest(unittest.TestCase):
    def test_a_class_with_bodies_in_several_files(self) -> None:
        found = shape.measure(
            {
                "loop_impl.h": _HEADER,
                "loop_a.cc": "namespace pliant { namespace { void B() {} } void Loop::Impl::A() { B(1); } }",
                "loop_b.cc": "namespace pliant {\nvoid Loop::Impl::B(int) { D(); }\nvoid Loop::Impl::C() { A(); } }\n",
                "other.cc": "namespace other { void Loop::Impl::C() { C(); } void C() { A(); } }",
                "loop.py": "class Loop:\n    pass\n",
            }
        )
        self.assertEqual(
            found,
            Shape(
                (
                    ClassShape("Loop::Impl", "loop_impl.h", 2, 5, ("A", "B", "D")),
                    ClassShape("kube::Pod", "loop_impl.h", 1, 2, ("A", "B")),
                ),
                {"loop_impl.h": 7, "loop_a.cc": 1, "loop_b.cc": 3, "other.cc": 1, "loop.py": 2},
            ),
        )
        self.assertEqual(found.median, 2)

    def test_making_another_object_calls_no_own_method(self) -> None:
        (found,) = shape.measure({"a.cc": "struct A { A() { F(); } A F() { return A(); } };"}).classes
        self.assertEqual(found.cycle, ())

    def test_branches_on_where_gradients_are(self) -> None:
        text = """
          if (on_device_) return;  // a branch
          Use(on_device ? a : b);
          ok = ready && program.device_gradients() != nullptr;
          if (ready) device_gradients_->Zero(out);
          Make({.on_device = true});  // if on_device
          if (devices) CHECK(on_devices);
        """
        places = ("trainer/runtime/a.cc:2", "trainer/runtime/a.cc:3", "trainer/runtime/a.cc:4", "trainer/runtime/a.cc:5")
        self.assertEqual(shape.measure({"trainer/runtime/a.cc": text}).places, places)
        self.assertEqual(shape.measure({"trainer/checkpoint/a.cc": text, "trainer/runtime/a.py": text}).places, ())

    def test_the_largest_cycle(self) -> None:
        for calls, cycle in (
            ({}, ""),
            ({"a": "a"}, ""),
            ({"a": "b", "b": "c"}, ""),
            ({"a": "b", "b": "a"}, "ab"),
            ({"a": "ab", "b": "c", "c": "a", "d": "ae", "e": "d"}, "abc"),
            ({"a": "b", "b": "ac", "c": "d", "d": "bx"}, "abcd"),
        ):
            with self.subTest(calls=calls):
                self.assertEqual("".join(shape.largest_cycle(calls)), cycle)


class LimitsTest(unittest.TestCase):
    def test_a_complaint_names_the_figure_and_its_limit(self) -> None:
        for found, said in (
            (_shape(32, 45, 10, 500), []),
            (_shape(fields=33), ["C: 33 fields, and 32 at most are allowed"]),
            (_shape(methods=46), ["C: 46 methods, and 45 at most are allowed"]),
            (_shape(cycle=11), ["C: 11 methods in one cycle of calls, and 10 at most are allowed"]),
            (_shape(lines=501), ["c.h: 501 lines, and 500 at most are allowed"]),
            (Shape((), {"a": 80, "b": 81}), ["all files: 81 lines in the median, and 80 at most are allowed"]),
            (
                Shape((), {}, ("f:1",) * 16),
                ["the trainer: 16 branches on where gradients are, and 15 at most are allowed"],
            ),
        ):
            with self.subTest(said=said):
                self.assertEqual(shape.complaints(shape.figures(found)), said)

    def test_the_larger_of_two_classes_of_one_name_counts(self) -> None:
        classes = tuple(ClassShape("C", file, fields, 0, ()) for file, fields in (("a", 7), ("b", 9), ("c", 8)))
        self.assertEqual(shape.figures(Shape(classes, {}))["C", FIELDS], 9)


class OutputTest(unittest.TestCase):
    def test_for_people_what_is_beyond_a_limit_has_a_mark(self) -> None:
        lines = shape.for_people(_shape(fields=33, methods=0, lines=500)).splitlines()
        self.assertEqual(lines[:2], ["Fields (at most 32)", "!   33  C  c.h"])
        self.assertEqual(
            lines[3:8],
            ["Methods (at most 45)", "", "Methods in a cycle of calls (at most 10)", "", "Lines (at most 500)"],
        )
        self.assertEqual(lines[8], "   500  c.h")
        self.assertEqual(lines[-1], "3 files, 502 lines, 1 classes. The median file has 1 lines (at most 80).")

    def test_for_people_all_that_is_beyond_a_limit_is_listed(self) -> None:
        files = {f"{number}.cc": 501 + number for number in range(12)}
        self.assertEqual(shape.for_people(Shape((), files)).count("!"), 12)
        self.assertEqual(shape.for_people(Shape((), dict.fromkeys(files, 500))).count(".cc"), 10)

    def test_for_programs(self) -> None:
        self.assertEqual(
            json.loads(shape.for_programs(_shape(cycle=2))),
            {
                "limits": {FIELDS: 32, METHODS: 45, CYCLE: 10, LINES: 500, MEDIAN: 80, PLACES: 15},
                "median": 1,
                "lines": {"a": 1, "b": 1, "c.h": 1},
                "places": [],
                "classes": [{"name": "C", "file": "c.h", "fields": 1, "methods": 1, "cycle": ["F0", "F1"]}],
            },
        )


class ProductTest(unittest.TestCase):
    def test_nothing_is_beyond_its_limit(self) -> None:
        found = shape.figures(shape.measure(shape.product()))
        self.assertIn(("CoordinatorCore", METHODS), found)
        self.assertGreater(found["the trainer", PLACES], 5)
        self.assertIn(("trainer/python/pliant/_loop.py", LINES), found)
        self.assertEqual(shape.complaints(found), [])


if __name__ == "__main__":
    unittest.main()
