"""Debian's Prometheus: its image, and what promtool says of the chart's alerts and dashboards."""

import shutil
import sys
import tempfile
from pathlib import Path

from .content_hash import content_hash
from .images import Mounted, engine
from .progress import log_file, phase, run_logged
from .settings import CACHE, CLUSTER_SOURCES, DEBIAN_RELEASE, REPO

_DOCKERFILE = CLUSTER_SOURCES / "prometheus.Dockerfile"
_ALERTS = REPO / "helm" / "pliant" / "files" / "alerts.yaml"
_DASHBOARD = REPO / "helm" / "pliant" / "files" / "dashboards" / "pliant.json"
_E2E = REPO / "tests" / "e2e"

# `check config` reads the alerts too, since the configuration names them.
_CHECKS = """
promtool check config /check/prometheus.yaml
promtool check rules /check/dashboard.yaml
promtool test rules /src/tests/unit/metrics/alerts_test.yaml
"""


def image() -> str:
    """Builds it if need be."""
    name = f"localhost/pliant/prometheus:{content_hash(_DOCKERFILE, DEBIAN_RELEASE)}"
    engine().ensure(_DOCKERFILE, CLUSTER_SOURCES, name, "prometheus", "about 30 s")
    return name


def check() -> None:
    """The demo's configuration, the alerts and their tests, and every query of the dashboard."""
    tools = image()
    log = log_file("promtool")
    CACHE.mkdir(parents=True, exist_ok=True)
    with (
        phase("Checking alerts and dashboard with promtool"),
        tempfile.TemporaryDirectory(dir=CACHE) as scratch,
    ):
        for file in (_E2E / "monitoring" / "prometheus.yaml", _ALERTS):
            shutil.copy(file, scratch)
        rules = Path(scratch, "dashboard.yaml")
        command = [sys.executable, _E2E / "dashboards.py", "rules", _DASHBOARD, rules]
        run_logged(command, log, "writing the dashboard's queries as rules")
        inside = Mounted(
            command=["sh", "-ec", _CHECKS], mounts={REPO: "/src", Path(scratch): "/check"}
        )
        run_logged(engine().command_to_run(tools, inside), log, "promtool", append=True)
