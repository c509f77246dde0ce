"""GPU slots over time, as a web page and as an SVG file. Neither loads a script, a font or a picture. Pure."""

import html
from collections.abc import Sequence
from dataclasses import dataclass

from .chart import Held, time_step

# The palette of Okabe and Ito, whose colours people with any colour vision tell apart.
# Patterns help those who see no colours.
_COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")
_PATTERNS = ("", "M0 6L6 0", "M3 0V6", "M0 3H6", "M0 0L6 6", "M0 3H6M3 0V6")

_WIDTH, _HEIGHT = 960, 360
_LEFT, _RIGHT, _TOP, _BOTTOM = 44, 16, 28, 36
_LEGEND = 28  # height of the legend of a picture of its own


@dataclass(frozen=True)
class Event:
    """Something that happened, to be marked."""

    time: float  # Unix seconds
    text: str


def page(
    changes: Sequence[Held], end: float, names: Sequence[str], slots_total: int, events: Sequence[Event], title: str
) -> str:
    """Times are shown as seconds since the first change."""
    begin = changes[0].time
    scale = _scale_of(changes, end, slots_total)
    body = [
        f"<h1>{html.escape(title)}</h1>",
        _legend(names),
        _picture(changes, scale, names, events),
        *_event_list(events, begin),
        _table(changes, end, names),
    ]
    head = [
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width">',
        f"<title>{html.escape(title)}</title><style>{_COLOUR_STYLE}{_PAGE_STYLE}{_PICTURE_STYLE}</style>",
    ]
    lines = ['<!doctype html>\n<html lang="en"><head>', *head, "</head><body>", *body, "</body></html>"]
    return "\n".join(lines) + "\n"


def picture(
    changes: Sequence[Held], end: float, names: Sequence[str], slots_total: int, events: Sequence[Event]
) -> str:
    """The same picture as a file of its own, with its legend; the events' texts stand below the axis."""
    begin = changes[0].time
    scale = _scale_of(changes, end, slots_total)
    legend, x = [], _LEFT
    for index, name in enumerate(names):
        boxes = "".join(f'<rect x="{x}" y="8" width="24" height="14" {fill}/>' for fill in _fills(index))
        legend.append(f'{boxes}<text class="label" x="{x + 30}" y="19">{html.escape(name)}</text>')
        x += 60 + 8 * len(name)
    rows = [
        f'<text class="label" x="{_LEFT}" y="{_LEGEND + _HEIGHT + 20 * number}">'
        f"{number}: at {event.time - begin:.0f} s: {html.escape(event.text)}</text>"
        for number, event in enumerate(events, 1)
    ]
    height = _LEGEND + _HEIGHT + 20 * len(events) + (12 if events else 0)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" font-family="system-ui, sans-serif">',
        f"<style>{_COLOUR_STYLE}{_PICTURE_STYLE}</style>",
        f'<rect width="{_WIDTH}" height="{height}" class="page"/>',
        *legend,
        _picture(changes, scale, names, events, f'y="{_LEGEND}" width="{_WIDTH}" height="{_HEIGHT}" '),
        *rows,
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class _Scale:
    begin: float
    end: float
    slots_total: int

    def x(self, time: float) -> float:
        part = (min(max(time, self.begin), self.end) - self.begin) / (self.end - self.begin)
        return round(_LEFT + part * (_WIDTH - _LEFT - _RIGHT), 1)

    def y(self, slots: int) -> float:
        return round(_HEIGHT - _BOTTOM - slots / self.slots_total * (_HEIGHT - _TOP - _BOTTOM), 1)


def _scale_of(changes: Sequence[Held], end: float, slots_total: int) -> _Scale:
    begin = changes[0].time
    return _Scale(begin, max(end, begin + 1), slots_total)


def _picture(
    changes: Sequence[Held], scale: _Scale, names: Sequence[str], events: Sequence[Event], place: str = ""
) -> str:
    """`place`: attributes of a picture within another one."""
    seconds = scale.end - scale.begin
    text = f"GPUs of {', '.join(names)} over {seconds:.0f} seconds, stacked. The table below has the same."
    parts = [
        f'<svg {place}viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{html.escape(text)}">',
        f"<defs>{''.join(_pattern(index) for index in range(len(names)))}</defs>",
        *_axes(scale),
    ]
    for index, name in enumerate(names):
        outline = area(changes, scale.end, index)
        points = " ".join(f"{scale.x(time)},{scale.y(slots)}" for time, slots in outline)
        shapes = "".join(f'<polygon points="{points}" {fill}/>' for fill in _fills(index))
        parts.append(f"<g><title>{html.escape(name)}</title>{shapes}</g>")
    for number, event in enumerate(events, 1):
        x = scale.x(event.time)
        parts.append(
            f'<g class="event"><title>{html.escape(event.text)}</title>'
            f'<line x1="{x}" y1="{_TOP - 4}" x2="{x}" y2="{_HEIGHT - _BOTTOM}"/>'
            f'<circle cx="{x}" cy="{_TOP - 14}" r="10"/><text x="{x}" y="{_TOP - 10}">{number}</text></g>'
        )
    return "\n".join([*parts, "</svg>"])


def area(changes: Sequence[Held], end: float, index: int) -> list[tuple[float, int]]:
    """The outline of one training's slots: its upper edge from left to right, then its lower one back."""
    upper, lower = [], []
    for position, held in enumerate(changes):
        until = changes[position + 1].time if position + 1 < len(changes) else end
        below = sum(held.gpus[:index])
        upper += [(held.time, below + held.gpus[index]), (until, below + held.gpus[index])]
        lower += [(held.time, below), (until, below)]
    return upper + lower[::-1]


def _fills(index: int) -> list[str]:
    """Drawn one over the other."""
    kind = index % len(_COLOURS)
    hatch = [f'fill="url(#pattern-{index})"'] if _PATTERNS[kind] else []
    return [f'fill="{_COLOURS[kind]}"', *hatch]


def _pattern(index: int) -> str:
    path = _PATTERNS[index % len(_PATTERNS)]
    if not path:
        return ""
    return (
        f'<pattern id="pattern-{index}" width="6" height="6" patternUnits="userSpaceOnUse">'
        f'<path d="{path}" class="hatch"/></pattern>'
    )


def _axes(scale: _Scale) -> list[str]:
    parts = []
    for slots in range(scale.slots_total + 1):
        y = scale.y(slots)
        parts.append(f'<line class="grid" x1="{_LEFT}" y1="{y}" x2="{_WIDTH - _RIGHT}" y2="{y}"/>')
        parts.append(f'<text class="axis" x="{_LEFT - 8}" y="{y + 4}" text-anchor="end">{slots}</text>')
    seconds = scale.end - scale.begin
    step = time_step(seconds, 12)
    for mark in range(0, int(seconds) + 1, step):
        x = scale.x(scale.begin + mark)
        parts.append(f'<text class="axis" x="{x}" y="{_HEIGHT - _BOTTOM + 20}" text-anchor="middle">{mark} s</text>')
    middle = (_TOP + _HEIGHT - _BOTTOM) / 2
    turned = f'transform="rotate(-90 12 {middle})" text-anchor="middle"'
    parts.append(f'<text class="axis" x="12" y="{middle}" {turned}>GPUs</text>')
    return parts


def _legend(names: Sequence[str]) -> str:
    items = []
    for index, name in enumerate(names):
        boxes = "".join(f'<rect width="24" height="14" {fill}/>' for fill in _fills(index))
        swatch = f'<svg width="24" height="14" aria-hidden="true">{boxes}</svg>'
        items.append(f"<li>{swatch} {html.escape(name)}</li>")
    return f'<ul class="legend">{"".join(items)}</ul>'


def _event_list(events: Sequence[Event], begin: float) -> list[str]:
    if not events:
        return []
    items = [f"<li><b>{event.time - begin:.1f} s</b> {html.escape(event.text)}</li>" for event in events]
    return ["<h2>Events</h2>", f"<ol>{''.join(items)}</ol>"]


def _table(changes: Sequence[Held], end: float, names: Sequence[str]) -> str:
    begin = changes[0].time
    head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
    rows = []
    for position, held in enumerate(changes):
        until = changes[position + 1].time if position + 1 < len(changes) else end
        cells = "".join(f"<td>{gpus}</td>" for gpus in held.gpus)
        rows.append(f"<tr><td>{held.time - begin:.1f}</td><td>{until - begin:.1f}</td>{cells}</tr>")
    table = f"<table><tr><th>from (s)</th><th>to (s)</th>{head}</tr>{''.join(rows)}</table>"
    return f"<details><summary>GPUs held, as a table</summary>{table}</details>"


_COLOUR_STYLE = """
:root { color-scheme: light dark; --text: #1b1f24; --page: #ffffff; --grid: #d0d7de; --quiet: #57606a; }
@media (prefers-color-scheme: dark) { :root { --text: #e6edf3; --page: #0d1117; --grid: #30363d; --quiet: #9198a1; } }
"""
_PICTURE_STYLE = """
.page { fill: var(--page); } .label { fill: var(--text); font-size: 13px; }
.grid { stroke: var(--grid); } .axis { fill: var(--quiet); font-size: 12px; }
.hatch { stroke: #ffffff; stroke-opacity: .55; stroke-width: 1.2; fill: none; }
.event line { stroke: var(--text); stroke-dasharray: 4 3; } .event circle { fill: var(--text); }
.event text { fill: var(--page); font-size: 12px; font-weight: 600; text-anchor: middle; }
"""
_PAGE_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: var(--text); background: var(--page); max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; }
svg { max-width: 100%; height: auto; vertical-align: middle; }
.legend { list-style: none; padding: 0; display: flex; flex-wrap: wrap; gap: 1.5rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; } td, th { padding: .1rem .8rem; text-align: right; border-bottom: 1px solid var(--grid); }
"""
