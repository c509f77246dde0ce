import re
import unittest
import xml.etree.ElementTree as ElementTree

from story import ending, html_chart
from story.chart import Held
from story.html_chart import Event

NAMES = ("training-1", "training-2")
CHANGES = [Held(100.0, (8, 0)), Held(110.0, (4, 4)), Held(120.0, (0, 6))]


def page(events: tuple[Event, ...] = (Event(110.0, "apply <2>"),)) -> str:
    return html_chart.page(CHANGES, 130.0, NAMES, 8, events, "GPUs & time")


def svg_of(text: str) -> ElementTree.Element:
    return ElementTree.fromstring(re.search(r"<svg viewBox.*?</svg>", text, re.DOTALL)[0])


class HtmlChartTest(unittest.TestCase):
    def test_areas_stack_and_step(self) -> None:
        first = [(100, 8), (110, 8), (110, 4), (120, 4), (120, 0), (130, 0)]
        self.assertEqual(html_chart.area(CHANGES, 130.0, 0)[:6], first)
        upper = [(100, 8), (110, 8), (110, 8), (120, 8), (120, 6), (130, 6)]
        lower = [(130, 0), (120, 0), (120, 4), (110, 4), (110, 8), (100, 8)]
        self.assertEqual(html_chart.area(CHANGES, 130.0, 1), upper + lower)

    def test_the_picture_is_well_formed_and_fills_its_frame(self) -> None:
        picture = svg_of(page())
        areas = [shape.get("points").split() for shape in picture.iter("polygon")]
        self.assertEqual(len(areas), 3)  # the second training has a pattern over its colour
        xs = {float(point.partition(",")[0]) for points in areas for point in points}
        self.assertEqual((min(xs), max(xs)), (44.0, 944.0))
        (event,) = [group for group in picture.iter("g") if group.get("class") == "event"]
        self.assertEqual(event.find("title").text, "apply <2>")
        self.assertEqual(event.find("line").get("x1"), "344.0")

    def test_it_needs_nothing_from_elsewhere(self) -> None:
        text = page()
        self.assertNotRegex(text, r"https?:|<script|<link|<img|@import|src=|url\((?!#)")

    def test_text_is_escaped_and_the_same_is_there_without_the_picture(self) -> None:
        text = page()
        self.assertIn("<title>GPUs &amp; time</title>", text)
        self.assertIn("<li><b>10.0 s</b> apply &lt;2&gt;</li>", text)
        self.assertIn("<tr><td>10.0</td><td>20.0</td><td>4</td><td>4</td></tr>", text)
        self.assertIn("aria-label=", text)

    def test_it_follows_the_readers_choice_of_light_or_dark(self) -> None:
        self.assertIn("prefers-color-scheme: dark", page())
        self.assertIn("color-scheme: light dark", page())

    def test_the_picture_is_a_file_of_its_own_with_its_legend_and_events(self) -> None:
        text = html_chart.picture(CHANGES, 130.0, NAMES, 8, (Event(110.0, "apply <2>"),))
        root = ElementTree.fromstring(text)
        self.assertEqual(root.get("viewBox"), "0 0 960 420")
        written = [each.text for each in root.iter("{http://www.w3.org/2000/svg}text")]
        for expected in (*NAMES, "1: at 10 s: apply <2>", "GPUs"):
            self.assertIn(expected, written)
        self.assertNotRegex(text.replace("http://www.w3.org/2000/svg", ""), r"https?:|<script|<link|@import|url\((?!#)")

    def test_events_name_the_training(self) -> None:
        for label, text in (("apply 2", "training-2 is applied"), ("end of 1", "training-1 completes"), ("other", "other")):
            with self.subTest(label=label):
                self.assertEqual(ending.event_text(label, NAMES), text)

    def test_without_events_there_is_no_list_of_them(self) -> None:
        self.assertNotIn("<ol>", page(events=()))
