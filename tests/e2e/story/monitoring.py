"""A Prometheus in the story's cluster, which scrapes operator, coordinators and learners meanwhile."""

import json
from collections.abc import Mapping
from pathlib import Path

from . import dashboards
from .api_server import ApiServer, ApiUnavailable
from .errors import StoryError
from .stage import MONITORING_NAMESPACE, Stage

_REPO = Path(__file__).resolve().parents[3]
_MANIFESTS = _REPO / "tests" / "e2e" / "monitoring"
_CHART_FILES = _REPO / "helm" / "pliant" / "files"
_IMAGE = "image: pliant/prometheus\n"
_WINDOW = "30s"  # interval of rates: several scrapes


class Monitoring:
    """A new Prometheus, without data of an earlier story."""

    def __init__(self, stage: Stage) -> None:
        if not stage.prometheus_image:
            raise StoryError("PLIANT_PROMETHEUS_IMAGE is not set: run this by ./dev demo --dashboards")
        self._api = ApiServer(stage.kubectl)
        kubectl = stage.monitoring_kubectl
        kubectl.run("delete", "namespace", MONITORING_NAMESPACE, "--ignore-not-found", "--wait", "--timeout=60s")
        kubectl.run("create", "namespace", MONITORING_NAMESPACE, "--save-config")
        files = (_MANIFESTS / "prometheus.yaml", _CHART_FILES / "alerts.yaml")
        kubectl.run("create", "configmap", "prometheus", *(f"--from-file={file}" for file in files))
        kubectl.run("apply", "-f", "-", stdin=manifests(stage.prometheus_image))
        kubectl.run("wait", "--for=condition=Ready", "pod/prometheus", "--timeout=120s")

    def answers(self, begin: float, end: float) -> list[dashboards.Answer]:
        """The answers to the queries of the chart's dashboard, between two times (Unix seconds)."""
        dashboard = json.loads((_CHART_FILES / "dashboards" / "pliant.json").read_text())
        return dashboards.ask(self._get, dashboard, begin, end, _WINDOW)

    def _get(self, path: str) -> Mapping:
        proxy = f"/api/v1/namespaces/{MONITORING_NAMESPACE}/pods/prometheus:9090/proxy"
        try:
            return self._api.get(f"{proxy}/api/v1/{path}")
        except ApiUnavailable as error:
            raise StoryError(f"Prometheus: {error}") from error


def manifests(image: str) -> str:
    text = (_MANIFESTS / "kubernetes.yaml").read_text()
    if _IMAGE not in text:
        raise StoryError("tests/e2e/monitoring/kubernetes.yaml has no image to replace")
    return text.replace(_IMAGE, f"image: {image}\n")
