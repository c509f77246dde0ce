"""Processes that do parts of one measurement together: one per rank, each on a core of its own."""

import os
import subprocess
from collections.abc import Callable, Sequence


class Workers:
    """Answers each line with one line. Between lines the processes wait without processor time."""

    def __init__(self, name: str, world: int, command: Callable[[int], Sequence[str]]) -> None:
        self.name = name
        cores = sorted(os.sched_getaffinity(0))
        self._processes = [
            subprocess.Popen(
                ["taskset", "--cpu-list", str(cores[rank % len(cores)]), *command(rank)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for rank in range(world)
        ]
        self.greetings = self._answers()

    def ask(self, line: str) -> list[str]:
        for process in self._processes:
            process.stdin.write(line + "\n")
            process.stdin.flush()
        return self._answers()

    def _answers(self) -> list[str]:
        answers = [process.stdout.readline().strip() for process in self._processes]
        if not all(answers):
            raise SystemExit(f"a worker of {self.name} ended")
        return answers

    def __enter__(self) -> "Workers":
        return self

    def __exit__(self, *_) -> None:
        for process in self._processes:
            process.stdin.close()
        for process in self._processes:
            process.wait()
