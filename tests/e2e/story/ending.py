"""The end of the story for people and, as JSON, for programs."""

from collections.abc import Sequence

from . import chart, dashboards, resizes, table
from .checks import Check
from .screen import Screen
from .stage import GPUS_TOTAL
from .told import Told


def show(told: Told, screen: Screen) -> None:
    style = screen.style
    end = told.worlds[-1].time
    changes = chart.held_over_time(told.worlds, told.names)
    screen.lines(["", *chart.draw(changes, end, told.names, GPUS_TOTAL, min(screen.width, 120), style), ""])
    header, *rows = table.layout(resizes.HEADER, [each.row() for each in told.resizes])
    screen.lines([style.paint(header, "bold"), *rows, ""])
    for each in told.outcomes:
        accuracy = "unknown" if each.accuracy is None else f"{each.accuracy:.2%}"
        screen.lines([
            f"{each.name}: {each.phase}, {each.steps} steps, test accuracy {accuracy}",
            f"  parameters        {each.parameters_sha256}",
            f"  undisturbed run   {each.reference_sha256}",
        ])  # fmt: skip
    screen.lines([""])
    for check in told.checks:
        show_check(check, screen)


def show_check(check: Check, screen: Screen) -> None:
    mark = screen.style.paint("✓", "green") if check.holds else screen.style.paint("✗", "red")
    screen.lines([f"{mark} {check.name}", *(f"    {problem}" for problem in check.problems)])


def show_dashboard(answers: Sequence[dashboards.Answer], screen: Screen) -> None:
    """Each panel's series with their last values."""
    header, *rows = table.layout(dashboards.HEADER, dashboards.rows(answers), min(screen.width, 120))
    screen.lines(["", screen.style.paint(header, "bold"), *rows, ""])


def to_json(told: Told) -> dict:
    changes = chart.held_over_time(told.worlds, told.names)
    return {
        "trainings": [
            {
                "name": each.name,
                "phase": each.phase,
                "steps": each.steps,
                "accuracy": each.accuracy,
                "parametersSha256": each.parameters_sha256,
                "undisturbedParametersSha256": each.reference_sha256,
            }
            for each in told.outcomes
        ],
        "resizes": [
            {
                "after": each.request.label,
                "training": each.job,
                "kind": each.resize.kind,
                "membership": each.resize.membership,
                "from": each.resize.learners_from,
                "to": each.resize.learners_to,
                "requestedUnixSeconds": each.request.time,
                "runningUnixSeconds": each.resize.running,
                "requestToRunningSeconds": round(each.seconds, 3),
                "longestPauseSeconds": each.resize.pause_seconds,
                "stepsLost": each.resize.steps_lost,
            }
            for each in told.resizes
        ],
        "gpusHeld": [{"unixSeconds": each.time, **dict(zip(told.names, each.gpus, strict=True))} for each in changes],
        "checks": [{"name": check.name, "problems": list(check.problems)} for check in told.checks],
    }
