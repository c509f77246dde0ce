"""The cost of resizes, from the story's requests and the coordinators' reports. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from .world import Resize

HEADER = ("after", "training", "learners", "request → running", "longest pause", "steps lost")


@dataclass(frozen=True)
class Request:
    """An action of the story, or an event, that should change sizes."""

    label: str
    time: float  # Unix seconds


@dataclass(frozen=True)
class ResizeReport:
    request: Request
    job: str
    resize: Resize

    @property
    def seconds(self) -> float:
        """Time from the request until the new allocation runs."""
        return self.resize.running - self.request.time

    def row(self) -> list[str]:
        resize = self.resize
        return [
            self.request.label,
            self.job,
            f"{resize.learners_from} → {resize.learners_to}",
            f"{self.seconds:.1f} s",
            f"{resize.pause_seconds:.2f} s" if resize.learners_from else "-",
            str(resize.steps_lost),
        ]


def report(requests: Sequence[Request], resizes: Sequence[tuple[str, Resize]]) -> list[ResizeReport]:
    """Each resize with the last request before it. Resizes without a request before them are left out."""
    reports = []
    for job, resize in resizes:
        causes = [request for request in requests if request.time <= resize.running]
        if causes:
            reports.append(ResizeReport(max(causes, key=lambda each: each.time), job, resize))
    return reports
