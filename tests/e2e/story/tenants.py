"""A second tenant has the role `edit` in its own namespace and tries to do harm. The training of another tenant
continues with its fair share of the GPUs."""

import copy
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from . import pace
from .checks import Check
from .kubectl import Kubectl
from .screen import Screen
from .stage import NAMESPACE, Stage, with_epochs
from .waiting import wait

_TENANT = f"{NAMESPACE}-other"
_ACCOUNT = "tenant"
_USER = f"system:serviceaccount:{_TENANT}:{_ACCOUNT}"
_VICTIM = "victim"
_VICTIM_GPUS = 4
_ENDLESS = 1_000_000
_SECONDS = 120.0
# Two looks for the job, a minute apart, and the learners' grace period.
_ORPHANS_SECONDS = 300.0
_FINALIZER = "example.com/hold"
_OBJECTS = "services,secrets,networkpolicies"
_QUOTA = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "gpus"},
    "spec": {"hard": {"requests.nvidia.com/gpu": "4"}},
}


@dataclass(frozen=True)
class Seen:
    """Values that must not change, apart from the step."""

    pods: Mapping[str, str]  # uids of the victim's pods, by name
    restarts: int  # restarts of the operator's containers
    step: int


class _Tenants:
    """The cluster, with the rights of its administrator and of the second tenant."""

    def __init__(self, stage: Stage, screen: Screen) -> None:
        self.stage = stage
        self.screen = screen
        self.admin = stage.kubectl.within(_TENANT)
        self.tenant = self.admin.acting_as(_USER)

    def set_up(self) -> None:
        self.admin.attempt("delete", "namespace", _TENANT, "--wait", "--timeout=120s")
        self.stage.set_up(_TENANT)
        self.admin.run("create", "serviceaccount", _ACCOUNT)
        self.admin.run("create", "rolebinding", "edit", "--clusterrole=edit", f"--serviceaccount={_TENANT}:{_ACCOUNT}")

    def clear(self) -> None:
        self.admin.run("delete", "namespace", _TENANT, "--wait", "--timeout=180s")

    def job(self, name: str, min_learners: int, max_learners: int, *, mine: bool = True, epochs: int = _ENDLESS) -> dict:
        job = with_epochs(self.stage.manifest("training-1"), epochs)
        job["metadata"] |= {"name": name, "namespace": _TENANT if mine else NAMESPACE}
        job["spec"]["elastic"] = {"minLearners": min_learners, "maxLearners": max_learners}
        return pace.paced(job)

    def submit(self, *jobs: Mapping) -> None:
        for job in jobs:
            name = job["metadata"]["name"]
            self.screen.say(f"kubectl apply {name}")
            pace.set_pace(self.admin, name, pace.MILLISECONDS)
            self.tenant.apply(job)

    def start_on_four(self, name: str) -> str:
        """The job's uid."""
        self.submit(self.job(name, 1, 4))
        self.wait(f"{name} trains on 4 GPUs", lambda: self.trains_on(name, 4))
        return self.admin.json("get", "elastictrainingjob", name)["metadata"]["uid"]

    def wait(self, what: str, probe: Callable[[], bool], seconds: float = _SECONDS) -> None:
        wait(self.admin, self.screen, what, probe, seconds)

    def delete(self, *names: str) -> None:
        self.tenant.run("delete", "elastictrainingjobs", *names, "--wait", "--timeout=120s")

    def objects_of(self, uid: str, kinds: str) -> Sequence[str]:
        return self.admin.run("get", kinds, "-l", f"pliant.dev/job-uid={uid}", "-o", "name").split()

    def status(self, name: str) -> Mapping:
        kubectl = self.stage.kubectl if name == _VICTIM else self.admin
        return kubectl.json("get", "elastictrainingjob", name).get("status", {})

    def condition(self, name: str, kind: str) -> Mapping:
        """Empty if the job has none of this type."""
        conditions = self.status(name).get("conditions", ())
        return next((each for each in conditions if each["type"] == kind), {})

    def trains_on(self, name: str, gpus: int) -> bool:
        status = self.status(name)
        return status.get("learners") == gpus and status.get("phase") == "Running"

    def look(self) -> Seen:
        pods = self.stage.kubectl.json("get", "pods", "-l", f"pliant.dev/job={_VICTIM},pliant.dev/role=learner")["items"]
        operator = self.stage.operator_kubectl.json("get", "pods", "-l", "app.kubernetes.io/name=pliant")["items"]
        statuses = [each for pod in operator for each in pod["status"].get("containerStatuses", ())]
        return Seen(
            {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in pods},
            sum(each["restartCount"] for each in statuses),
            self.status(_VICTIM).get("step") or 0,
        )


def play(stage: Stage, screen: Screen) -> list[Check]:
    stage.clear()
    tenants = _Tenants(stage, screen)
    tenants.set_up()
    pace.set_pace(stage.kubectl, _VICTIM, pace.MILLISECONDS)
    stage.kubectl.apply(tenants.job(_VICTIM, _VICTIM_GPUS, _VICTIM_GPUS, mine=False))
    tenants.wait(f"{_VICTIM} trains on {_VICTIM_GPUS} GPUs", lambda: tenants.trains_on(_VICTIM, _VICTIM_GPUS))
    before = tenants.look()
    found = [
        *_forgeries(tenants),
        *_templates(tenants),
        _quota(tenants),
        _waiting(tenants),
        _leftovers(tenants),
        _raised(tenants),
        _phantom(tenants),
        _held(tenants),
        _orphaned(tenants),
    ]
    tenants.wait(f"{_VICTIM} trains on", lambda: (tenants.status(_VICTIM).get("step") or 0) > before.step)
    found.append(unharmed(before, tenants.look()))
    tenants.clear()
    return found


def unharmed(before: Seen, after: Seen) -> Check:
    """Pure."""
    problems = []
    if after.pods != before.pods:
        problems.append(f"its learners were {sorted(before.pods)} and are {sorted(after.pods)}")
    if after.restarts != before.restarts:
        problems.append(f"the operator was restarted {after.restarts - before.restarts} times")
    if after.step <= before.step:
        problems.append(f"it stands still at step {after.step}")
    return Check("the other tenant's training never lost a learner, nor the operator its life", tuple(problems))


def refused(what: str, answer_code: int, answer: str, *words: str) -> Check:
    """Pure."""
    missing = [word for word in words if word not in answer]
    problems = ("it was taken",) if answer_code == 0 else ()
    problems += tuple(f"the answer does not say '{word}': {answer.strip()}" for word in missing if answer_code != 0)
    return Check(f"{what}: refused", problems)


def _forgeries(tenants: _Tenants) -> list[Check]:
    """C2: pods that claim to be the victim's and report that its training is complete."""
    victim = tenants.stage.kubectl.json("get", "elastictrainingjob", _VICTIM)["metadata"]
    words = json.dumps({"reason": "Completed", "step": 1, "parametersSha256": "0" * 56 + "deadbeef"})
    learner = tenants.stage.manifest("training-1")["spec"]["template"]["spec"]["containers"][0]["image"]
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"{_VICTIM}-{victim['uid'][:5]}-0"},
        "spec": {
            "restartPolicy": "Never",
            "containers": [
                {
                    "name": "learner",
                    "image": learner,
                    "command": ["/bin/sh", "-c", f"echo '{words}' > /dev/termination-log"],
                    "resources": {"requests": {"cpu": "10m"}},
                }
            ],
        },
    }
    labelled, owned, ranked = (copy.deepcopy(pod) for _ in range(3))
    ranked["spec"]["priorityClassName"] = "pliant-coordinator"
    labelled["metadata"]["labels"] = {
        "pliant.dev/job": _VICTIM,
        "pliant.dev/job-uid": victim["uid"],
        "pliant.dev/role": "learner",
        "pliant.dev/learner": "0",
    }
    owned["metadata"]["ownerReferences"] = [
        {
            "apiVersion": "pliant.dev/v1alpha1",
            "kind": "ElasticTrainingJob",
            "name": _VICTIM,
            "uid": victim["uid"],
            "controller": True,
        }
    ]
    found = []
    for what, forged in (
        ("a pod with another job's labels", labelled),
        ("a pod that another job owns", owned),
        ("a pod with the priority of coordinators", ranked),
    ):
        answer = tenants.tenant.attempt("create", "-f", "-", stdin=json.dumps(forged))
        found.append(refused(what, answer.returncode, answer.stderr, "pliant"))
    patch = '{"spec":{"suspend":true}}'
    foreign = tenants.tenant.attempt(
        "patch", "elastictrainingjob", _VICTIM, "--namespace", NAMESPACE, "--type=merge", "-p", patch
    )
    found.append(refused("suspending another tenant's job", foreign.returncode, foreign.stderr, "forbidden"))
    return found


def _templates(tenants: _Tenants) -> list[Check]:
    """C1: while the learners of a job leave, its template is replaced by one that cannot be parsed."""
    tenants.submit(tenants.job("odd", 1, 2))
    tenants.wait("odd trains on 2 GPUs", lambda: tenants.trains_on("odd", 2))
    tenants.tenant.run("patch", "elastictrainingjob", "odd", "--type=merge", "-p", '{"spec":{"suspend":true}}')
    found = []
    resources = "/spec/template/spec/containers/0/resources"
    for what, operation, word in (
        ("memory of 64GB", {"path": resources, "value": {"limits": {"memory": "64GB"}}}, "memory"),
        ("a nodeSelector of true", {"path": "/spec/template/spec/nodeSelector", "value": {"gpu": True}}, "nodeSelector"),
    ):
        patch = json.dumps([{"op": "add", **operation}])
        answer = tenants.tenant.attempt("patch", "elastictrainingjob", "odd", "--type=json", "-p", patch)
        found.append(refused(f"a template with {what}", answer.returncode, answer.stderr, word))
    # The API server would silently drop fields from the pod that the resource's schema does not have.
    misspelt = json.dumps(
        [
            {"op": "add", "path": "/spec/template/spec/containers/0/resource", "value": {}},
            {"op": "replace", "path": "/spec/suspend", "value": False},
        ]
    )
    tenants.tenant.run("patch", "elastictrainingjob", "odd", "--type=json", "-p", misspelt)

    def is_told() -> bool:
        admitted = tenants.condition("odd", "Admitted")
        return admitted.get("reason") == "TemplateRefused" and "containers[0].resource" in admitted["message"]

    tenants.wait("odd says which field of its template is unknown", is_told)
    tenants.delete("odd")
    return found


def _quota(tenants: _Tenants) -> Check:
    """B6: the jobs of a namespace share its quota."""
    tenants.admin.apply(_QUOTA)
    tenants.submit(tenants.job("q1", 1, 8))
    tenants.wait("q1 trains on the quota's 4 GPUs", lambda: tenants.trains_on("q1", 4))
    tenants.submit(tenants.job("q2", 1, 8))
    tenants.wait("q2 has half of them", lambda: tenants.trains_on("q1", 2) and tenants.trains_on("q2", 2))
    tenants.delete("q1", "q2")
    tenants.admin.run("delete", "resourcequota", _QUOTA["metadata"]["name"])
    return Check("jobs of a namespace share what its quota leaves them", ())


def _waiting(tenants: _Tenants) -> Check:
    """B8: GPUs that the first job in the queue cannot use go to the next one."""
    tenants.submit(tenants.job("huge", 6, 8))
    tenants.wait("huge waits", lambda: tenants.status("huge").get("phase") == "Queued")
    tenants.submit(tenants.job("small", 1, 4))
    tenants.wait("small trains on the 4 GPUs that huge cannot use", lambda: tenants.trains_on("small", 4))
    tenants.delete("huge", "small")
    return Check("a job that waits for more than there is keeps no GPU from others", ())


def _leftovers(tenants: _Tenants) -> Check:
    """B3: a job that has ended keeps no Service, no Secrets and no NetworkPolicies."""
    short = pace.unpaced(tenants.job("short", 1, 1, epochs=1))
    tenants.submit(short)
    tenants.wait("short is complete", lambda: tenants.status("short").get("phase") == "Succeeded")
    uid = tenants.admin.json("get", "elastictrainingjob", "short")["metadata"]["uid"]

    tenants.wait("nothing is left of it but its pod", lambda: not tenants.objects_of(uid, _OBJECTS))
    return Check("a job that has ended keeps no Service, Secret or NetworkPolicy", ())


def _raised(tenants: _Tenants) -> Check:
    """R1: a running job that raises its minimum takes nothing from another one, and says so."""
    tenants.submit(tenants.job("modest", 1, 4), tenants.job("greedy", 1, 4))

    def each_has_half() -> bool:
        return tenants.trains_on("modest", 2) and tenants.trains_on("greedy", 2)

    tenants.wait("each trains on 2 GPUs", each_has_half)
    raised = json.dumps({"spec": {"elastic": {"minLearners": 3}}})
    tenants.tenant.run("patch", "elastictrainingjob", "greedy", "--type=merge", "-p", raised)

    def is_told() -> bool:
        return "minLearners" in tenants.condition("greedy", "Limited").get("message", "")

    tenants.wait("greedy says that its minimum is not used", is_told)
    tenants.wait("each still trains on 2 GPUs", each_has_half)
    resized = [name for name in ("modest", "greedy") if tenants.status(name).get("desiredLearners") != 2]
    tenants.delete("modest", "greedy")
    return Check(
        "a minimum that is raised takes nothing from another job",
        tuple(f"{name} is to have another number of learners" for name in resized),
    )


def _phantom(tenants: _Tenants) -> Check:
    """R2: pods of a DaemonSet that fit no node take no room."""
    image = tenants.stage.manifest("training-1")["spec"]["template"]["spec"]["containers"][0]["image"]
    labels = {"app": "phantom"}
    tenants.tenant.apply(
        {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": {"name": "phantom"},
            "spec": {
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {
                        "tolerations": [{"operator": "Exists"}],
                        "containers": [{"name": "main", "image": image, "resources": {"requests": {"cpu": "1000"}}}],
                    },
                },
            },
        }
    )
    tenants.start_on_four("honest")
    tenants.tenant.run("delete", "daemonset", "phantom", "--wait", "--timeout=120s")
    tenants.delete("honest")
    return Check("a DaemonSet that fits no node stops no job", ())


def _held(tenants: _Tenants) -> Check:
    """R4: a deleted job that a finalizer keeps gives its GPUs back, and says so."""
    uid = tenants.start_on_four("held")
    finalizers = json.dumps({"metadata": {"finalizers": [_FINALIZER]}})
    tenants.tenant.run("patch", "elastictrainingjob", "held", "--type=merge", "-p", finalizers)
    tenants.tenant.run("delete", "elastictrainingjob", "held", "--wait=false")
    tenants.wait("held is Terminating", lambda: tenants.status("held").get("phase") == "Terminating")
    tenants.submit(tenants.job("next", 4, 4))
    tenants.wait("next trains on its GPUs", lambda: tenants.trains_on("next", 4))
    tenants.wait("nothing of held is left", lambda: not tenants.objects_of(uid, f"pods,{_OBJECTS}"))
    tenants.tenant.run(
        "patch", "elastictrainingjob", "held", "--type=merge", "-p", '{"metadata":{"finalizers":null}}'
    )
    tenants.delete("next")
    return Check("a deleted job that a finalizer keeps gives its GPUs back", ())


def _orphaned(tenants: _Tenants) -> Check:
    """R4: what a job that was deleted with --cascade=orphan leaves goes; another job of its name adopts nothing."""
    uid = tenants.start_on_four("gone")
    tenants.tenant.run("delete", "elastictrainingjob", "gone", "--cascade=orphan", "--wait", "--timeout=120s")
    tenants.submit(tenants.job("gone", 4, 4))
    tenants.wait("it is gone", lambda: not tenants.objects_of(uid, f"pods,{_OBJECTS}"), _ORPHANS_SECONDS)
    tenants.wait("the next job of the name trains", lambda: tenants.trains_on("gone", 4))
    tenants.delete("gone")
    return Check("what an orphaned job leaves goes", ())
