"""Measures the share of its work that a job of four learners gets done while one of them is killed
every twenty seconds. Compared with torchrun, which restarts all from its newest snapshot. Both take
turns, undisturbed and then with kills: one turn each, because a turn takes minutes.

A process that starts in place of a killed one takes processor time from the training ones, because
importing torch takes seconds. That time is reported, and the share without it, too.
"""

import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import turns
from commits import Commit, differing, hashes
from elastic_job import ElasticJob, Member
from rows import Aim, Measured, Row, line, measured_row
from sizes import SIZES
from torchrun_job import Agent, TorchrunJob
from trainers import shared_core_of, wait_for_steps

_MODEL = "transformer"
_LEARNERS = 4
_HASH_EVERY = 5
_LOST = Aim("value", 10.0)


@dataclass(frozen=True)
class Spell:
    """The work done in a period."""

    seconds: float
    steps: int
    start_cpu: Sequence[float]  # of each process that started in it, seconds to its first commit
    hashes: dict[int, set[str]]  # of the parameters after a step, of all learners

    def lost(self, undisturbed: "Spell", *, starts_count: bool) -> float:
        """The steps as per cent of the undisturbed ones."""
        cores = len({shared_core_of(number) for number in range(_LEARNERS)})
        seconds = self.seconds if starts_count else self.seconds - sum(self.start_cpu) / cores
        return 100 * (1 - (self.steps / seconds) / (undisturbed.steps / undisturbed.seconds))


def measure(binaries: Path, *, quick: bool) -> Iterator[Row]:
    del binaries
    seconds, every = (6.0, 4.0) if quick else (180.0, 20.0)
    # Two each: undisturbed, then with kills.
    spells: list[Spell] = []
    rivals: list[Spell] = []

    def of_pliant(number: int) -> None:
        spells.append(_of_pliant(seconds, every if number else None))

    def of_torchrun(number: int) -> None:
        rivals.append(_of_torchrun(seconds, every) if number else _of_torchrun(60.0, None))

    given_up = turns.take(
        turns.Party(of_pliant, 2), {} if quick else {"torchrun": turns.Party(of_torchrun, 2)}
    )
    undisturbed, killed = spells
    yield _shown(hashes_row(undisturbed, killed))
    rival = rivals if len(rivals) == 2 else None
    note = given_up.get("torchrun", f"1 repeat, which takes {seconds:.0f} s")
    for name, starts_count in (("lost", True), ("lost-but-for-starts", False)):
        theirs = None
        if rival:
            theirs = Measured.of([rival[1].lost(rival[0], starts_count=starts_count)])
        ours = Measured.of([killed.lost(undisturbed, starts_count=starts_count)])
        yield _shown(measured_row(f"goodput/{name}", "%", ours, theirs, aim=_LOST, note=note))
    theirs = Measured.of(rival[1].start_cpu) if rival else None
    yield _shown(measured_row("goodput/start-cpu", "s", Measured.of(killed.start_cpu), theirs))


def hashes_row(undisturbed: Spell, killed: Spell) -> Row:
    common = undisturbed.hashes.keys() & killed.hashes.keys()
    different = differing(undisturbed.hashes, killed.hashes)
    row = measured_row(
        "goodput/hashes-different", "steps", Measured.of([len(different)]), aim=Aim("value", 0.0),
        note=f"of {len(common)} steps whose parameters were compared with the undisturbed run's",
    )  # fmt: skip
    # Without common steps nothing was compared, so the aim is not met.
    return replace(row, met=bool(common) and not different)


def _shown(row: Row) -> Row:
    print(line(row), flush=True)
    return row


def _of_pliant(seconds: float, kill_every: float | None) -> Spell:
    with ElasticJob(_MODEL, [f"--hash-every={_HASH_EVERY}"], core_of=shared_core_of) as job:
        living: list[Member] = job.begin(_LEARNERS)
        started = list(living)

        def replace(number: int) -> None:
            """As the operator does after the pod has ended."""
            living[number].kill()
            living[number] = job.replace(living[number])
            started.append(living[number])

        wait_for_steps(living[0], 5, since=0, shards=job.shards // _LEARNERS)
        return _spell(seconds, kill_every, started, replace)


def _of_torchrun(seconds: float, kill_every: float | None) -> Spell:
    with TorchrunJob(_MODEL, last_call=1, core_of=shared_core_of) as job:
        agents: list[Agent] = job.join(_LEARNERS)

        def replace(number: int) -> None:
            agents[number].kill()  # the agents restart all workers

        wait_for_steps(agents[0], 5, since=0, shards=job.shards // _LEARNERS)
        return _spell(seconds, kill_every, agents, replace)


def _spell(
    seconds: float,
    kill_every: float | None,
    started: Sequence[Member | Agent],
    replace: Callable[[int], None],
) -> Spell:
    """`started` grows while this runs."""
    chance = random.Random(1)
    began = time.monotonic()
    kills = 0
    while (now := time.monotonic()) < began + seconds:
        if kill_every and now >= began + (kills + 0.5) * kill_every:
            replace(chance.randrange(_LEARNERS))
            kills += 1
        time.sleep(0.2)
    # The last process may still have been starting.
    wait_for_steps(started[-1], 1, since=began, shards=SIZES[_MODEL][1] // _LEARNERS)
    commits = [commit for trainer in started for commit in trainer.commits()]
    after = [commit for commit in commits if commit.at >= began]
    within = [commit for commit in after if commit.at < began + seconds]
    first = _newest(commit for commit in commits if commit.at < began)
    return Spell(
        seconds=seconds,
        steps=_newest(within) - first,
        start_cpu=[commit.cpu for commit in after if commit.cpu is not None],
        hashes=hashes(commits),
    )


def _newest(commits: Iterator[Commit] | Sequence[Commit]) -> int:
    return max(commit.step for commit in commits)
