"""An operator that reaches the API server through faulty_proxy.py. Meanwhile it replaces the Deployment's replicas by
one similar pod, in which the operator is restarted at once whenever it ends."""

import copy
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from .errors import StoryError
from .faulty_proxy import API_PORT, MOOD_PORT, Exchange, Mood
from .stage import OPERATOR_NAMESPACE, Stage

_NAME = "pliant-behind-proxy"
_DEPLOYMENT = "pliant"
_PROXY = Path(__file__).with_name("faulty_proxy.py")
_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
_FOLDER = "/behind-proxy"
_PATH = f"/api/v1/namespaces/{OPERATOR_NAMESPACE}/pods/{_NAME}:{MOOD_PORT}/proxy"
_READY_SECONDS = 60.0
_LOOK_SECONDS = 0.5

_KUBECONFIG = {
    "apiVersion": "v1",
    "kind": "Config",
    "current-context": "proxy",
    "contexts": [{"name": "proxy", "context": {"cluster": "proxy", "user": "operator"}}],
    "clusters": [{"name": "proxy", "cluster": {"server": f"http://127.0.0.1:{API_PORT}"}}],
    "users": [{"name": "operator", "user": {"tokenFile": f"{_ACCOUNT}/token"}}],
}


def pod(deployment: Mapping, image: str, arguments: Sequence[str] = ()) -> dict:
    """The Deployment's pod with an added proxy container of `image`, and `arguments` added to the operator's. Pure."""
    template = copy.deepcopy(deployment["spec"]["template"])
    spec = template["spec"]
    (operator,) = spec["containers"]
    for probe in ("livenessProbe", "readinessProbe"):  # the operator is killed on purpose
        operator.pop(probe, None)
    # A loop restarts the operator, because the kubelet would back off longer and longer between restarts.
    operator["command"] = ["sh", "-c", 'while :; do pliant-operator "$@"; sleep 0.1; done', "sh"]
    operator["args"] = [*operator["args"], *arguments]
    operator["env"] = [*operator["env"], {"name": "KUBECONFIG", "value": f"{_FOLDER}/kubeconfig"}]
    mount = {"name": "behind-proxy", "mountPath": _FOLDER, "readOnly": True}
    operator["volumeMounts"] = [*operator.get("volumeMounts", []), mount]
    proxy = {
        "name": "proxy",
        "image": image,
        "command": ["/usr/bin/python3", "-B", f"{_FOLDER}/{_PROXY.name}"],
        "securityContext": operator["securityContext"],
        "volumeMounts": [mount],
    }
    spec |= {
        "containers": [operator, proxy],
        "volumes": [*spec.get("volumes", []), {"name": mount["name"], "configMap": {"name": _NAME}}],
        "shareProcessNamespace": True,  # the proxy kills the operator
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 1,
    }
    metadata = {"name": _NAME, "labels": template["metadata"]["labels"]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


class BehindProxy:
    """A context manager: the operator runs behind the proxy inside the context."""

    def __init__(self, stage: Stage, arguments: Sequence[str] = ()) -> None:
        if not stage.pytorch_image:
            raise StoryError("there is no image with Python for the proxy: PLIANT_PYTORCH_IMAGE is not set")
        self._kubectl = stage.operator_kubectl
        self._image = stage.pytorch_image
        self._arguments = arguments
        self._replicas = 0

    def __enter__(self) -> "BehindProxy":
        self._remove()
        deployment = self._kubectl.json("get", "deployment", _DEPLOYMENT)
        # 0 replicas are left over from a story that was interrupted.
        self._replicas = deployment["spec"]["replicas"] or 2
        try:
            self._scale_deployment(0)
            files = {_PROXY.name: _PROXY.read_text(), "kubeconfig": json.dumps(_KUBECONFIG)}
            self._kubectl.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": _NAME}, "data": files})
            self._kubectl.apply(pod(deployment, self._image, self._arguments))
            self._kubectl.run("wait", f"pod/{_NAME}", "--for=condition=Ready", f"--timeout={_READY_SECONDS:.0f}s")
            self._await_answer()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._remove()
        self._scale_deployment(self._replicas)

    def set_mood(self, mood: Mood) -> None:
        self._kubectl.run("create", f"--raw={_PATH}/mood", "-f", "-", stdin=json.dumps(vars(mood)))

    def seen(self) -> list[Exchange]:
        """All requests since the beginning, in the order in which they ended."""
        return [Exchange(*each) for each in json.loads(self._kubectl.run("get", f"--raw={_PATH}/seen"))]

    def _remove(self) -> None:
        for kind in ("pod", "configmap"):
            self._kubectl.run("delete", kind, _NAME, "--ignore-not-found", "--wait")

    def _scale_deployment(self, replicas: int) -> None:
        self._kubectl.run("scale", f"deployment/{_DEPLOYMENT}", f"--replicas={replicas}")
        if replicas:
            self._kubectl.run("rollout", "status", f"deployment/{_DEPLOYMENT}", f"--timeout={_READY_SECONDS:.0f}s")
        else:
            labels = "-l=app.kubernetes.io/name=pliant"
            self._kubectl.run("wait", "pods", labels, "--for=delete", f"--timeout={_READY_SECONDS:.0f}s")

    def _await_answer(self) -> None:
        deadline = time.monotonic() + _READY_SECONDS
        while self._kubectl.attempt("get", f"--raw={_PATH}/seen").returncode != 0:
            if time.monotonic() > deadline:
                raise StoryError("the proxy in the operator's pod does not answer")
            time.sleep(_LOOK_SECONDS)


def writes(seen: Sequence[Exchange]) -> list[Exchange]:
    """Attempted writes, without those of the lease and of events."""
    return [each for each in seen if each.method != "GET" and "/leases" not in each.path and "/events" not in each.path]


def busiest_second(seen: Sequence[Exchange]) -> int:
    """The maximum number of requests within one second."""
    times = sorted(each.time for each in seen)
    most, first = 0, 0
    for last, moment in enumerate(times):
        while moment - times[first] >= 1.0:
            first += 1
        most = max(most, last - first + 1)
    return most
