"""Small values for tests."""

from story.world import Job, Pod, Progress, Resize, Training, World


def learner(number: int, *, job_uid: str = "u1", node: str = "node-1", phase: str = "Running") -> Pod:
    return Pod(
        name=f"job-{job_uid}-{number}",
        uid=f"pod-{number}",
        job_uid=job_uid,
        role="learner",
        node=node,
        phase=phase,
        gated=node == "",
        deleting=False,
    )


def job(name: str = "training-1", *, uid: str = "u1", phase: str = "Running", desired: int = 0, **more: object) -> Job:
    values = {
        "priority": 5000, "min_learners": 1, "max_learners": 8, "reason": "", "step": None, "steps_total": None,
        "accuracy": None, "parameters_sha256": "",
    }  # fmt: skip
    return Job(name=name, uid=uid, phase=phase, learners_desired=desired, **{**values, **more})


def progress(members: int, *, state: str = "Running", step: int = 0, resizes: tuple[Resize, ...] = ()) -> Progress:
    return Progress(
        state=state,
        membership="1.1",
        members=tuple(f"job-{number}" for number in range(members)),
        step=step,
        steps_total=900,
        epoch=step // 6,
        loss=0.5,
        accuracy=None,
        samples_per_second=1000.4,
        checkpoint_step=None,
        parameters_sha256="",
        resizes=resizes,
    )


def training(learners: int, *, name: str = "training-1", uid: str = "u1", step: int = 0, **more: object) -> Training:
    """A training job with this number of learners, as planned."""
    pods = tuple(learner(number, job_uid=uid) for number in range(learners))
    return Training(job(name, uid=uid, desired=learners, **more), pods, progress(learners, step=step))


def world(time: float, *trainings: Training) -> World:
    return World(time, {each.job.name: each for each in trainings})


def resize(before: int, after: int, *, running: float, lost: int = 0, membership: str = "1.2") -> Resize:
    return Resize(
        membership=membership,
        kind="Planned",
        learners_from=before,
        learners_to=after,
        requested=running - 0.5,
        running=running,
        pause_seconds=0.25,
        steps_lost=lost,
        step=10,
    )
