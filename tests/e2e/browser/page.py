"""The operator's page in a tab, used as a person uses it: by keys and by eyes."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .chromium import Tab
from .pipe import BrowserError

_WAIT_SECONDS = 30.0
_LOOK_SECONDS = 0.2
_MAX_STOPS = 60
_BACK_PIXELS = 6  # from the right end of the stack, where nothing has changed yet

# The element that has the focus: what identifies it, and whether a person sees that it has it.
_FOCUS = """(() => {
  const at = document.activeElement, style = getComputedStyle(at);
  const drawn = at.matches(":focus-visible") && style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0;
  const box = at.getBoundingClientRect();
  return {name: at.id || at.tagName, shown: drawn && box.width > 0 && box.right > 0 && box.bottom > 0};
})()"""
_STOPS = """[...document.querySelectorAll('a[href], button, select, input, summary, [tabindex="0"]')]
  .filter((each) => each.offsetParent !== null || each.className === "skip").map((each) => each.id || each.tagName)"""
_ROWS = """[...document.querySelectorAll("#job-list .row")].map((row) => ({
  label: row.getAttribute("aria-label"), cells: [...row.querySelectorAll("span")].map((each) => each.textContent)}))"""
_DETAIL = """({title: document.getElementById("detail-title").textContent, focus: document.activeElement.id,
  values: Object.fromEntries([...document.querySelectorAll("#detail-values dt")]
    .map((term) => [term.textContent, term.nextElementSibling.textContent]))})"""
# The colours of each band of the stack, in a column near the right end.
_COLOURS = """((back) => {
  const canvas = document.getElementById("stack"), ratio = canvas.width / canvas.clientWidth;
  const bottom = canvas.clientHeight - 22, height = bottom - 8;
  // It is read once: Chromium warns of more, and a warning is a complaint.
  const width = Math.round(8 * ratio), left = Math.round((canvas.clientWidth - back - 8) * ratio);
  const {data} = canvas.getContext("2d").getImageData(left, 0, width, canvas.height);
  const rows = [...document.querySelectorAll("#stack-table tbody tr")]
    .map((row) => [...row.cells].map((each) => each.textContent));
  const total = rows.reduce((sum, [,, gpus]) => sum + Number(gpus), 0);
  let below = 0;
  return rows.map(([queue, label, gpus]) => {
    const size = height * Number(gpus) / total, high = bottom - height * below / total;
    below += Number(gpus);
    const colours = {};
    if (size < 6) return {label, gpus: Number(gpus), colours};
    const [first, last] = [high - size + 2, high - 2].map((each) => 4 * width * Math.round(each * ratio));
    for (let i = first; i < last; i += 4) {
      const key = `${data[i]},${data[i + 1]},${data[i + 2]}`;
      colours[key] = (colours[key] ?? 0) + 4 / (last - first);
    }
    return {label, gpus: Number(gpus), colours};
  });
})"""


@dataclass(frozen=True)
class Row:
    """A job in the list, and its detail after Enter."""

    label: str
    name: str
    phase: str
    gpus: str
    title: str
    focus: str  # id of the element that has the focus after Enter
    values: Mapping[str, str]


@dataclass(frozen=True)
class Band:
    label: str
    gpus: int
    colours: Mapping[str, float]  # the part of its pixels; empty: too small to look at


@dataclass(frozen=True)
class Stop:
    name: str
    shown: bool  # whether a person sees that it has the focus


class Page:
    def __init__(self, tab: Tab, address: str) -> None:
        self._tab = tab
        self._address = address

    def open(self, scheme: str) -> None:
        """Loads the page and waits for the first job. `scheme`: light or dark."""
        self._tab.prefer(scheme)
        self._tab.open(self._address)
        self.wait("document.querySelectorAll('#job-list .row').length > 0")
        # The last minutes fill the picture: as a person does it, by the keys of the stack.
        self._tab.evaluate("document.getElementById('window').value = '900000'")
        self._tab.evaluate("document.getElementById('window').dispatchEvent(new Event('change'))")

    def wait(self, condition: str) -> None:
        deadline = time.monotonic() + _WAIT_SECONDS
        while not self._tab.evaluate(condition):
            if time.monotonic() > deadline:
                raise BrowserError(f"the page did not come to {condition} in {_WAIT_SECONDS:g} s")
            self._tab.listen(_LOOK_SECONDS)

    def rows(self) -> list[Row]:
        """Each job of the list, whose detail Enter opens and the button closes."""
        shown = self._tab.evaluate(_ROWS)
        found = []
        for index, row in enumerate(shown):
            self._focus("job-list")
            self._tab.press("Home")
            for _ in range(index):
                self._tab.press("ArrowDown")
            self._tab.press("Enter")
            self.wait("!document.getElementById('detail').hidden")
            detail = self._tab.evaluate(_DETAIL)
            name, phase, gpus = row["cells"][:3]
            found.append(Row(row["label"], name, phase, gpus, detail["title"], detail["focus"], detail["values"]))
            self._focus("detail-close")
            self._tab.press("Enter")
            self.wait("document.getElementById('detail').hidden")
        return found

    def stops(self) -> tuple[list[Stop], list[str]]:
        """Where Tab leads from the beginning of the page to its end, and everything that it has to reach."""
        wanted = self._tab.evaluate(_STOPS)
        self._tab.evaluate("(document.activeElement.blur(), window.getSelection().removeAllRanges(), window.scrollTo(0, 0))")
        self._tab.evaluate("document.body.tabIndex = -1, document.body.focus(), document.body.removeAttribute('tabindex')")
        found: list[Stop] = []
        for _ in range(_MAX_STOPS):
            self._tab.press("Tab")
            at = self._tab.evaluate(_FOCUS)
            if at["name"] == "BODY":
                break
            found.append(Stop(at["name"], at["shown"]))
        return found, wanted

    def moments(self) -> list[str]:
        """The sentence of the time mark: live, after the left arrow, after the right one, and live again."""
        self._focus("stack")
        found = [self._moment()]
        for key in ("ArrowLeft", "ArrowLeft", "ArrowRight", "Home"):
            self._tab.press(key)
            self._tab.listen(_LOOK_SECONDS)
            found.append(self._moment())
        return found

    def is_live(self) -> bool:
        return bool(self._tab.evaluate("document.getElementById('live').getAttribute('aria-pressed') === 'true'"))

    def bands(self) -> list[Band]:
        found = self._tab.evaluate(f"{_COLOURS}({_BACK_PIXELS})")
        return [Band(each["label"], each["gpus"], each["colours"]) for each in found]

    def accessible(self) -> Sequence[Mapping[str, Any]]:
        return self._tab.accessible()

    def text(self) -> str:
        return str(self._tab.evaluate("document.body.innerText"))

    def images(self) -> int:
        """The page has none of its own: texts of tenants would make them."""
        return int(self._tab.evaluate("document.images.length"))

    def screenshot(self, file: Path) -> None:
        self._tab.screenshot(file)

    def _moment(self) -> str:
        return str(self._tab.evaluate("document.getElementById('moment').textContent"))

    def _focus(self, identity: str) -> None:
        self._tab.evaluate(f"document.getElementById('{identity}').focus()")
