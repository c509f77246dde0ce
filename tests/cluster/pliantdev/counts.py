"""Numbers of passed and failed cases."""

import re
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Counts:
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    # The names of failed cases, as far as they are known.
    failures: tuple[str, ...] = field(default=(), compare=False)

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(
            self.passed + other.passed,
            self.failed + other.failed,
            self.skipped + other.skipped,
            self.failures + other.failures,
        )

    def __str__(self) -> str:
        skipped = f", {self.skipped} skipped" if self.skipped else ""
        return f"{self.passed} passed, {self.failed} failed{skipped}"

    @staticmethod
    def from_last_line(line: str, exit_status: int) -> "Counts":
        """The counts of a program whose last line is `N passed, N failed`. A program that ends with
        an error but reports no failure counts as one failure."""
        match = re.fullmatch(r"(\d+) passed, (\d+) failed", line.strip())
        counts = Counts(int(match[1]), int(match[2])) if match else Counts()
        honest = match and (exit_status == 0 or counts.failed)
        return counts if honest else counts + Counts(failed=1)
