"""Debian's Prometheus: its image, and promtool's checks of the chart's alerts and dashboards."""

import json
import shutil
import sys
import tempfile
from pathlib import Path

from . import scraping
from .content_hash import content_hash
from .images import Mounted, engine
from .progress import log_file, phase, run_logged
from .settings import CACHE, CLUSTER_SOURCES, DEBIAN_RELEASE, REPO

_DOCKERFILE = CLUSTER_SOURCES / "prometheus.Dockerfile"
_ALERTS = REPO / "helm" / "pliant" / "files" / "alerts.yaml"
_DASHBOARDS = REPO / "helm" / "pliant" / "files" / "dashboards"
_E2E = REPO / "tests" / "e2e"

# `check config` also reads the alerts, because the configuration names them.
_CHECKS = """
promtool check config /check/prometheus.yaml
promtool check rules /check/dashboard.yaml
promtool check rules /check/gpus.yaml
promtool test rules /src/tests/unit/metrics/alerts_test.yaml /src/tests/unit/metrics/gpus_test.yaml
"""

# Waits, with a limit, until each target was scraped and the expected number of targets is up.
_SCRAPE = r"""
prometheus --config.file=/check/offline.yaml --storage.tsdb.path=/check/data \
  --web.listen-address=127.0.0.1:0 2> /check/log &
for _ in $(seq 200); do
  port=$(sed -n 's/.*"Listening on".*address=127.0.0.1:\([0-9]*\).*/\1/p' /check/log)
  if promtool query instant "http://127.0.0.1:$port" "count(up) == $1 and sum(up) == $2" 2>&1 | grep -q '=> '; then
    break
  fi
  sleep 0.2
done
cat /check/log
promtool query --format=json instant "http://127.0.0.1:$port" '{__name__=~".+"}' > /check/series.json
kill $!
wait
"""


def image() -> str:
    """The name of the image. Builds it if needed."""
    name = f"localhost/pliant/prometheus:{content_hash(_DOCKERFILE, DEBIAN_RELEASE)}"
    engine().ensure(_DOCKERFILE, CLUSTER_SOURCES, name, "prometheus", "about 30 s")
    return name


def check() -> None:
    """Checks the demo's configuration, which series it accepts from which pods, the alerts and
    their tests, and every query of the dashboards."""
    tools = image()
    log = log_file("promtool")
    config = _E2E / "monitoring" / "prometheus.yaml"
    CACHE.mkdir(parents=True, exist_ok=True)
    with (
        phase("Checking alerts and dashboard with promtool"),
        tempfile.TemporaryDirectory(dir=CACHE) as scratch,
    ):
        for file in (config, _ALERTS):
            shutil.copy(file, scratch)
        for name, rules in (("pliant", "dashboard"), ("pliant-gpus", "gpus")):
            command: list[str | Path] = [
                sys.executable, _E2E / "dashboards.py", "rules",
                _DASHBOARDS / f"{name}.json", Path(scratch, f"{rules}.yaml"),
            ]  # fmt: skip
            run_logged(command, log, "writing a dashboard's queries as rules")
        inside = Mounted(
            command=["sh", "-ec", _CHECKS], mounts={REPO: "/src", Path(scratch): "/check"}
        )
        run_logged(engine().command_to_run(tools, inside), log, "promtool", append=True)
    with (
        phase("Checking which series Prometheus accepts from which pod"),
        tempfile.TemporaryDirectory(dir=CACHE) as scratch,
        scraping.pods() as targets,
    ):
        folder = Path(scratch)
        folder.joinpath("targets.json").write_text(json.dumps(targets))
        folder.joinpath("offline.yaml").write_text(scraping.offline(config.read_text()))
        wanted = scraping.TARGETS.values()
        inside = Mounted(
            command=["sh", "-ec", _SCRAPE, "sh", *map(str, (len(wanted), sum(wanted)))],
            mounts={folder: "/check"},
        )
        run_logged(engine().command_to_run(tools, inside), log, "prometheus", append=True)
        scraping.check(json.loads(folder.joinpath("series.json").read_text()))
