"""Jobs that cannot work: each reports it in a condition and an event, and does not harm the bystander. At the end the
bystander is deleted."""

import json
import time
from collections.abc import Callable, Mapping, Sequence

from . import checks
from .api_server import ApiServer
from .errors import StoryError
from .screen import Screen
from .spoilt import BAD_JOBS, QUOTA_MEMORY, REFUSED_JOBS, BadJob, RefusedJob, raising_program
from .stage import GPUS_TOTAL, NAMESPACE, Stage, with_epochs
from .watcher import Watcher
from .world import Job, World

_BYSTANDER = "bystander"
_RAISES = "bad-python"
_AT_ONCE = 6  # bad jobs at a time, each with one GPU; the bystander keeps the others
_SHOWN_SECONDS = 120.0
_LOOK_SECONDS = 1.0
_KUBELET_SECONDS = 30.0  # time to end and remove pods beyond their grace period, on a busy machine

_PASSING_NAMESPACE = f"{NAMESPACE}-passing"

_QUOTA = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "bad-jobs"},
    "spec": {"hard": {"requests.memory": QUOTA_MEMORY}},
}


def play(stage: Stage, screen: Screen) -> list[checks.Check]:
    stage.clear()
    stage.kubectl.apply(_QUOTA)
    bystander = with_epochs(stage.manifest("training-1"), 1_000_000)
    bystander["metadata"]["name"] = _BYSTANDER
    with Watcher(ApiServer(stage.kubectl), [NAMESPACE], screen.show) as watcher:
        screen.say("kubectl apply bystander")
        stage.kubectl.apply(bystander)
        before = watcher.wait("the bystander trains", _bystander_trains(1), _SHOWN_SECONDS, lambda world: None)
        pods_before = {pod.name for pod in before.trainings[_BYSTANDER].learner_pods()}
        found = [_refused_job(stage, refused) for refused in REFUSED_JOBS]
        named = [(f"bad-{number}", bad) for number, bad in enumerate(BAD_JOBS, 1)]
        for first in range(0, len(named), _AT_ONCE):
            found += _bad_jobs(stage, screen, watcher, dict(named[first : first + _AT_ONCE]))
        found += _raising_program(stage, screen, watcher)
        step = watcher.worlds()[-1].trainings[_BYSTANDER].progress.step
        watcher.wait("the bystander trains on", _bystander_trains(step + 1), _SHOWN_SECONDS, lambda world: None)
        found += [unharmed(watcher.worlds(), pods_before), *checks.check_worlds(watcher.worlds(), GPUS_TOTAL)]
        # On another cluster the checkpoints' claim exists in one namespace only.
        if stage.checkpoint_volume is None:
            found.append(_delete_namespace(stage, screen))
            step = watcher.worlds()[-1].trainings[_BYSTANDER].progress.step
            watcher.wait("the bystander trains on", _bystander_trains(step + 1), _SHOWN_SECONDS, lambda world: None)
        found.append(_delete(stage, screen, watcher.worlds()[-1].trainings[_BYSTANDER].job, bystander))
    stage.kubectl.run("delete", "resourcequota", _QUOTA["metadata"]["name"])
    screen.close_table()
    return found


def _bystander_trains(step: int) -> Callable[[World], bool]:
    def trains(world: World) -> bool:
        training = world.training(_BYSTANDER)
        return bool(training and training.progress and (training.progress.step or 0) >= step)

    return trains


def _refused_job(stage: Stage, refused: RefusedJob) -> checks.Check:
    job = stage.manifest("training-1")
    job["metadata"]["name"] = "refused"
    refused.spoil(job)
    answer = stage.kubectl.attempt("create", "-f", "-", stdin=json.dumps(job))
    names_field = answer.returncode != 0 and refused.field in answer.stderr
    problems = () if names_field else (answer.stderr.strip() or "it was taken",)
    return checks.Check(f"{refused.name}: refused, and {refused.field} named", problems)


def _bad_jobs(stage: Stage, screen: Screen, watcher: Watcher, bad_jobs: Mapping[str, BadJob]) -> list[checks.Check]:
    """Applies them all, and removes them when each has reported its problem."""
    for name, bad in bad_jobs.items():
        job = stage.manifest("training-1")
        job["metadata"]["name"] = name
        job["spec"]["elastic"]["maxLearners"] = 1
        bad.spoil(job)
        screen.say(f"kubectl apply {name}: {bad.name}")
        stage.kubectl.apply(job)
    deadline = time.monotonic() + _SHOWN_SECONDS
    found = [_says_why(stage, watcher, name, bad, deadline) for name, bad in bad_jobs.items()]
    stage.kubectl.run("delete", "elastictrainingjobs", *bad_jobs, "--wait", "--timeout=120s")
    return found


def _raising_program(stage: Stage, screen: Screen, watcher: Watcher) -> list[checks.Check]:
    """One of two learners raises: its traceback is in `kubectl logs`, the last line in a condition."""
    if not stage.pytorch_image:
        screen.say("no image of PyTorch programs: one that raises is left out", "yellow")
        return []
    bad = raising_program(stage.pytorch_image)
    job = stage.manifest("training-1")
    job["metadata"]["name"] = _RAISES
    bad.spoil(job)
    screen.say(f"kubectl apply {_RAISES}: {bad.name}")
    stage.kubectl.apply(job)
    found = [_says_why(stage, watcher, _RAISES, bad, time.monotonic() + _SHOWN_SECONDS)]
    ended = watcher.wait("both learners have ended", _holds_no_gpu(_RAISES), _SHOWN_SECONDS, lambda world: None)
    failed = [pod.name for pod in ended.trainings[_RAISES].learner_pods() if pod.phase == "Failed"]
    logs = [stage.kubectl.attempt("logs", pod, "--container=learner").stdout for pod in failed]
    stage.kubectl.run("delete", "elastictrainingjob", _RAISES, "--wait", "--timeout=120s")
    return [*found, one_fails(watcher.worlds(), _RAISES), has_traceback(logs, bad)]


def _holds_no_gpu(name: str) -> Callable[[World], bool]:
    def reached(world: World) -> bool:
        training = world.training(name)
        return training is not None and training.job.is_true("Failed") and training.gpus_held == 0

    return reached


def one_fails(worlds: Sequence[World], name: str) -> checks.Check:
    """One of several learners fails; the others end normally when they receive their orders. Pure."""
    trainings = [training for world in worlds if (training := world.training(name))]
    pods = [pod for training in trainings for pod in training.learner_pods()]
    seen = {pod.name for pod in pods}
    failed = {pod.name for pod in pods if pod.phase == "Failed"}
    holds = len(failed) == 1 and len(seen) > 1
    problems = () if holds else (f"of {len(seen)} learners failed: {', '.join(sorted(failed)) or 'none'}",)
    return checks.Check("one learner raises, and the others end well", problems)


def has_traceback(logs: Sequence[str], bad: BadJob) -> checks.Check:
    """A traceback has the place above its last line; the condition has it in parentheses after the message. Pure."""
    parts = ("Traceback (most recent call last)", bad.says.removesuffix(" ("))
    holds = any(all(part in log for part in parts) for log in logs)
    problems = () if holds else (f"{len(logs)} logs without {parts[0]}: {[log[-500:] for log in logs]}",)
    return checks.Check(f"{bad.name}: its traceback is in kubectl logs", problems)


def _says_why(stage: Stage, watcher: Watcher, name: str, bad: BadJob, deadline: float) -> checks.Check:
    try:
        watcher.wait(
            f"{name} ({bad.name}) says {bad.condition}, {bad.reason}: '{bad.says}'",
            lambda world: says(world, name, bad),
            max(deadline - time.monotonic(), _LOOK_SECONDS),
            lambda world: None,
        )
        problems = _event_problems(stage, name, bad)
    except StoryError as error:
        conditions = stage.kubectl.json("get", "elastictrainingjob", name).get("status", {}).get("conditions")
        problems = (f"{error}; its conditions: {conditions}",)
    return checks.Check(f"{bad.name}: {bad.condition} {bad.reason} and an event say so", problems)


def says(world: World, name: str, bad: BadJob) -> bool:
    training = world.training(name)
    if training is None or bad.condition not in training.job.conditions:
        return False
    condition = training.job.conditions[bad.condition]
    # Failed reports a problem when it is true, the other conditions when they are false.
    status = "True" if bad.condition == "Failed" else "False"
    return condition.status == status and condition.reason == bad.reason and bad.says in condition.message


def _event_problems(stage: Stage, name: str, bad: BadJob) -> tuple[str, ...]:
    deadline = time.monotonic() + _KUBELET_SECONDS
    selector = f"involvedObject.kind=ElasticTrainingJob,involvedObject.name={name},type=Warning"
    while True:
        events = stage.kubectl.json("get", "events", "--field-selector", selector)["items"]
        if any(bad.says in event["message"] for event in events):
            return ()
        if time.monotonic() > deadline:
            return (f"no event says '{bad.says}': {[event['message'] for event in events]}",)
        time.sleep(_LOOK_SECONDS)


def unharmed(worlds: Sequence[World], pods_before: set[str]) -> checks.Check:
    """The operator chooses which learners leave when the job shrinks, but some must always stay. Pure."""
    problems = set()
    known = set(pods_before)
    for world in worlds:
        training = world.training(_BYSTANDER)
        if training is None:
            continue
        pods = {pod.name for pod in training.learner_pods()}
        if pods and not pods & known:
            problems.add(f"all its learners were replaced at once, by {', '.join(sorted(pods))}")
        known |= pods
        problems |= {f"its learner {pod.name} failed" for pod in training.learner_pods() if pod.phase == "Failed"}
        if training.job.is_true("Failed"):
            problems.add(f"it failed: {training.job.reason}")
    return checks.Check("bad jobs did no harm to another one", tuple(sorted(problems)))


def _delete_namespace(stage: Stage, screen: Screen) -> checks.Check:
    """Deletes a namespace with a running job. The operator continues to write the job's objects until it sees the
    deletion."""
    job = with_epochs(stage.manifest("training-1"), 1_000_000)
    job["metadata"] |= {"name": "passing", "namespace": _PASSING_NAMESPACE}
    screen.say(f"kubectl apply passing, in {_PASSING_NAMESPACE}")
    kubectl = stage.set_up(_PASSING_NAMESPACE)
    kubectl.apply(job)
    kubectl.run("wait", "elastictrainingjob/passing", "--for=condition=Running", f"--timeout={_SHOWN_SECONDS:.0f}s")
    screen.say(f"kubectl delete namespace {_PASSING_NAMESPACE}")
    most = job["spec"]["resize"]["gracePeriodSeconds"] + 2 * _KUBELET_SECONDS
    begin = time.monotonic()
    gone = kubectl.attempt("delete", "namespace", _PASSING_NAMESPACE, "--wait", f"--timeout={most:.0f}s")
    problems = ()
    if gone.returncode != 0:
        left = kubectl.attempt("get", "namespace", _PASSING_NAMESPACE, "-o", "jsonpath={.status.conditions}")
        problems = (f"{gone.stderr.strip()}: {left.stdout}",)
    took = time.monotonic() - begin
    return checks.Check(f"a namespace with a job that trains is deleted within {most:.0f} s ({took:.0f} s)", problems)


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
