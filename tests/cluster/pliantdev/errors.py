"""The only exception that ./dev shows to its user without a traceback."""

from pathlib import Path


def last_lines(path: Path, count: int = 15) -> str:
    """The end of a log, indented, for a message."""
    try:
        lines = path.read_text(errors="replace").splitlines()[-count:]
    except OSError:
        return "    (no log)"
    return "\n".join("    " + line for line in lines)


class DevError(Exception):
    """An error for the person at the terminal, with the log to read and the remedy, if any."""

    def __init__(self, message: str, *, log: Path | None = None, remedy: str | None = None):
        parts = [message]
        if log:
            parts.append(f"  last lines of {log}:\n{last_lines(log)}")
        if remedy:
            parts.append(f"  remedy: {remedy}")
        super().__init__("\n".join(parts))
