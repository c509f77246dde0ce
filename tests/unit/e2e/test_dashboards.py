import json
import re
import unittest
import urllib.parse
from pathlib import Path

from story import dashboards, table
from story.errors import StoryError

REPO = Path(__file__).resolve().parents[3]
CHART_FILES = REPO / "helm" / "pliant" / "files"

DASHBOARD = {
    "templating": {
        "list": [
            {"name": "datasource", "type": "datasource"},
            {"name": "job", "type": "query", "allValue": ".*"},
        ]
    },
    "panels": [
        {
            "title": "GPUs",
            "targets": [
                {"expr": 'sum by (job_name) (gpus{job_name=~"$job"})', "legendFormat": "{{job_name}}"},
                {"expr": "max(capacity)"},
            ],
        },
        {
            "title": "folded",
            "panels": [{"title": "Speed", "targets": [{"expr": 'rate(samples{job_name=~"${job}"}[$__rate_interval])'}]}],
        },
    ],
}


class Prometheus:
    """A Prometheus with these series, by the beginning of the query."""

    def __init__(self, series: dict) -> None:
        self.series = series
        self.asked = []

    def get(self, path: str) -> dict:
        word, _, parameters = path.partition("?")
        assert word == "query_range"
        self.asked.append(dict(urllib.parse.parse_qsl(parameters)))
        query = self.asked[-1]["query"]
        result = next((result for begin, result in self.series.items() if query.startswith(begin)), [])
        return {"status": "success", "data": {"resultType": "matrix", "result": result}}


def series(values: list, **labels: str) -> dict:
    return {"metric": labels, "values": [[1000 + 5 * index, value] for index, value in enumerate(values)]}


class DashboardsTest(unittest.TestCase):
    def test_queries_are_found_in_folded_rows_too(self) -> None:
        found = dashboards.queries(DASHBOARD)
        self.assertEqual([query.panel for query in found], ["GPUs", "GPUs", "Speed"])

    def test_variables_stand_for_everything(self) -> None:
        expressions = [dashboards.expand(each.expression, DASHBOARD, "30s") for each in dashboards.queries(DASHBOARD)]
        self.assertEqual(expressions[0], 'sum by (job_name) (gpus{job_name=~".*"})')
        self.assertEqual(expressions[2], 'rate(samples{job_name=~".*"}[30s])')
        with self.assertRaisesRegex(StoryError, r"no variable \$user"):
            dashboards.expand('gpus{user="$user"}', DASHBOARD, "30s")

    def test_the_last_and_the_highest_value_are_shown_and_a_panel_without_data_is_named(self) -> None:
        prometheus = Prometheus({
            "sum": [series(["8", "4", "NaN"], job_name="one"), series(["4"], job_name="two")],
            "max": [series(["8"])],
            "rate": [series(["NaN", "NaN"], job_name="one")],
        })  # fmt: skip
        answers = dashboards.ask(prometheus.get, DASHBOARD, 1000.0, 1600.0, "30s")
        self.assertEqual(prometheus.asked[0]["start"], "1000.000")
        self.assertEqual(prometheus.asked[0]["end"], "1600.000")
        expected = [
            ["GPUs", "one", "4", "8"],
            ["", "two", "4", "4"],
            ["", "value", "8", "8"],
            ["Speed", "-", "no data", "no data"],
        ]
        self.assertEqual(dashboards.rows(answers), expected)
        (problem,) = dashboards.check(answers).problems
        self.assertTrue(problem.startswith("Speed: no data for rate(samples"))
        self.assertEqual(len(table.layout(dashboards.HEADER, dashboards.rows(answers))), 5)

    def test_all_is_well_when_every_query_has_data(self) -> None:
        prometheus = Prometheus({word: [series(["1"])] for word in ("sum", "max", "rate")})
        self.assertTrue(dashboards.check(dashboards.ask(prometheus.get, DASHBOARD, 0.0, 60.0, "30s")).holds)

    def test_a_dashboard_without_queries_is_none(self) -> None:
        self.assertFalse(dashboards.check([]).holds)

    def test_a_refusal_by_prometheus_is_reported(self) -> None:
        with self.assertRaisesRegex(StoryError, "GPUs: Prometheus answers parse error"):
            dashboards.ask(lambda path: {"status": "error", "error": "parse error"}, DASHBOARD, 0.0, 60.0, "30s")


class ChartFilesTest(unittest.TestCase):
    """The chart's dashboard and alerts use existing metrics."""

    def setUp(self) -> None:
        document = (REPO / "docs" / "metrics.md").read_text()
        self.documented = set(re.findall(r"^\| `(\w+)` \| (?:counter|gauge|histogram)", document, re.MULTILINE))
        self.assertGreater(len(self.documented), 50)
        self.dashboard = json.loads((CHART_FILES / "dashboards" / "pliant.json").read_text())

    def test_the_dashboard_reads_documented_metrics(self) -> None:
        for query in dashboards.queries(self.dashboard):
            read = dashboards.metric_names(query.expression)
            self.assertTrue(read, query)
            self.assertEqual(read - self.documented, set(), query.panel)

    def test_the_dashboard_shows_queues_and_pools(self) -> None:
        read = set()
        for query in dashboards.queries(self.dashboard):
            of_queues = {name for name in dashboards.metric_names(query.expression) if name.startswith("pliant_queue_")}
            read |= dashboards.metric_names(query.expression)
            if of_queues:
                self.assertIn('queue=~"$queue"', query.expression)
                self.assertIn("{{pool}}/{{queue}}", query.legend)
        for name in ("entitled_gpus", "allocated_gpus", "borrowed_gpus", "lent_gpus", "jobs"):
            self.assertIn(f"pliant_queue_{name}", read)
        for name in ("capacity_gpus", "allocated_gpus", "foreign_gpus"):
            self.assertIn(f"pliant_pool_{name}", read)
        for variable in self.dashboard["templating"]["list"]:
            if variable["type"] == "query":
                read_by_variable = dashboards.metric_names(variable["definition"])
                self.assertTrue(read_by_variable, variable["name"])
                self.assertEqual(read_by_variable - self.documented, set(), variable["name"])

    def test_the_alerts_read_documented_metrics_and_are_documented(self) -> None:
        text = (CHART_FILES / "alerts.yaml").read_text()
        names = re.findall(r"- alert: (\w+)", text)
        self.assertGreater(len(names), 5)
        expressions = re.findall(r"expr: (.*?)\n        (?:for|labels):", text, re.DOTALL)
        self.assertEqual(len(expressions), len(names))
        for expression in expressions:
            read = dashboards.metric_names(expression)
            self.assertTrue(read, expression)
            self.assertEqual(read - self.documented, set(), expression)
        document = (REPO / "docs" / "metrics.md").read_text()
        self.assertEqual(re.findall(r"^\| `(Pliant\w+)` \|", document, re.MULTILINE), names)
        tested = (REPO / "tests" / "unit" / "metrics" / "alerts_test.yaml").read_text()
        self.assertEqual([name for name in names if name not in tested], [])

    def test_panels_have_titles_of_their_own_and_places_that_do_not_overlap(self) -> None:
        panels = [panel for panel in self.dashboard["panels"] if panel["type"] != "row"]
        shown = [(panel["title"], panel["id"]) for panel in panels]
        self.assertEqual(len({title for title, _ in shown}), len(shown))
        self.assertEqual(len({number for _, number in shown}), len(shown))
        taken = set()
        for panel in self.dashboard["panels"]:
            place = panel["gridPos"]
            self.assertLessEqual(place["x"] + place["w"], 24, panel["title"])
            cells = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
            self.assertFalse(cells & taken, panel["title"])
            taken |= cells

    def test_queries_become_rules(self) -> None:
        (group,) = json.loads(dashboards.as_rules(self.dashboard))["groups"]
        self.assertEqual(len(group["rules"]), len(dashboards.queries(self.dashboard)))
        self.assertNotIn("$", json.dumps(group))
