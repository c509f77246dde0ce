"""Jobs that cannot work: each says so by a condition and an event, and harms no other. Then that is deleted."""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from . import checks
from .api_server import ApiServer
from .errors import StoryError
from .screen import Screen
from .stage import GPUS_TOTAL, NAMESPACE, Stage, with_epochs
from .watcher import Watcher
from .world import Job, World

_BYSTANDER = "bystander"
_BAD = "bad"
_SHOWN_SECONDS = 150.0
_LOOK_SECONDS = 1.0
_KUBELET_SECONDS = 30.0  # that ending and removing pods may take beyond their grace period, on a busy machine


@dataclass(frozen=True)
class BadJob:
    name: str
    spoil: Callable[[dict], None]
    says: str  # stands in a condition's message and in an event's
    fails: bool  # the job fails, rather than being tried again


def _learner(job: dict) -> dict:
    return job["spec"]["template"]["spec"]["containers"][0]


def _bad_image(job: dict) -> None:
    _learner(job).update(image="localhost/pliant/absent:1", imagePullPolicy="Never")


def _missing_volume(job: dict) -> None:
    job["spec"]["checkpoint"]["volume"] = {"persistentVolumeClaim": {"claimName": "absent-claim"}}


def _crashing(job: dict) -> None:
    _learner(job).update(command=["/bin/sh", "-c", "echo it crashes; exit 7"], args=[])
    job["spec"]["failurePolicy"] = {"maxFailures": 1}


def _wrong_input(job: dict) -> None:
    _learner(job)["args"] = ["--model=/model/absent.yaml", "--data=/data"]


def _refused_template(job: dict) -> None:
    _learner(job)["volumeMounts"].append({"name": "absent-volume", "mountPath": "/absent"})


BAD_JOBS = (
    BadJob("an image that is not there", _bad_image, "localhost/pliant/absent:1", fails=False),
    BadJob("a checkpoint volume that is not there", _missing_volume, "absent-claim", fails=False),
    BadJob("a program that crashes", _crashing, "7", fails=True),
    BadJob("a program whose input is wrong", _wrong_input, "/model/absent.yaml", fails=True),
    BadJob("a template that the API server refuses", _refused_template, "absent-volume", fails=False),
)


def play(stage: Stage, screen: Screen) -> list[checks.Check]:
    stage.clear()
    bystander = with_epochs(stage.manifest("training-1"), 1_000_000)
    bystander["metadata"]["name"] = _BYSTANDER
    with Watcher(ApiServer(stage.kubectl), NAMESPACE, screen.show) as watcher:
        screen.say("kubectl apply bystander")
        stage.kubectl.apply(bystander)
        before = watcher.wait("the bystander trains", _bystander_trains(1), _SHOWN_SECONDS, lambda world: None)
        pods_before = {pod.name for pod in before.trainings[_BYSTANDER].learner_pods()}
        found = [_refused_object(stage), *(_bad_job(stage, screen, watcher, bad) for bad in BAD_JOBS)]
        step = watcher.worlds()[-1].trainings[_BYSTANDER].progress.step
        watcher.wait("the bystander trains on", _bystander_trains(step + 1), _SHOWN_SECONDS, lambda world: None)
        found += [_unharmed(watcher.worlds(), pods_before), *checks.check_worlds(watcher.worlds(), GPUS_TOTAL)]
        found.append(_delete(stage, screen, watcher.worlds()[-1].trainings[_BYSTANDER].job, bystander))
    screen.close_table()
    return found


def _bystander_trains(step: int) -> Callable[[World], bool]:
    def trains(world: World) -> bool:
        training = world.training(_BYSTANDER)
        return bool(training and training.progress and (training.progress.step or 0) >= step)

    return trains


def _refused_object(stage: Stage) -> checks.Check:
    job = stage.manifest("training-1")
    job["metadata"]["name"] = _BAD
    job["spec"]["elastic"] = {"minLearners": 9, "maxLearners": 8}
    answer = stage.kubectl.attempt("create", "-f", "-", stdin=json.dumps(job))
    names_field = answer.returncode != 0 and "spec.elastic.minLearners" in answer.stderr
    problems = () if names_field else (answer.stderr.strip() or "it was taken",)
    return checks.Check("a wrong object is refused, with its field named", problems)


def _bad_job(stage: Stage, screen: Screen, watcher: Watcher, bad: BadJob) -> checks.Check:
    job = stage.manifest("training-1")
    job["metadata"]["name"] = _BAD
    job["spec"]["elastic"]["maxLearners"] = 1
    bad.spoil(job)
    screen.say(f"kubectl apply bad: {bad.name}")
    stage.kubectl.apply(job)
    try:
        watcher.wait(
            f"a condition says '{bad.says}'", lambda world: says(world, bad), _SHOWN_SECONDS, lambda world: None
        )
        problems = _event_problems(stage, bad)
    except StoryError as error:
        conditions = stage.kubectl.json("get", "elastictrainingjob", _BAD).get("status", {}).get("conditions")
        problems = (f"{error}; its conditions: {conditions}",)
    stage.kubectl.run("delete", "elastictrainingjob", _BAD, "--wait", "--timeout=120s")
    return checks.Check(f"{bad.name}: a condition and an event say so", problems)


def says(world: World, bad: BadJob) -> bool:
    training = world.training(_BAD)
    if training is None or (bad.fails and not training.job.is_true("Failed")):
        return False
    return any(bad.says in condition.message for condition in training.job.conditions.values())


def _event_problems(stage: Stage, bad: BadJob) -> tuple[str, ...]:
    deadline = time.monotonic() + _KUBELET_SECONDS
    while True:
        selector = f"involvedObject.kind=ElasticTrainingJob,involvedObject.name={_BAD},type=Warning"
        events = stage.kubectl.json("get", "events", "--field-selector", selector)["items"]
        if any(bad.says in event["message"] for event in events):
            return ()
        if time.monotonic() > deadline:
            return (f"no event says '{bad.says}': {[event['message'] for event in events]}",)
        time.sleep(_LOOK_SECONDS)


def _unharmed(worlds: list[World], pods_before: set[str]) -> checks.Check:
    problems = set()
    for world in worlds:
        training = world.training(_BYSTANDER)
        if training is None:
            continue
        problems |= {f"its learner {pod.name} failed" for pod in training.learner_pods() if pod.phase == "Failed"}
        if training.job.is_true("Failed"):
            problems.add(f"it failed: {training.job.reason}")
    lasting = pods_before & {pod.name for pod in worlds[-1].trainings[_BYSTANDER].learner_pods()}
    if not lasting:
        problems.add("none of its first learners is left")
    return checks.Check("bad jobs did no harm to another one", tuple(sorted(problems)))


def _delete(stage: Stage, screen: Screen, job: Job, manifest: Mapping) -> checks.Check:
    screen.say("kubectl delete bystander")
    grace = manifest["spec"]["resize"]["gracePeriodSeconds"]
    begin = time.monotonic()
    stage.kubectl.run("delete", "elastictrainingjob", _BYSTANDER, "--wait=false")
    left = [_BYSTANDER]
    while left and time.monotonic() - begin < grace + _KUBELET_SECONDS:
        time.sleep(_LOOK_SECONDS)
        left = stage.kubectl.run(
            "get", "pods,services,secrets", "-l", f"pliant.dev/job-uid={job.uid}", "-o", "name"
        ).split()
    name = f"deleting a job ends all that it owns within its grace period of {grace} s"
    return checks.Check(name, (f"there still are {', '.join(left)}",) if left else ())
