"""What must hold of the operator's page in a browser. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .page import Band, Row, Stop

_CONTROLS = frozenset({
    "button", "link", "combobox", "checkbox", "textbox", "searchbox", "listbox", "option", "list", "image", "img",
    "DisclosureTriangle", "slider", "table", "region", "toolbar",
})  # fmt: skip
# The least part of two bands' pixels that differs. A pattern has about a third of white pixels.
_MIN_DIFFERENCE = 0.3


def name_problems(nodes: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """`nodes`: of the accessibility tree. Everything that a person can use, and each picture, has a name."""
    controls = 0
    for node in nodes:
        if node.get("ignored"):
            continue
        role = node.get("role", {}).get("value", "")
        properties = {each["name"]: each["value"].get("value") for each in node.get("properties", ())}
        if role in _CONTROLS or (properties.get("focusable") and role != "RootWebArea"):
            controls += 1
            if not str(node.get("name", {}).get("value", "")).strip():
                described = node.get("description", {}).get("value", "")
                yield f"a {role} has no name" + (f"; its description is {described[:60]}" if described else "")
    if controls == 0:
        yield "the page has no controls"


def focus_problems(stops: Sequence[Stop], wanted: Sequence[str]) -> Iterator[str]:
    missed = sorted({*wanted} - {stop.name for stop in stops})
    if missed:
        yield f"Tab does not reach {', '.join(missed)}"
    if not wanted:
        yield "the page has nothing to reach"
    for stop in stops:
        if not stop.shown:
            yield f"nobody sees that {stop.name} has the focus"


def mark_problems(moments: Sequence[str], is_live: bool) -> Iterator[str]:
    """`moments`: see Page.moments. `is_live`: at the end."""
    live, back, further, forth, again = (each.partition(": ")[0] for each in moments)
    if len({live, back, further}) < 3 or forth == further:
        yield f"the arrow keys lead from {live} to {back}, {further} and {forth}"
    if again < live or not is_live:
        yield f"Home leads from {forth} to {again}, and not to live, which was {live} before"


def detail_problems(rows: Sequence[Row]) -> Iterator[str]:
    for row in rows:
        if not row.title.startswith(f"{row.name}, ") or row.focus != "detail-title":
            yield f"Enter on {row.name} leads to {row.focus or 'nothing'} and opens {row.title or 'nothing'}"
    if not rows:
        yield "the list has no jobs"


def colour_problems(bands: Sequence[Band]) -> Iterator[str]:
    """The picture has at least two bands, and their pixels differ."""
    seen = [each for each in bands if each.colours]
    if len(seen) < 2:
        yield f"{len(seen)} bands of the stack have pixels: {', '.join(each.label for each in bands)}"
    for index, one in enumerate(seen):
        for other in seen[index + 1 :]:
            same = sum(min(part, other.colours.get(colour, 0.0)) for colour, part in one.colours.items())
            if same > 1 - _MIN_DIFFERENCE:
                yield f"{same:.0%} of the pixels of {one.label} and {other.label} are the same"


def text_problems(text: str, images: int, hostile: str) -> Iterator[str]:
    """`hostile`: markup that a learner wrote."""
    if hostile not in text:
        yield f"the page does not show {hostile}"
    if images:
        yield f"the page has {images} images"


def complaint_problems(errors: Sequence[str], violations: Sequence[str], elsewhere: Sequence[str]) -> Iterator[str]:
    yield from (f"the console has: {each[:300]}" for each in errors)
    yield from (f"the policy is violated: {each[:300]}" for each in violations)
    yield from (f"a request goes to {each[:300]}" for each in elsewhere)
