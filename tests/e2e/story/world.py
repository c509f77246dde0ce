"""The state of the cluster at one moment, as values. Pure: JSON of the API server in, values out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

COORDINATOR_PORT = 9090


@dataclass(frozen=True)
class Pod:
    name: str
    uid: str
    job_uid: str
    role: str
    node: str
    phase: str
    gated: bool
    deleting: bool

    @staticmethod
    def parse(pod: Mapping) -> "Pod":
        metadata, spec = pod["metadata"], pod["spec"]
        labels = metadata.get("labels", {})
        return Pod(
            name=metadata["name"],
            uid=metadata["uid"],
            job_uid=labels.get("pliant.dev/job-uid", ""),
            role=labels.get("pliant.dev/role", ""),
            node=spec.get("nodeName", ""),
            phase=pod.get("status", {}).get("phase", "Pending"),
            gated=bool(spec.get("schedulingGates")),
            deleting="deletionTimestamp" in metadata,
        )

    @property
    def holds_gpu(self) -> bool:
        """True from the time when it is bound to a node until all of its containers have ended."""
        return self.role == "learner" and self.node != "" and self.phase not in ("Succeeded", "Failed")


@dataclass(frozen=True)
class Condition:
    status: str
    reason: str
    message: str


@dataclass(frozen=True)
class Job:
    name: str
    uid: str
    priority: int
    min_learners: int
    max_learners: int
    phase: str
    learners_desired: int
    reason: str
    step: int | None
    steps_total: int | None
    accuracy: float | None
    parameters_sha256: str
    evaluations: tuple[tuple[int, float | None], ...] = ()  # step and accuracy
    conditions: Mapping[str, Condition] = field(default_factory=dict)
    generation: int = 0
    observed_generation: int = 0  # generation of the spec on which the status is based

    @staticmethod
    def parse(job: Mapping) -> "Job":
        spec, status = job["spec"], job.get("status", {})
        return Job(
            name=job["metadata"]["name"],
            uid=job["metadata"]["uid"],
            priority=spec.get("priority", 5000),
            min_learners=spec["elastic"]["minLearners"],
            max_learners=spec["elastic"]["maxLearners"],
            phase=status.get("phase", ""),
            learners_desired=status.get("desiredLearners", 0),
            reason=status.get("reason", ""),
            step=status.get("step"),
            steps_total=status.get("totalSteps"),
            accuracy=status.get("accuracy"),
            parameters_sha256=status.get("parametersSha256", ""),
            evaluations=tuple((each["step"], each.get("accuracy")) for each in status.get("evaluations", [])),
            conditions={
                each["type"]: Condition(each["status"], each.get("reason", ""), each.get("message", ""))
                for each in status.get("conditions", [])
            },
            generation=job["metadata"].get("generation", 0),
            observed_generation=status.get("observedGeneration", 0),
        )

    @property
    def finished(self) -> bool:
        return self.phase in ("Succeeded", "Failed")

    def is_true(self, condition: str) -> bool:
        return condition in self.conditions and self.conditions[condition].status == "True"


@dataclass(frozen=True)
class Resize:
    """One change of membership, as the job's coordinator saw it."""

    membership: str
    kind: str
    learners_from: int
    learners_to: int
    requested: float  # Unix seconds
    running: float
    pause_seconds: float
    steps_lost: int
    step: int

    @staticmethod
    def parse(resize: Mapping) -> "Resize":
        return Resize(
            membership=resize["membership"],
            kind=resize["kind"],
            learners_from=resize["from"],
            learners_to=resize["to"],
            requested=resize["requestedUnixSeconds"],
            running=resize["runningUnixSeconds"],
            pause_seconds=resize.get("longestPauseSeconds", 0.0),
            steps_lost=resize.get("stepsLost", 0),
            step=resize.get("step", 0),
        )


@dataclass(frozen=True)
class Progress:
    """A coordinator's answer to GET /progress. A value that it does not have yet is None."""

    state: str
    membership: str
    members: tuple[str, ...]
    step: int | None
    steps_total: int | None
    epoch: int | None
    loss: float | None
    accuracy: float | None
    samples_per_second: float | None
    checkpoint_step: int | None
    parameters_sha256: str
    resizes: tuple[Resize, ...]

    @staticmethod
    def parse(progress: Mapping) -> "Progress":
        membership = progress.get("membership") or {}
        return Progress(
            state=progress.get("state", ""),
            membership=membership.get("id", ""),
            members=tuple(membership.get("learners", ())),
            step=progress.get("step"),
            steps_total=progress.get("totalSteps"),
            epoch=progress.get("epoch"),
            loss=progress.get("loss"),
            accuracy=progress.get("accuracy"),
            samples_per_second=progress.get("samplesPerSecond"),
            checkpoint_step=(progress.get("lastCheckpoint") or {}).get("step"),
            parameters_sha256=progress.get("parametersSha256", ""),
            # A resize that was proposed but does not run yet has no runningUnixSeconds.
            resizes=tuple(Resize.parse(each) for each in progress.get("resizes", ()) if each.get("runningUnixSeconds")),
        )


@dataclass(frozen=True)
class Training:
    """A job with its pods and its coordinator's last answer."""

    job: Job
    pods: tuple[Pod, ...]
    progress: Progress | None

    @property
    def gpus_held(self) -> int:
        return sum(pod.holds_gpu for pod in self.pods)

    def trains_on(self, learners: int) -> bool:
        """Whether exactly this number of learners are members, train, and hold the job's GPUs."""
        progress = self.progress
        if progress is None or self.job.finished:
            return False
        steady = progress.state == "Running" and self.job.learners_desired == learners
        return steady and len(progress.members) == learners == self.gpus_held

    def learner_pods(self) -> list[Pod]:
        return [pod for pod in self.pods if pod.role == "learner"]


@dataclass(frozen=True)
class World:
    """The state of all trainings at one moment."""

    time: float  # Unix seconds
    trainings: Mapping[str, Training]

    def training(self, name: str) -> Training | None:
        return self.trainings.get(name)

    @property
    def gpus_held(self) -> int:
        return sum(each.gpus_held for each in self.trainings.values())


def coordinator_of(job: Job, pods: Sequence[Pod]) -> Pod | None:
    """The running coordinator of the highest term."""
    running = [pod for pod in pods if pod.job_uid == job.uid and pod.role == "coordinator" and pod.phase == "Running"]
    return max(running, key=lambda pod: int(pod.name.rsplit("-", 1)[1]), default=None)


def node_without_coordinator(training: Training) -> str:
    """A node that has learners of the training but not its coordinator."""
    coordinator = coordinator_of(training.job, training.pods)
    learners = [pod for pod in training.learner_pods() if pod.holds_gpu]
    return next(pod.node for pod in learners if coordinator is None or pod.node != coordinator.node)


def make_world(
    time: float, jobs: Sequence[Mapping], pods: Sequence[Mapping], progress: Mapping[str, Progress]
) -> World:
    """`progress`: the coordinators' answers, by uid of the job."""
    all_pods = [Pod.parse(pod) for pod in pods]
    trainings = {}
    for job in map(Job.parse, jobs):
        mine = tuple(pod for pod in all_pods if pod.job_uid == job.uid)
        trainings[job.name] = Training(job, mine, progress.get(job.uid))
    return World(time, trainings)
