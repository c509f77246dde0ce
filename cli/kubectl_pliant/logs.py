"""kubectl pliant logs: the output of all learners of a job, across resizes and crashes."""

from __future__ import annotations

import queue
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from . import log_stream
from .errors import CommandError, NotFoundError
from .job import Job, read_job
from .kubectl import JOBS
from .log_lines import Position
from .log_stream import LogStream
from .names import job_uid
from .pods import Learner, read_learner, selector
from .watch import Event, Watch
from .world import World

MAX_STREAMS = 64  # each is a process of kubectl
_SECONDS_AFTER_THE_END = 10.0
_WAITING_LINES = 10000  # then streams wait


@dataclass(frozen=True)
class Choice:
    """What the user asked for."""

    learner: int | None = None  # None: all
    tail: int | None = None

    def takes(self, learner: Learner) -> bool:
        return self.learner is None or learner.number == self.learner


def learners_of(world: World, job: Job, choice: Choice) -> list[Learner]:
    pods = world.kubectl.list("pods", options=[f"--selector={selector(job_uid(job.uid))}"])
    found = [learner for learner in map(read_learner, pods) if learner is not None]
    return sorted((each for each in found if choice.takes(each)), key=lambda each: (each.number, each.pod))


def show(world: World, job: Job, choice: Choice) -> None:
    """What there is now, one learner after the other."""
    learners = [each for each in learners_of(world, job, choice) if each.has_log]
    for learner in learners:
        given = log_stream.arguments(learner, follow=False, tail=choice.tail, since=None)
        try:
            for line in log_stream.read(world.kubectl, learner, Position(), given):
                world.print([line])
        except NotFoundError:
            world.note(f"{learner.prefix} has left")
    if not learners:
        world.note(f"no learner of {job.name} has a log now; --kept prints the output of those that ended")


@dataclass
class _Followed:
    """Used by the main thread only."""

    streams: dict[str, LogStream] = field(default_factory=dict)  # by uid of the pod
    open: set[str] = field(default_factory=set)  # those that have not ended
    left_out: set[str] = field(default_factory=set)


class Follower:
    def __init__(self, world: World, job: Job, choice: Choice) -> None:
        self._world = world
        self._job = job
        self._choice = choice
        self._inbox: queue.Queue[object] = queue.Queue(_WAITING_LINES)
        self._followed = _Followed()

    def run(self) -> None:
        """Prints until the job has ended and its learners' logs are printed."""
        kubectl, uid = self._world.kubectl, job_uid(self._job.uid)
        self._on_pods(learners_of(self._world, self._job, self._choice))
        pods = ["pods", f"--selector={selector(uid)}"]
        watches = [
            Watch(kubectl, pods, lambda event: self._inbox.put(("pod", event)), self._inbox.put),
            Watch(kubectl, [JOBS, str(self._job.name)], lambda event: self._inbox.put(("job", event)), self._inbox.put),
        ]
        try:
            end = self._until_the_end()
        finally:
            for watch in watches:
                watch.stop()
            for stream in self._followed.streams.values():
                stream.stop()
        self._world.note(f"{self._job.name} {end}")

    def _until_the_end(self) -> str:
        end, deadline = "", float("inf")
        if self._job.finished:
            end, deadline = f"is {self._job.phase}", time.monotonic() + _SECONDS_AFTER_THE_END
        while not end or (self._followed.open and time.monotonic() < deadline):
            try:
                message = self._inbox.get(timeout=0.2)
            except queue.Empty:
                continue
            if isinstance(message, str):
                self._world.print([message])
            elif isinstance(message, NotFoundError):
                end = end or "is deleted"
            elif isinstance(message, CommandError):
                raise message
            elif isinstance(message, tuple):
                kind, content = message
                if kind == "ended":
                    self._followed.open.discard(content)
                elif kind == "pod":
                    self._on_pod_event(content)
                elif not end:
                    end = self._end_of_job(content)
            if end and deadline == float("inf"):
                deadline = time.monotonic() + _SECONDS_AFTER_THE_END
        return end

    def _end_of_job(self, event: Event) -> str:
        job = read_job(event.object)
        if event.kind == "DELETED" or (job.uid is not None and job.uid != self._job.uid):
            return "is deleted"
        return f"is {job.phase}" if job.finished else ""

    def _on_pod_event(self, event: Event) -> None:
        learner = read_learner(event.object)
        if learner is None or not self._choice.takes(learner):
            return
        self._on_pods([learner])
        if event.kind == "DELETED" and learner.uid in self._followed.streams:
            self._followed.streams[learner.uid].pod_has_ended()

    def _on_pods(self, learners: Sequence[Learner]) -> None:
        for learner in learners:
            stream = self._followed.streams.get(learner.uid)
            if stream is None and learner.has_log:
                stream = self._begin(learner)
            if stream is not None and learner.ended:
                stream.pod_has_ended()

    def _begin(self, learner: Learner) -> LogStream | None:
        followed = self._followed
        if len(followed.open) >= MAX_STREAMS:
            if learner.uid not in followed.left_out:
                followed.left_out.add(learner.uid)
                self._world.note(
                    f"{learner.prefix} is left out: {MAX_STREAMS} learners are followed; --learner N chooses one"
                )
            return None

        def on_end(error: CommandError | None) -> None:
            self._inbox.put(error or ("ended", learner.uid))

        followed.open.add(learner.uid)
        stream = LogStream(self._world.kubectl, learner, self._choice.tail, self._inbox.put, on_end)
        followed.streams[learner.uid] = stream
        return stream
