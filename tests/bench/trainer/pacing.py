"""When a process of a bench takes its steps."""

import sys
import time


class Free:
    """As they come."""

    def before_step(self) -> None:
        pass

    def after_step(self) -> None:
        pass


class ByLine:
    """As many as each line of the input says; then it waits, and takes no time. Ends the process
    at the input's end."""

    def __init__(self) -> None:
        self._left = 0
        self._times: list[int] = []

    def before_step(self) -> None:
        if self._left > 0:
            return
        line = sys.stdin.readline()
        if not line:
            raise SystemExit(0)
        self._left = int(line)
        self._times = [time.monotonic_ns()]

    def after_step(self) -> None:
        self._times.append(time.monotonic_ns())
        self._left -= 1
        if self._left == 0:
            print(*self._times, flush=True)


def by_line() -> ByLine:
    print("ready", flush=True)
    return ByLine()
