"""Checks of the chart: its own tests, the rendered objects, and an installation on a real API
server with the commands of docs/install.md."""

import contextlib
import json
import os
import re
import subprocess
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from . import control_plane, go_programs, openapi
from .counts import Counts
from .errors import DevError
from .progress import phase, say
from .settings import KUBERNETES_VERSION, REPO, STATE

CHART = REPO / "helm" / "pliant"
_GUIDE = REPO / "docs" / "install.md"
_CRDS = sorted((REPO / "crds").glob("*.yaml"))
_INSTALL = REPO / "manifests" / "install.yaml"
_EXAMPLES = sorted((REPO / "manifests" / "examples").glob("*.yaml"))
_PROGRAMS = sorted((REPO / "examples").glob("*/job.yaml"))
_DEMO = REPO / "manifests" / "demo"
# The example for namespaces in which pods must meet the restricted Pod Security Standard.
_RESTRICTED_EXAMPLE = REPO / "manifests" / "examples" / "digits.yaml"
_NAMESPACE = "pliant-system"
_OPERATOR = f"system:serviceaccount:{_NAMESPACE}:pliant"

# The defaults, and the value files in ci/. Together they cover all branches of the templates.
_VALUES: dict[str, list[str | Path]] = {
    "default": [],
    **{file.stem: ["--values", file] for file in sorted((CHART / "ci").glob("*.yaml"))},
}

_LEASE = "leases.coordination.k8s.io"

# Rights of the operator: verb, kind ("KIND:NAME": only this object), namespace ("": all), allowed.
_RIGHTS = (
    ("list", "elastictrainingjobs.pliant.dev", "", True),
    # One job with its template, which may be too large to keep.
    ("get", "elastictrainingjobs.pliant.dev", "", True),
    ("patch", "elastictrainingjobs.pliant.dev/status", "", True),
    ("update", "elastictrainingjobs.pliant.dev/status", "", False),
    ("update", "elastictrainingjobs.pliant.dev", "", False),
    ("delete", "elastictrainingjobs.pliant.dev", "", True),
    ("create", "elastictrainingjobs.pliant.dev", "", False),
    ("list", "gpupools.pliant.dev", "", True),
    ("update", "gpupools.pliant.dev", "", False),
    ("patch", "gpupools.pliant.dev", "", False),
    ("patch", "gpupools.pliant.dev/status", "", True),
    ("watch", "trainingqueues.pliant.dev", "", True),
    ("delete", "trainingqueues.pliant.dev", "", False),
    ("patch", "trainingqueues.pliant.dev/status", "", True),
    ("watch", "namespaces", "", True),
    ("create", "namespaces", "", False),
    ("list", "events.events.k8s.io", "", True),
    ("create", "pods", "", True),
    ("create", "pods/exec", "", False),
    ("create", "secrets", "", True),
    ("get", "secrets", "", False),
    ("patch", "secrets", "", False),
    ("watch", "resourcequotas", "", True),
    ("delete", "services", "", True),
    ("get", "secrets:pliant-keys", _NAMESPACE, True),
    ("list", "secrets", _NAMESPACE, False),
    ("create", _LEASE, _NAMESPACE, True),
    ("update", f"{_LEASE}:pliant-operator", _NAMESPACE, True),
    ("update", f"{_LEASE}:other", _NAMESPACE, False),
    ("patch", f"{_LEASE}:pliant-operator", _NAMESPACE, False),
    ("update", f"{_LEASE}:pliant-operator", "kube-system", False),
    ("list", "nodes", "", True),
    ("get", "nodes", "", False),
    ("create", "networkpolicies.networking.k8s.io", "", True),
    ("get", "networkpolicies.networking.k8s.io", "", True),
    ("list", "networkpolicies.networking.k8s.io", "", False),
    ("delete", "nodes", "", False),
    ("create", "clusterrolebindings.rbac.authorization.k8s.io", "", False),
    ("create", "tokenreviews.authentication.k8s.io", "", False),
)

# For an operator that watches only the namespaces default and kube-public, with another account
# name, as in ci/everything-values.yaml.
_WATCHING_OPERATOR = f"system:serviceaccount:{_NAMESPACE}:operator"
_RIGHTS_WATCHING = (
    ("list", "nodes", "", True),
    ("list", "elastictrainingjobs.pliant.dev", "", False),
    ("list", "elastictrainingjobs.pliant.dev", "default", True),
    ("list", "gpupools.pliant.dev", "", False),
    ("watch", "trainingqueues.pliant.dev", "", False),
    ("patch", "trainingqueues.pliant.dev/status", "", False),
    ("list", "namespaces", "", False),
    ("watch", "pods", "", False),
    ("create", "pods", "default", True),
    ("create", "secrets", "kube-public", True),
    ("create", "pods", "team", False),
    ("create", "pods", _NAMESPACE, False),
    ("update", f"{_LEASE}:pliant-operator", _NAMESPACE, True),
    # Needed to authenticate and authorize readers of its metrics.
    ("create", "tokenreviews.authentication.k8s.io", "", True),
    ("create", "subjectaccessreviews.authorization.k8s.io", "", True),
)

# The same for a user with one of Kubernetes' own roles in a namespace.
_ROLES = (
    ("view", "list", "elastictrainingjobs.pliant.dev", True),
    ("view", "create", "elastictrainingjobs.pliant.dev", False),
    ("edit", "create", "elastictrainingjobs.pliant.dev", True),
    ("edit", "patch", "elastictrainingjobs.pliant.dev/scale", True),
    ("edit", "patch", "elastictrainingjobs.pliant.dev/status", False),
    ("admin", "delete", "elastictrainingjobs.pliant.dev", True),
)

# The same for a user with one of the chart's own roles in the whole cluster.
_QUEUE_ROLES = (
    ("pliant-queue-viewer", "watch", "gpupools.pliant.dev", True),
    ("pliant-queue-viewer", "get", "trainingqueues.pliant.dev", True),
    ("pliant-queue-viewer", "create", "trainingqueues.pliant.dev", False),
    ("pliant-queue-admin", "create", "gpupools.pliant.dev", True),
    ("pliant-queue-admin", "patch", "trainingqueues.pliant.dev", True),
    ("pliant-queue-admin", "delete", "trainingqueues.pliant.dev", True),
    ("pliant-queue-admin", "patch", "trainingqueues.pliant.dev/status", False),
    ("admin", "list", "trainingqueues.pliant.dev", False),
)


@dataclass(frozen=True)
class _Tools:
    programs: Path
    scratch: Path
    kubeconfig: Path | None = None

    def call(self, program: str | Path, *arguments: str | Path, given: str | None = None) -> str:
        """The program's output. If it fails, the error has its error output."""
        environment = {**os.environ, "PLIANT_HELM": str(self.programs / "helm")}
        if self.kubeconfig:
            environment["KUBECONFIG"] = str(self.kubeconfig)
        result = subprocess.run(
            [self.programs / program, *arguments],
            input=given,
            stdin=None if given else subprocess.DEVNULL,
            capture_output=True,
            text=True,
            env=environment,
            check=False,
        )
        if result.returncode != 0:
            words = (result.stdout + result.stderr).strip()
            raise DevError(f"{Path(program).name} {arguments[0]}: {words}")
        return result.stdout

    def kubectl(self, *arguments: str | Path, given: str | None = None) -> str:
        return self.call("kubectl", *arguments, given=given)

    def objects(self, *arguments: str) -> list[dict[str, Any]]:
        return json.loads(self.kubectl("get", *arguments, "--output=json"))["items"]


class _Report:
    """Counts checks, and prints which failed and why."""

    def __init__(self) -> None:
        self.counts = Counts()

    @contextlib.contextmanager
    def case(self, name: str) -> Iterator[None]:
        try:
            yield
        except DevError as error:
            say(f"chart: {name}: {error}")
            self.counts += Counts(failed=1, failures=(name,))
        else:
            self.counts += Counts(passed=1)


def run() -> Counts:
    programs = go_programs.build()
    report = _Report()
    STATE.mkdir(parents=True, exist_ok=True)
    with (
        phase("Checking the chart", "about 1 min"),
        tempfile.TemporaryDirectory(dir=STATE, prefix="chart-") as scratch,
    ):
        tools = _Tools(programs, Path(scratch))
        _lint(tools, report)
        with report.case("what is made from it is up to date"):
            tools.call(REPO / "manifests" / "render", "--check")
        _unit_tests(tools, report)
        _conformity(tools, report)
        _life(tools, report)
    say(f"chart: {report.counts}")
    return report.counts


def _lint(tools: _Tools, report: _Report) -> None:
    guide = tools.scratch / "guide-values.yaml"
    blocks = re.findall(r"^```yaml\n(image:.*?)^```", _GUIDE.read_text(), re.MULTILINE | re.DOTALL)
    guide.write_text("".join(blocks))
    of_guide: list[str | Path] = ["--values", guide]
    for name, values in {**_VALUES, "those of the guide": of_guide}.items():
        with report.case(f"lint with {name}"):
            if not blocks:
                raise DevError(f"{_GUIDE} shows no values")
            tools.call("helm", "lint", "--strict", CHART, *values)


def _unit_tests(tools: _Tools, report: _Report) -> None:
    junit = tools.scratch / "unit.xml"
    with report.case("unit tests"):
        output = ["--output-type=JUnit", f"--output-file={junit}"]
        tools.call("helm-unittest", "--strict", *output, CHART)
    if junit.exists():
        suites = ElementTree.parse(junit).getroot().iter("testsuite")
        # Counted in addition to the case of the whole run, which fails if one of them fails.
        report.counts += Counts(passed=sum(_passed(suite) for suite in suites))


def _passed(suite: ElementTree.Element) -> int:
    total, *bad = (int(suite.get(name, "0")) for name in ("tests", "failures", "errors"))
    return total - sum(bad)


def _conformity(tools: _Tools, report: _Report) -> None:
    """Checks that all rendered and published manifests have only fields that the API server
    knows."""
    schemas = tools.scratch / "schemas"
    schemas.mkdir()
    # Python's standard library cannot read YAML: kubectl, which changes nothing here, prints JSON.
    read = ("annotate", "--local", "--output=json", "read=yes")
    crds = [json.loads(tools.kubectl(*read, f"--filename={file}")) for file in _CRDS]
    openapi.write_schemas(tools.programs / go_programs.OPENAPI, crds, schemas)

    def conform(manifests: str) -> None:
        location = f"{schemas}/{openapi.LOCATION}"
        # fmt: off
        tools.call("kubeconform", "-strict", f"-kubernetes-version={KUBERNETES_VERSION[1:]}",
                   "-skip=ServiceMonitor,PodMonitor,PrometheusRule",  # the Prometheus operator's
                   f"-schema-location={location}", "-", given=manifests)
        # fmt: on

    for name, values in _VALUES.items():
        with report.case(f"conformity with {name}"):
            # fmt: off
            conform(tools.call("helm", "template", "pliant", CHART, "--namespace", _NAMESPACE,
                               "--kube-version", KUBERNETES_VERSION, *values))
            # fmt: on
    for file in (_INSTALL, *_EXAMPLES, *_PROGRAMS, *sorted(_DEMO.glob("training-*.yaml"))):
        with report.case(f"conformity of {file.relative_to(REPO)}"):
            conform(file.read_text())
    with report.case("conformity of manifests/demo"):
        conform(tools.kubectl("kustomize", _DEMO))
    # The check itself works: each of these manifests has one error.
    budget = "{apiVersion: policy/v1, kind: PodDisruptionBudget, spec: {maxUnavailable: 1}}"
    job = _EXAMPLES[0].read_text()
    with report.case("conformity of a budget"):
        conform(budget)
    for right, wrong, manifest in (
        ("maxUnavailable", "maxUnvailable", budget),
        ("1}}", "[1]}}", budget),
        ("policy/v1", "policy/v2", budget),
        ("maxLearners:", "mostLearners:", job),
    ):
        with report.case(f"no conformity with {wrong}"):
            _must_fail(partial(conform, manifest.replace(right, wrong)))


def _must_fail(action: Callable[[], object]) -> None:
    try:
        action()
    except DevError:
        return
    raise DevError("this must be refused, but was accepted")


def _life(tools: _Tools, report: _Report) -> None:
    """Installs, changes and removes the chart, and installs it by plain kubectl, on a real API
    server whose namespaces enforce the restricted Pod Security Standard."""
    directory = tools.scratch / "life"
    try:
        kubeconfig = control_plane.loopback_up(directory, tools.programs)
        tools = _Tools(tools.programs, tools.scratch, kubeconfig)
        _make_restricted_namespace(tools, "team")
        with report.case("installation"):
            _make_restricted_namespace(tools, _NAMESPACE)
            _helm(tools, "install", "default")
            _wait_for_pods(tools)
        for verb, kind, namespace, allowed in _RIGHTS:
            with report.case(f"the operator's right to {verb} {kind}"):
                where = [f"--namespace={namespace}"] if namespace else ["--all-namespaces"]
                _check_right(tools, [verb, kind, *where, f"--as={_OPERATOR}"], allowed)
        for role in sorted({role for role, *_ in _ROLES}):
            # fmt: off
            tools.kubectl("create", "rolebinding", role, "--namespace=team",
                          f"--clusterrole={role}", f"--user={role}")
            # fmt: on
        for role, verb, kind, allowed in _ROLES:
            with report.case(f"the right of {role} to {verb} {kind}"):
                _check_right(tools, [verb, kind, "--namespace=team", f"--as={role}"], allowed)
        for role in sorted({role for role, *_ in _QUEUE_ROLES} - {"admin"}):
            # fmt: off
            tools.kubectl("create", "clusterrolebinding", role, f"--clusterrole={role}",
                          f"--user={role}")
            # fmt: on
        for role, verb, kind, allowed in _QUEUE_ROLES:
            with report.case(f"the right of {role} to {verb} {kind}"):
                _check_right(tools, [verb, kind, "--all-namespaces", f"--as={role}"], allowed)
        with report.case("jobs of somebody who may make jobs, but no pods"):
            _check_pod_creators(tools)
        with report.case("pods of somebody else that say they are a job's"):
            _check_job_pods(tools)
        with report.case(f"learners of {_RESTRICTED_EXAMPLE.name} in a restricted namespace"):
            _check_admitted(tools, _RESTRICTED_EXAMPLE)
        with report.case("change of all values"):
            _helm(tools, "upgrade", "everything-values")
            _wait_for_pods(tools)
        for verb, kind, namespace, allowed in _RIGHTS_WATCHING:
            with report.case(f"its right to {verb} {kind} where it watches namespaces"):
                where = [f"--namespace={namespace}"] if namespace else ["--all-namespaces"]
                _check_right(tools, [verb, kind, *where, f"--as={_WATCHING_OPERATOR}"], allowed)
        with report.case("change back"):
            _helm(tools, "upgrade", "default")
            _wait_for_pods(tools)
        with report.case("removal, after which jobs, pools and queues are still there"):
            tools.call("helm", "uninstall", "pliant", "--namespace", _NAMESPACE)
            tools.kubectl("get", "elastictrainingjobs", "--all-namespaces")
            tools.kubectl("get", "gpupools,trainingqueues")
        with report.case("installation by plain kubectl"):
            tools.kubectl("apply", "--server-side", "--validate=strict", f"--filename={_INSTALL}")
            _wait_for_pods(tools)
    finally:
        control_plane.loopback_down(directory)


def _make_restricted_namespace(tools: _Tools, name: str) -> None:
    tools.kubectl("create", "namespace", name)
    tools.kubectl("label", "namespace", name, "pod-security.kubernetes.io/enforce=restricted")


def _helm(tools: _Tools, word: str, values: str) -> None:
    tools.call("helm", word, "pliant", CHART, "--namespace", _NAMESPACE, *_VALUES[values])


def _wait_for_pods(tools: _Tools) -> None:
    """Waits for pods of the Deployment's present revision. Nothing schedules them, but the API
    server has admitted them."""
    deadline = time.monotonic() + 60
    while True:
        (deployment,) = tools.objects("deployments", f"--namespace={_NAMESPACE}")
        status = deployment["status"]
        seen = status.get("observedGeneration") == deployment["metadata"]["generation"]
        if seen and status.get("updatedReplicas"):
            return
        if time.monotonic() > deadline:
            events = tools.kubectl("get", "events", f"--namespace={_NAMESPACE}")
            raise DevError(f"the operator has no pods:\n{events}")
        time.sleep(0.3)


def _check_right(tools: _Tools, question: Sequence[str], allowed: bool) -> None:
    verb, kind, *rest = question
    kind, _, subresource = kind.partition("/")
    question = [verb, kind.replace(":", "/"), f"--subresource={subresource}", *rest]
    try:
        answer = tools.kubectl("auth", "can-i", *question).strip()
    except DevError as error:
        answer = "no" if str(error).endswith("no") else str(error)
    if answer != ("yes" if allowed else "no"):
        raise DevError(f"can-i {' '.join(question)}: {answer}")


def _check_pod_creators(tools: _Tools) -> None:
    """A user with rights to jobs but not to pods cannot get pods by creating or changing jobs."""
    # fmt: off
    tools.kubectl("create", "role", "modeller", "--namespace=team", "--verb=create,get,patch",
                  "--resource=elastictrainingjobs.pliant.dev,persistentvolumeclaims")
    tools.kubectl("create", "rolebinding", "modeller", "--namespace=team", "--role=modeller",
                  "--user=modeller")
    # fmt: on
    job = _RESTRICTED_EXAMPLE.read_text().replace("namespace: pliant-demo", "namespace: team")

    def create(user: str) -> str:
        question = ("create", "--dry-run=server", "--filename=-", f"--as={user}")
        try:
            return tools.kubectl(*question, given=job)
        except DevError as error:
            return str(error)

    # The API server takes a moment to apply a new policy.
    deadline = time.monotonic() + 30
    while "modeller may not create pods in namespace team" not in (answer := create("modeller")):
        if time.monotonic() > deadline:
            raise DevError(f"somebody who may not create pods: {answer}")
        time.sleep(0.5)
    if "elastictrainingjob.pliant.dev/digits created" not in (answer := create("edit")):
        raise DevError(f"somebody who may create pods: {answer}")

    # A template may be changed while its job is suspended.
    made = _read_job(tools, _RESTRICTED_EXAMPLE)
    made["metadata"]["namespace"] = "team"
    made["spec"]["suspend"] = True
    tools.kubectl("create", "--filename=-", "--as=edit", given=json.dumps(made))

    def patch(user: str, spec: dict[str, Any]) -> str:
        words = ("patch", "elastictrainingjob", "digits", "--namespace=team", "--type=merge")
        question = (*words, "--dry-run=server", f"--as={user}", "--patch")
        try:
            return tools.kubectl(*question, json.dumps({"spec": spec}))
        except DevError as error:
            return str(error)

    changed = "elastictrainingjob.pliant.dev/digits patched"
    root = {"persistentVolumeClaim": None, "hostPath": {"path": "/"}}
    for spec, makes_other_pods in (
        ({"template": {"metadata": {"labels": {"other": "yes"}}}}, True),
        ({"checkpoint": {"volume": root}}, True),
        ({"checkpoint": {"resumeFrom": {"path": "/elsewhere"}}}, True),
        ({"resize": {"gracePeriodSeconds": 61}}, True),
        ({"resize": {"cooldownSeconds": 31}}, False),
        ({"priority": 6000, "elastic": {"maxLearners": 4}, "suspend": False}, False),
    ):
        refused = "modeller may not create pods in namespace team"
        if (refused if makes_other_pods else changed) not in (answer := patch("modeller", spec)):
            raise DevError(f"{spec} by somebody who may not create pods: {answer}")
        if changed not in (answer := patch("edit", spec)):
            raise DevError(f"{spec} by somebody who may create pods: {answer}")


def _read_job(tools: _Tools, example: Path) -> dict[str, Any]:
    """The first object in the file, read by kubectl, as above."""
    file = f"--filename={example}"
    objects = tools.kubectl("annotate", "--local", "--output=json", file, "read=yes")
    return json.JSONDecoder().raw_decode(objects)[0]


def _pod_of(tools: _Tools, example: Path) -> dict[str, Any]:
    """The pod of the example's template, with its checkpoint volume."""
    spec = _read_job(tools, example)["spec"]
    checkpoints = {"name": "pliant-checkpoints", **spec["checkpoint"]["volume"]}
    pod = spec["template"]["spec"]
    pod["volumes"] = [*pod.get("volumes", []), checkpoints]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one"}, "spec": pod}


def _check_admitted(tools: _Tools, example: Path) -> None:
    create = ("create", "--namespace=team", "--dry-run=server", "--validate=strict")
    tools.kubectl(*create, "--filename=-", given=json.dumps(_pod_of(tools, example)))


def _check_job_pods(tools: _Tools) -> None:
    """A user who may create pods can neither create a pod that claims to belong to a job nor turn a
    pod into one."""
    # The owner is a job that exists: the garbage collector removes pods whose owner does not.
    where = ("elastictrainingjob", "digits", "--namespace=team")
    uid = tools.kubectl("get", *where, "--output=jsonpath={.metadata.uid}")
    owner = {"apiVersion": "pliant.dev/v1alpha1", "kind": "ElasticTrainingJob", "name": "digits"}
    ours = {**owner, "uid": uid, "controller": True}
    other = {**ours, "apiVersion": "apps/v1", "kind": "ReplicaSet"}
    label = {"pliant.dev/role": "learner"}

    def create(user: str, metadata: dict[str, Any], *words: str, priority: str = "") -> str:
        pod = _pod_of(tools, _RESTRICTED_EXAMPLE)
        pod["metadata"] |= metadata
        if priority:
            pod["spec"]["priorityClassName"] = priority
        question = ("create", "--namespace=team", "--filename=-", f"--as={user}", *words)
        try:
            return tools.kubectl(*question, given=json.dumps(pod))
        except DevError as error:
            return str(error)

    def expect(words: str, answer: str) -> None:
        if words not in answer:
            raise DevError(f"{words!r} is missing in: {answer}")

    taken = "pod/one created"
    labels = "labels of pliant.dev are the operator's"
    owners = "only the operator makes pods that an ElasticTrainingJob owns"
    for metadata, refusal in (
        ({}, taken),
        ({"labels": {"app": "x"}, "ownerReferences": [other]}, taken),
        ({"labels": label}, labels),
        ({"labels": {"app": "x", "pliant.dev/anything": ""}}, labels),
        ({"ownerReferences": [ours]}, owners),
        ({"ownerReferences": [other | {"controller": False}, ours]}, owners),
    ):
        expect(refusal, create("edit", metadata, "--dry-run=server"))
        expect(taken, create(_OPERATOR, metadata, "--dry-run=server"))

    classes = "the PriorityClasses of Pliant are for pods that its operator makes"
    for priority in ("pliant-learner", "pliant-coordinator", "pliant-placeholder"):
        expect(classes, create("edit", {}, "--dry-run=server", priority=priority))
        expect(taken, create(_OPERATOR, {}, "--dry-run=server", priority=priority))

    def patch(pod: str, metadata: dict[str, Any]) -> str:
        words = ("patch", "pod", pod, "--namespace=team", "--type=merge", "--dry-run=server")
        try:
            change = json.dumps({"metadata": metadata})
            return tools.kubectl(*words, "--as=edit", "--patch", change)
        except DevError as error:
            return str(error)

    expect("pod/mine created", create("edit", {"name": "mine", "labels": {"app": "x"}}))
    expect(
        "pod/theirs created",
        create(_OPERATOR, {"name": "theirs", "labels": label, "ownerReferences": [ours]}),
    )
    changes: tuple[tuple[str, dict[str, Any], str], ...] = (
        ("mine", {"labels": {"app": "y"}}, "pod/mine patched"),
        ("mine", {"labels": label}, labels),
        ("mine", {"ownerReferences": [ours]}, owners),
        ("theirs", {"labels": {"app": "y"}}, "pod/theirs patched"),
        ("theirs", {"labels": {"pliant.dev/role": "coordinator"}}, labels),
        ("theirs", {"labels": {"pliant.dev/role": None}}, labels),
        # As the garbage collector does when the owner is deleted with orphaning.
        ("theirs", {"ownerReferences": None}, "pod/theirs patched"),
        ("theirs", {"ownerReferences": [ours | {"uid": "other"}]}, owners),
    )
    for pod, metadata, answer in changes:
        expect(answer, patch(pod, metadata))
    tools.kubectl("delete", "pods", "mine", "theirs", "--namespace=team", "--now")
