"""Pods that serve false metrics, for a Prometheus with the demo's configuration, apart from the
discovery of pods."""

import contextlib
import http.server
import re
import threading
from collections.abc import Iterator
from typing import Any

from .errors import DevError

_JOB = {"controller_kind": "ElasticTrainingJob", "controller_name": "mine"}
_LEARNER = {**_JOB, "label_pliant_dev_role": "learner"}
_OPERATOR = {"label_app_kubernetes_io_component": "operator"}

_VICTIM = 'job_namespace="team-b",job_name="victim"'
_ABOUT_OTHERS = f"""
pliant_learner_steps_total{{{_VICTIM},namespace="team-b",pod="p",role="coordinator"}} 7
pliant_train_loss{{{_VICTIM},exported_job_name="victim"}} 1 946684800000
pliant_job_allocated_gpus{{{_VICTIM}}} 0
leader_election_master_status{{name="pliant-operator"}} 1
pliant_coordinator_requests_total{{result="OK"}} 1
"""
_TOO_MUCH = "\n".join(f'pliant_learner_steps_total{{n="{n}"}} 1' for n in range(1001)) + "\n"
_LONG_LABEL = f'pliant_learner_steps_total{{n="{"x" * 257}"}} 1\n'

# Path: namespace, other metadata of the pod, its /metrics.
_PODS: dict[str, tuple[str, dict[str, str], str]] = {
    "/learner": ("team-a", _LEARNER, _ABOUT_OTHERS),
    "/flood": ("team-a", _LEARNER, _TOO_MUCH),
    "/long": ("team-a", _LEARNER, _LONG_LABEL),
    "/operator": ("pliant-system", _OPERATOR, f"pliant_job_allocated_gpus{{{_VICTIM}}} 4\n"),
    "/forged-operator": ("team-a", _OPERATOR, _ABOUT_OTHERS),
    "/stranger": ("team-a", {"controller_kind": "ReplicaSet"}, _ABOUT_OTHERS),
}
# The pods that are scraped, and whether the scrape is accepted (1) or not (0).
TARGETS = {"/learner": 1, "/flood": 0, "/long": 0, "/operator": 1}

_MINE = {"job_namespace": "team-a", "job_name": "mine", "namespace": "team-a", "pod": "learner"}
# The series that must be accepted: name, some of the labels, value.
_WANTED = (
    ("pliant_learner_steps_total", {**_MINE, "role": "learner"}, "7"),
    ("pliant_train_loss", {**_MINE, "role": "learner"}, "1"),
    ("pliant_job_allocated_gpus", {"job_namespace": "team-b", "job_name": "victim"}, "4"),
)


@contextlib.contextmanager
def pods() -> Iterator[list[dict[str, Any]]]:
    """Serves the pods' metrics inside the context. Yields them as Prometheus targets, with the
    metadata that Kubernetes would provide."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            with contextlib.suppress(ConnectionError):  # Prometheus closes at its limit
                self.wfile.write(_PODS[self.path][2].encode())

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield [_target(path, server.server_port) for path in _PODS]
        server.shutdown()


def _target(path: str, port: int) -> dict[str, Any]:
    namespace, facts, _ = _PODS[path]
    known = {
        "pod_ip": "127.0.0.1",
        "pod_name": path.removeprefix("/"),
        "pod_phase": "Running",
        "pod_annotation_prometheus_io_scrape": "true",
        "pod_annotation_prometheus_io_port": str(port),
        "pod_annotation_prometheus_io_path": path,
        "namespace": namespace,
        **{f"pod_{name}": value for name, value in facts.items()},
    }
    labels = {f"__meta_kubernetes_{name}": value for name, value in known.items()}
    return {"targets": [path], "labels": labels}


def offline(config: str) -> str:
    """The configuration, changed to read the pods from a file."""
    text, found = re.subn(
        r"kubernetes_sd_configs:\n +- role: pod\n(?: +namespaces: .*\n)?",
        "file_sd_configs: [{files: [targets.json]}]\n",
        config,
    )
    if found != config.count("job_name: pliant-"):
        raise DevError("the configuration finds its pods in a way that this test does not know")
    return text.replace("rule_files: [alerts.yaml]\n", "")


def check(answer: Any) -> None:
    """Checks the series in Prometheus, in promtool's format."""
    series = [(one["metric"], one["value"][1]) for one in answer]
    up = {labels["pod"]: int(value) for labels, value in series if labels["__name__"] == "up"}
    if up != {path.removeprefix("/"): value for path, value in TARGETS.items()}:
        raise DevError(f"unexpected values of `up` by pod: {up}")
    own = ("up", "scrape_")
    taken = [one for one in series if not one[0]["__name__"].startswith(own)]
    for name, labels, value in _WANTED:
        wanted = {"__name__": name, **labels}
        found = [one for one in taken if wanted.items() <= one[0].items() and one[1] == value]
        if len(found) != 1:
            raise DevError(f"{wanted} {value} is not there: {taken}")
    if len(taken) != len(_WANTED):
        raise DevError(f"Prometheus accepted more series than expected: {taken}")
    if odd := [one for one in taken if any(name.startswith("exported_") for name in one[0])]:
        raise DevError(f"labels set by the pod itself were kept: {odd}")
