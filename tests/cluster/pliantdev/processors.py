"""The share of processor time that the host of this virtual machine gave to others (steal). It
explains slower runs that no change of the source explains."""

from pathlib import Path

_STAT = Path("/proc/stat")
# user, nice, system, idle, iowait, irq, softirq, steal. The next two are already included in user
# and nice.
_FIELDS = 8


def read() -> str:
    return _STAT.read_text()


def steal_percent(before: str, after: str) -> float:
    """The percentage between two readings of /proc/stat."""
    earlier, later = _ticks(before), _ticks(after)
    passed = [late - early for early, late in zip(earlier, later, strict=True)]
    return 100 * passed[-1] / sum(passed) if sum(passed) else 0.0


def _ticks(stat: str) -> list[int]:
    line = next(line for line in stat.splitlines() if line.startswith("cpu "))
    return [int(field) for field in line.split()[1 : 1 + _FIELDS]]


def words(steal: float) -> str:
    return f"the host gave {steal:.1f} % of the processors' time to others (steal)"
