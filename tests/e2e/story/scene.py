"""One training that is disturbed, and waits for its states. It runs slowly until only its end is awaited."""

import json
from collections.abc import Callable, Mapping

from . import pace, reference
from .screen import Screen
from .stage import Stage
from .watcher import Watcher
from .world import Job, Pod, Progress, Training, World

_RESIZE_SECONDS = 180.0
_TRAIN_SECONDS = 1800.0


class Scene:
    def __init__(self, name: str, stage: Stage, screen: Screen, watcher: Watcher) -> None:
        self.name = name
        self.stage = stage
        self.watcher = watcher
        self._screen = screen

    def say(self, text: str) -> None:
        self._screen.say(text)

    def now(self) -> Training:
        return self.watcher.worlds()[-1].trainings[self.name]

    def wait(self, what: str, reached: Callable[[Training], bool], seconds: float = _RESIZE_SECONDS) -> Training:
        def in_world(world: World) -> bool:
            training = world.training(self.name)
            return training is not None and reached(training)

        def hopeless(world: World) -> str | None:
            training = world.training(self.name)
            if training and training.job.finished:
                return f"it is {training.job.phase}: {training.job.reason}"
            return None

        world = self.watcher.wait(what, in_world, seconds, hopeless)
        self._screen.say(f"   {what}", "green")
        return world.trainings[self.name]

    def complete(self) -> Job:
        """Waits until the training is complete, at full speed."""
        pace.let_go(self.stage.kubectl, self.name)
        return self.wait("it completes", lambda each: each.job.phase == "Succeeded", _TRAIN_SECONDS).job

    def apply(self, job: Mapping, shard_milliseconds: int = pace.MILLISECONDS) -> None:
        """Applies the job, and starts its undisturbed run at the same time."""
        self.say(f"kubectl apply {self.name}")
        pace.set_pace(self.stage.kubectl, self.name, shard_milliseconds)
        self.stage.kubectl.apply(pace.paced(job))
        reference.begin(self.stage.kubectl, [job])

    def patch(self, patch: str) -> None:
        self.stage.kubectl.run("patch", "elastictrainingjob", self.name, "--type=merge", "-p", patch)

    def scale(self, learners: int) -> None:
        self.say(f"kubectl scale {self.name} --replicas={learners}")
        self.stage.kubectl.run("scale", "elastictrainingjob", self.name, f"--replicas={learners}")

    def suspend(self) -> Training:
        """Suspends the job and waits until none of its learners runs."""
        self._run_pliant("suspend")
        return self.wait(
            "it is suspended and holds no GPU", lambda each: each.job.phase == "Suspended" and each.gpus_held == 0
        )

    def resume(self, learners: int) -> Training:
        """Resumes the job and waits until it trains on this number of learners."""
        before = self.now().progress
        self._run_pliant("resume")
        return self.wait(
            f"it trains on {learners} GPUs again",
            lambda each: each.trains_on(learners) and differs(each.progress, before),
        )

    def _run_pliant(self, command: str) -> None:
        self.say(f"kubectl pliant {command} {self.name}")
        self.say(f"   {self.stage.kubectl.pliant(command, self.name).strip()}")

    def learners(self) -> list[Pod]:
        """The learners that hold a GPU now."""
        return [pod for pod in self.now().learner_pods() if pod.holds_gpu]

    def logs(self) -> str:
        """The logs of all learners that hold a GPU."""
        return "\n".join(self.stage.kubectl.run("logs", pod.name) for pod in self.learners())


def restored_step(logs: str) -> int:
    """The step of the checkpoint that the learners restored, from their logs; 0 if they restored none."""
    lines = [json.loads(line) for line in logs.splitlines() if line.startswith("{")]
    return max((line["step"] for line in lines if line["message"] == "restored"), default=0)


def differs(progress: Progress, before: Progress) -> bool:
    return progress.membership != before.membership
