"""The demo's story, while a headless Chromium shows the operator's page. At the end a learner writes markup."""

import time
from pathlib import Path

from browser import page_checks
from browser.chromium import Tab, tab
from browser.page import Page, Row
from browser.pipe import BrowserError

from . import operator_pod, plot, waiting
from .checks import Check
from .errors import StoryError
from .screen import Screen
from .stage import NAMESPACE, Stage
from .timeline_checks import Lane, lane_problems, lanes_of_kubectl
from .timeline_reader import PORT, forwarded
from .told import Told

_SAME_SECONDS = 30.0  # a difference between the page and kubectl that stays for this time is a fault
_HOSTILE = "hostile"
# A page that inserted it as markup would have an image, and a request and a script of the learner's.
_MARKUP = "<img src=/absent onerror=document.title=1>"


def play(stage: Stage, screen: Screen) -> Told:
    found: list[Check] = []

    def look(step: int) -> None:
        if step == 3:  # both train, for a minute at least
            found.extend(_looked_at(stage, screen, "while both train", {"light": "demo-light", "dark": "demo-dark"}))

    told = plot.play(stage, screen, look)
    _fail_with_markup(stage, screen)
    found += _looked_at(stage, screen, "with markup of a learner", {"light": "markup"}, hostile=_MARKUP)
    told.checks += found
    return told


def hostile_job(stage: Stage) -> dict:
    job = stage.manifest("training-2")
    job["metadata"]["name"] = _HOSTILE
    job["spec"]["elastic"] = {**job["spec"]["elastic"], "minLearners": 1, "maxLearners": 1}
    job["spec"]["failurePolicy"] = {"maxFailures": 0}
    (learner,) = job["spec"]["template"]["spec"]["containers"]
    learner.update(command=["/bin/sh", "-c", f"echo '{_MARKUP}' >&2; exit 1"], args=[])
    return job


def _fail_with_markup(stage: Stage, screen: Screen) -> None:
    kubectl = stage.kubectl
    screen.say(f"kubectl apply {_HOSTILE}, whose learner writes {_MARKUP}")
    kubectl.apply(hostile_job(stage))

    def shown() -> bool:
        reason = kubectl.json("get", "elastictrainingjob", _HOSTILE).get("status", {}).get("reason", "")
        return _MARKUP in reason

    waiting.wait(kubectl, screen, "its reason has the markup", shown, 120.0)


def _looked_at(stage: Stage, screen: Screen, when: str, pictures: dict[str, str], hostile: str = "") -> list[Check]:
    """`pictures`: names of files by colour scheme."""
    begin = time.monotonic()
    kubectl = stage.operator_kubectl
    problems: dict[str, list[str]] = {}
    try:
        with forwarded(kubectl, operator_pod.leader(kubectl), PORT) as port, tab(stage.chromium) as opened:
            origin = f"http://127.0.0.1:{port}"
            for scheme, name in pictures.items():
                _look(stage, Page(opened, f"{origin}/"), scheme, Path(stage.pictures, f"{name}.png"), hostile, problems)
            problems["no complaint of the browser"] = [
                *problems.get("no complaint of the browser", ()),
                *page_checks.complaint_problems(
                    opened.complaints.errors, opened.complaints.violations, opened.complaints.elsewhere(origin)
                ),
            ]
            problems["the browser would complain"] = _complains(opened)
    except BrowserError as error:
        raise StoryError(f"the page in a browser: {error}") from error
    screen.say(f"   the page {when}, in {time.monotonic() - begin:.0f} s: {stage.pictures}", "green")
    return [Check(f"the page in a browser, {when}: {name}", tuple(each)) for name, each in problems.items()]


def _look(stage: Stage, page: Page, scheme: str, picture: Path, hostile: str, problems: dict[str, list[str]]) -> None:
    def add(name: str, found: list[str]) -> None:
        problems.setdefault(name, []).extend(f"{scheme}: {each}" for each in found)

    page.open(scheme)
    rows, differences = _compared(stage, page)
    add("its lanes equal kubectl get", differences)
    add("Enter opens the detail of a job", [*page_checks.detail_problems(rows)])
    stops, wanted = page.stops()
    add("Tab reaches everything, and the focus is visible", [*page_checks.focus_problems(stops, wanted)])
    add("arrow keys move the time mark", [*page_checks.mark_problems(page.moments(), page.is_live())])
    add("everything has an accessible name", [*page_checks.name_problems(page.accessible())])
    if hostile:
        add("markup of a learner is text", [*page_checks.text_problems(page.text(), page.images(), hostile)])
    else:
        add("bands have different colours", [*page_checks.colour_problems(page.bands())])
    picture.parent.mkdir(parents=True, exist_ok=True)
    page.screenshot(picture)


def _compared(stage: Stage, page: Page) -> tuple[list[Row], list[str]]:
    deadline = time.monotonic() + _SAME_SECONDS
    while True:
        rows = page.rows()
        table = stage.kubectl.run("get", "elastictrainingjobs", "-o", "wide")
        shown = {row.name: lane_of(row) for row in rows if row.name.startswith(f"{NAMESPACE}/")}
        differences = lane_problems(shown, lanes_of_kubectl(table, NAMESPACE))
        if not differences or time.monotonic() > deadline:
            return rows, differences


def lane_of(row: Row) -> Lane:
    gpus = int(row.gpus) if row.gpus.isdecimal() else -1
    return Lane(row.name, row.phase, gpus, row.values.get("Reason", "absent"), row.label)


def _complains(opened: Tab) -> list[str]:
    """Breaks the policy on purpose: a browser that does not say so would prove nothing."""
    complaints = opened.complaints
    before = len(complaints.violations), len(complaints.errors)
    opened.evaluate(
        "(() => { const made = document.createElement('script'); made.textContent = '1'; document.body.append(made); })()"
    )
    opened.evaluate("fetch('http://127.0.0.1:1/').catch(() => 0)")
    opened.listen(1.0)
    seen = len(complaints.violations) - before[0], len(complaints.errors) - before[1]
    return [] if min(seen) >= 2 else [f"it told of {seen[0]} violations and {seen[1]} errors, of two of each"]
