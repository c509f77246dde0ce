"""Measures the cost of writing checkpoints of 400 MB during training, compared with torch.save and
torch.distributed.checkpoint's async_save.

One process trains and may use all cores of the machine: the writer is meant to have one of its
own. The time of the fifty steps after a checkpoint is compared with that of the steps around them.

The pause is the time that training waits: the longest time of these steps in which it did not
compute, less the median of the others. The longest step itself says less: during a copy of 400 MB
a step computes slower, and on a shared machine one of fifty steps is always slow. For the same
reason a learner that writes no checkpoint is measured, too: among fifty waits one is always long.
For the rivals only the time of their call counts.
"""

import statistics
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import commits
from paced import start_alone
from rows import Aim, Measured, Row, line, measured_row

_MODEL = "large"
_NONE = "the same of a learner that writes none"


@dataclass(frozen=True)
class Turn:
    """The steps of a turn: some, a checkpoint, those that it may slow down, and some more. The
    methods compute one value each from the times of the steps, or from parts of these times."""

    before: int
    slowed: int
    after: int

    @property
    def steps(self) -> int:
        return self.before + self.slowed + self.after

    def slowed_of(self, times: list[float]) -> list[float]:
        return times[self.before : self.before + self.slowed]

    def steady_of(self, times: list[float]) -> list[float]:
        return times[: self.before] + times[self.before + self.slowed :]

    def extra(self, times: list[float]) -> float:
        """By how many per cent of a step the slowed steps took longer, on average."""
        slowed, steady = self.slowed_of(times), self.steady_of(times)
        return 100 * (statistics.mean(slowed) / statistics.mean(steady) - 1)

    def longest(self, times: list[float]) -> float:
        return max(self.slowed_of(times)) - statistics.median(self.steady_of(times))


def measure(binaries: Path, *, quick: bool) -> Iterator[Row]:
    del binaries
    turn = Turn(3, 8, 2) if quick else Turn(before=10, slowed=50, after=5)
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pliant-bench-")))
        learner = {"PLIANT_CHECKPOINT_EVERY_STEPS": str(turn.steps), "PLIANT_CHECKPOINT_KEEP": "1"}
        never = {"PLIANT_CHECKPOINT_EVERY_STEPS": "1000000"}
        pacers = {
            name: start_alone(
                stack, scratch, name, "pliant_learner.py", _MODEL, core=None, **environment
            )
            for name, environment in (("pliant", learner), ("none", never))
        }
        for how in () if quick else ("sync", "async"):
            # async_save needs a process group, here with this process only.
            group = [f"--rendezvous={scratch / how}.ranks"] if how == "async" else []
            saved = [
                f"--save={how}",
                f"--save-every={turn.steps}",
                f"--save-to={scratch / how}.saved",
            ]
            pacers[how] = start_alone(
                stack, scratch, how, "torch_learner.py", _MODEL, *saved, *group, core=None
            )
        turns: dict[str, list[list[float]]] = {name: [] for name in pacers}
        first = turn.steps - turn.before  # the steps before the first turn
        for pacer in pacers.values():
            pacer.steps(first)
        repeats = 1 if quick else 5
        for _ in range(repeats):
            for name, pacer in pacers.items():
                turns[name].append([1000 * took for took in pacer.steps(turn.steps)])
        for pacer in pacers.values():
            pacer.steps(1)  # by then the step before is in the log
        waits = {
            name: [1000 * (commit.waited or 0) for commit in commits.read(scratch / f"{name}-0")]
            for name in pacers
        }
    extra = {name: Measured.of([*map(turn.extra, found)]) for name, found in turns.items()}
    longest = {name: Measured.of([*map(turn.longest, found)]) for name, found in turns.items()}
    pause = {
        name: Measured.of(
            [
                turn.longest(found[begin : begin + turn.steps])
                for begin in range(first, first + repeats * turn.steps, turn.steps)
            ]
        )
        for name, found in waits.items()
    }
    steady = [statistics.median(turn.steady_of(times)) for times in turns["pliant"]]
    rivals = {"sync": "torch-save", "async": "dcp-async"}
    shown = [
        measured_row("checkpoint/step", "ms", Measured.of(steady), note="without a checkpoint"),
        measured_row("checkpoint/none/extra", "% of a step", extra["none"], note=_NONE),
        measured_row("checkpoint/none/pause", "ms", pause["none"], note=_NONE),
        measured_row("checkpoint/none/longest", "ms", longest["none"], note=_NONE),
    ]
    for name in rivals if not quick else [""]:
        end = f"/{rivals[name]}" if name else ""
        shown += [
            measured_row(
                f"checkpoint/extra{end}", "% of a step", extra["pliant"], extra.get(name),
                aim=Aim("value", 2.0), note="of each of the fifty steps that share a checkpoint",
            ),
            measured_row(
                f"checkpoint/pause{end}", "ms", pause["pliant"], pause.get(name),
                aim=Aim("value", 5.0), note="the longest wait of them, less the median wait",
            ),
            measured_row(
                f"checkpoint/longest{end}", "ms", longest["pliant"], longest.get(name),
                note="the longest of them, less the median step",
            ),
        ]  # fmt: skip
    for row in shown:
        print(line(row), flush=True)
        yield row
