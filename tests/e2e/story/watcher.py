"""Samples the cluster twice a second, keeps the samples, and lets the story wait for states."""

import threading
import time
from collections.abc import Callable, Sequence

from .api_server import ApiServer, ApiUnavailable
from .errors import StoryError
from .world import COORDINATOR_PORT, Job, Pod, Progress, Resize, World, coordinator_of, make_world

_INTERVAL_SECONDS = 0.5
_MAX_BLIND_SECONDS = 60.0  # a wait fails when the API server has been unreachable for this time


class Watcher:
    """A thread that samples the jobs of the namespaces, in which no two have the same name. `on_world` is called on it
    with every new sample."""

    def __init__(self, api: ApiServer, namespaces: Sequence[str], on_world: Callable[[World], None]) -> None:
        self._api = api
        self._namespaces = namespaces
        self._on_world = on_world
        self._changed = threading.Condition()
        # Guarded by _changed.
        self._worlds: list[World] = []
        self._resizes: dict[tuple[str, str], tuple[str, Resize]] = {}  # by (uid, membership): name, resize
        self._stopping = False
        self._crash: BaseException | None = None
        # Used by the thread only.
        self._progress: dict[str, Progress] = {}
        self._thread = threading.Thread(target=self._run, name="watcher", daemon=True)

    def __enter__(self) -> "Watcher":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        self._thread.join()

    def wait(
        self, what: str, reached: Callable[[World], bool], seconds: float, hopeless: Callable[[World], str | None]
    ) -> World:
        """The first new sample in which the state is reached. `hopeless` returns why it never will be; None: it may."""
        deadline = time.monotonic() + seconds
        with self._changed:
            seen = len(self._worlds)
            while True:
                if self._crash:
                    raise StoryError(f"the watcher failed: {self._crash!r}") from self._crash
                for world in self._worlds[seen:]:
                    if reached(world):
                        return world
                    if why := hopeless(world):
                        raise StoryError(f"waited until {what}, but {why}")
                seen = len(self._worlds)
                last = self._worlds[-1].time if self._worlds else None
                if last is not None and time.time() - last > _MAX_BLIND_SECONDS:
                    raise StoryError(f"waited until {what}, but the API server has been away for a minute")
                left = deadline - time.monotonic()
                if left <= 0:
                    raise StoryError(f"timed out after {seconds:.0f} s, waiting until {what}: {_describe(self._worlds)}")
                self._changed.wait(min(left, 5.0))

    def worlds(self) -> list[World]:
        with self._changed:
            return list(self._worlds)

    def resizes(self) -> list[tuple[str, Resize]]:
        """All observed resizes with the job's name, in the order in which they took effect."""
        with self._changed:
            return sorted(self._resizes.values(), key=lambda each: each[1].running)

    def _run(self) -> None:
        try:
            while not self._stopping:
                begin = time.monotonic()
                try:
                    world = self._look()
                except ApiUnavailable:
                    world = None  # the server may be busy; the next sample may succeed
                if world:
                    self._keep(world)
                    self._on_world(world)
                with self._changed:
                    rest = _INTERVAL_SECONDS - (time.monotonic() - begin)
                    self._changed.wait_for(lambda: self._stopping, timeout=max(rest, 0.05))
        except BaseException as error:  # shown by wait(), on the story's thread
            with self._changed:
                self._crash = error
                self._changed.notify_all()

    def _look(self) -> World:
        now = time.time()
        jobs, pods = [], []
        for namespace in self._namespaces:
            jobs_here = self._api.items(f"/apis/pliant.dev/v1alpha1/namespaces/{namespace}/elastictrainingjobs")
            selector = "labelSelector=app.kubernetes.io%2Fmanaged-by%3Dpliant"
            pods_here = self._api.items(f"/api/v1/namespaces/{namespace}/pods?{selector}")
            parsed = [Pod.parse(pod) for pod in pods_here]
            for job in map(Job.parse, jobs_here):
                self._ask_coordinator(namespace, job, coordinator_of(job, parsed))
            jobs += jobs_here
            pods += pods_here
        return make_world(now, jobs, pods, self._progress)

    def _ask_coordinator(self, namespace: str, job: Job, coordinator: Pod | None) -> None:
        """Without an answer the last one is kept: the training also continues without a coordinator."""
        if coordinator is None:
            return
        path = f"/api/v1/namespaces/{namespace}/pods/{coordinator.name}:{COORDINATOR_PORT}/proxy/progress"
        try:
            self._progress[job.uid] = Progress.parse(self._api.get(path))
        except ApiUnavailable:
            return

    def _keep(self, world: World) -> None:
        with self._changed:
            self._worlds.append(world)
            for training in world.trainings.values():
                for resize in training.progress.resizes if training.progress else ():
                    self._resizes[training.job.uid, resize.membership] = (training.job.name, resize)
            self._changed.notify_all()


def _describe(worlds: list[World]) -> str:
    if not worlds:
        return "nothing was seen of the cluster"
    parts = []
    for name, training in sorted(worlds[-1].trainings.items()):
        progress = training.progress
        members = f"{len(progress.members)} members, {progress.state}, step {progress.step}" if progress else "no news"
        gpus = f"holds {training.gpus_held} of {training.job.learners_desired} GPUs"
        parts.append(f"{name} is {training.job.phase or 'new'}, {gpus}, {members} ({training.job.reason})")
    return "; ".join(parts) or "there is no job"
