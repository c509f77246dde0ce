"""The documents are correct: everything that they name exists."""

import re
import tempfile
import unittest
from pathlib import Path

import api_page
import documents
import yaml
from documents import REPO

from story import pages, spoilt

DOCUMENTS = [
    documents.read(path)
    for path in [
        REPO / "README.md",
        REPO / "CHANGELOG.md",
        REPO / "CONTRIBUTING.md",
        REPO / "SECURITY.md",
        REPO / "examples" / "README.md",
        REPO / "helm" / "pliant" / "README.md",
        REPO / "tests" / "cluster" / "README.md",
        *sorted((REPO / "docs").rglob("*.md")),
    ]
]


class DocumentsTest(unittest.TestCase):
    def assert_none(self, problems: list[str]) -> None:
        self.assertEqual(problems, [], "\n" + "\n".join(problems))

    def test_links_and_anchors_lead_somewhere(self) -> None:
        self.assert_none([problem for each in DOCUMENTS for problem in documents.broken_links(each)])

    def test_each_command_is_run_or_marked_as_not_run(self) -> None:
        run_pages = {*pages.TASKS, pages.QUICK_START}
        self.assertLessEqual(run_pages, {each.name for each in DOCUMENTS})
        self.assert_none([problem for each in DOCUMENTS for problem in documents.who_runs(each, run_pages)])
        text = "```sh\na\n```\n```sh not-run\nb\n```\n```sh run-by=tests/e2e/story/pages.py\nc\n```\n```sh run-by=absent\nd\n```\n"
        told = documents.who_runs(documents.parse(REPO / "docs" / "x.md", text), run_pages)
        self.assertEqual([each.split(" ")[0] for each in told], ["docs/x.md:1:", "docs/x.md:7:", "docs/x.md:10:"])

    def test_no_cell_of_a_table_is_too_long(self) -> None:
        self.assert_none([problem for each in DOCUMENTS for problem in documents.wide_cells(each)])
        document = documents.parse(REPO / "docs" / "x.md", f"| a | {'b' * 201} |\n{'c' * 300}\n")
        self.assertEqual(list(documents.wide_cells(document)), ["docs/x.md:1: a cell of 201 characters"])

    def test_the_api_page_is_made_of_the_schema(self) -> None:
        made = api_page.page([yaml.safe_load(file.read_text()) for file in documents.CRDS])
        written = (REPO / "docs" / "api.md").read_text()
        self.assertEqual(written, made, "python3 tests/unit/docs/api_page.py > docs/api.md")

    def test_each_field_of_the_schema_is_described(self) -> None:
        # The API server allows no description there, and supplies its own.
        schemas = documents.schemas()
        self.assertEqual(list(schemas), ["ElasticTrainingJob", "GpuPool", "TrainingQueue"])
        for kind, schema in schemas.items():
            with self.subTest(kind=kind):
                self.assertEqual(list(documents.undescribed(schema)), [".metadata"])
        told = {"description": "A text."}
        schema = {
            "properties": {
                "a": {"description": "A text"},
                "b": told,
                "c": {**told, "items": {"properties": {"d": {}, "e": told}}},
                "f": {**told, "additionalProperties": told},
            }
        }
        self.assertEqual(list(documents.undescribed(schema)), [".a", ".c[]", ".c[].d"])

    def test_fields_are_in_the_schema(self) -> None:
        schemas = documents.schemas()
        found = [(each, number, path) for each in DOCUMENTS for number, path in documents.field_paths(each)]
        self.assertGreater(len(found), 30)
        self.assert_none([
            f"{each.name}:{number}: {path}: the schema has no '{unknown}' there"
            for each, number, path in found
            if (unknown := documents.unknown_field_of(schemas, path))
        ])  # fmt: skip

    def test_patches_change_what_is_in_the_schema(self) -> None:
        schema = documents.job_schema()
        found = [(each, number, patch) for each in DOCUMENTS for number, patch in documents.patches(each)]
        self.assertGreater(len(found), 3)
        self.assert_none([
            f"{each.name}:{number}: {problem}"
            for each, number, patch in found
            for problem in documents.unknown_properties(schema, patch)
            if not problem.endswith("is missing")
        ])  # fmt: skip

    def test_metrics_are_documented(self) -> None:
        documented = documents.documented_metrics()
        self.assertGreater(len(documented), 40)
        self.assert_none([
            f"{each.name}:{number}: {name} is not in docs/metrics.md"
            for each in DOCUMENTS
            for number, name in documents.metric_names(each)
            if not documents.is_documented(name, documented) and each.path.name != "CONTRIBUTING.md"
        ])  # fmt: skip

    def test_alerts_exist(self) -> None:
        groups = yaml.safe_load((REPO / "helm/pliant/files/alerts.yaml").read_text())["groups"]
        alerts = {rule["alert"] for group in groups for rule in group["rules"]}
        named = {
            name
            for each in DOCUMENTS
            for _, line in each.prose
            for name in re.findall(r"`(Pliant[A-Z]\w+)`", line)
        }  # fmt: skip
        self.assertEqual(named - {"PliantTrainer"}, alerts)  # a class of the Python package

    def test_reasons_are_given_by_the_programs(self) -> None:
        given = documents.literals(REPO / "operator") | documents.literals(REPO / "trainer")
        found = [(each, number, name) for each in DOCUMENTS for number, name in documents.reasons(each)]
        self.assertGreater(len(found), 15)
        self.assert_none([
            f"{each.name}:{number}: no program gives the reason {name}"
            for each, number, name in found
            if name not in given
        ])  # fmt: skip

    def test_each_reason_of_a_plan_is_explained(self) -> None:
        plan = (REPO / "operator" / "planner" / "plan.cc").read_text()
        given = set(re.findall(r'case ReasonCode::k\w+:\s+return "(\w+)";', plan))
        self.assertGreater(len(given), 25)
        (page,) = [each for each in DOCUMENTS if each.name == "docs/conditions.md"]
        _, found, text = page.path.read_text().partition("## Why a job has its size")
        self.assertTrue(found)
        sizes = documents.parse(page.path, text)
        self.assertEqual({name for _, name in documents.reasons(sizes)}, given)

    def test_examples_of_queues_are_scenarios(self) -> None:
        files = sorted((REPO / "tests" / "scenario" / "planner").glob("*.yaml"))
        scenarios = {each["scenario"] for file in files for each in yaml.safe_load_all(file.read_text()) if each}
        named = re.findall(r"[Ss]cenario `([^`]+)`", (REPO / "docs" / "queues.md").read_text())
        self.assertGreater(len(named), 3)
        self.assert_none([f"docs/queues.md: there is no scenario '{name}'" for name in named if name not in scenarios])

    def test_values_are_the_charts(self) -> None:
        values = yaml.safe_load((REPO / "helm" / "pliant" / "values.yaml").read_text())
        others = {"metrics.jsonl", "coordinator.pliant.internal"}
        found = [
            (each, number, name)
            for each in DOCUMENTS
            for number, name in documents.chart_values(each)
            if name.partition(".")[0] in values and name not in others
        ]  # fmt: skip
        self.assertGreater(len(found), 15)
        self.assert_none([
            f"{each.name}:{number}: the chart has no value {name}"
            for each, number, name in found
            if not documents.has_value(values, name)
        ])  # fmt: skip

    def test_yaml_is_yaml_and_jobs_are_jobs(self) -> None:
        schemas = documents.schemas()
        problems, jobs = [], 0
        for each in DOCUMENTS:
            for fence in each.fences:
                if fence.language != "yaml":
                    continue
                try:
                    found = documents.yaml_objects(fence)
                except yaml.YAMLError as error:
                    problems.append(f"{each.name}:{fence.line}: {error}")
                    continue
                for made in found:
                    if not isinstance(made, dict) or made.get("kind") not in schemas:
                        continue
                    jobs += made["kind"] == documents.JOB_KIND
                    of_object = documents.unknown_properties(schemas[made["kind"]], made)
                    problems += [f"{each.name}:{fence.line}: {problem}" for problem in of_object]
        self.assertGreaterEqual(jobs, 2)
        self.assert_none(problems)


class ReadingTest(unittest.TestCase):
    """The checks detect errors."""

    def document(self, text: str) -> documents.Document:
        return documents.parse(REPO / "docs" / "invented.md", text)

    def test_broken_links(self) -> None:
        text = "# A *bold* title, with `code`\n[x](absent.md) [y](metrics.md#absent) [z](#absent)\n"
        good = "[a](#a-bold-title-with-code) [b](metrics.md#coordinator) [c](https://example.com) `[d](absent)`\n"
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "one.md"
            path.write_text(text + good)
            (Path(folder) / "metrics.md").write_text("## Coordinator\n")
            self.assertEqual(len(list(documents.broken_links(documents.read(path)))), 3)

    def test_anchors(self) -> None:
        document = self.document("# Watch it\n## 2. The `x.y`, and [z](z.md)\n## Watch it\n```\n# no heading\n```\n")
        self.assertEqual(documents.anchors(document), {"watch-it", "2-the-xy-and-z", "watch-it-1"})

    def test_field_paths(self) -> None:
        document = self.document(
            "`spec.elastic.maxLearners`, in my.spec.other and /spec.x, `GpuPool.spec.bounds`\n"
            "```sh\nkubectl get etj x -o jsonpath='{.status.phase}'\nkubectl get node -o jsonpath='{.status.y}'\n```\n"
        )
        self.assertEqual(
            list(documents.field_paths(document)),
            [(1, "spec.elastic.maxLearners"), (1, "GpuPool.spec.bounds"), (3, "status.phase")],
        )

    def test_unknown_fields(self) -> None:
        schema = documents.job_schema()
        for path, unknown in {
            "spec.elastic.maxLearners": None,
            "spec.template.spec.nodeSelector": None,
            "status.conditions.reason": None,
            "spec.elastic.maximum": "maximum",
            "spec.resume": "resume",
        }.items():
            with self.subTest(path=path):
                self.assertEqual(documents.unknown_field(schema, path.split(".")), unknown)
        for path, unknown in {
            "spec.elastic.maximum": "maximum",
            "GpuPool.spec.bounds.gpusPerJob": None,
            "GpuPool.spec.elastic": "elastic",
            "Pod.spec.elastic": None,
        }.items():
            with self.subTest(path=path):
                self.assertEqual(documents.unknown_field_of(documents.schemas(), path), unknown)

    def test_unknown_properties(self) -> None:
        job = {"spec": {"elastic": {"maxLearner": 8}, "training": {"globalBatchSize": 1}, "checkpoint": {"volume": {}}}}
        self.assertEqual(
            list(documents.unknown_properties(documents.job_schema(), job)),
            [
                ".spec.template is missing",
                ".spec.elastic.maxLearners is missing",
                ".spec.elastic.maxLearner is unknown",
            ],
        )

    def test_metrics(self) -> None:
        document = self.document("pliant_invented\n```cmake\npliant_test(x)\n```\n```\npliant_jobs{a=1}\n```\n")
        self.assertEqual([name for _, name in documents.metric_names(document)], ["pliant_invented", "pliant_jobs"])
        self.assertTrue(documents.is_documented("pliant_plan_seconds_bucket", {"pliant_plan_seconds"}))
        self.assertFalse(documents.is_documented("pliant_plan_second", {"pliant_plan_seconds"}))

    def test_values(self) -> None:
        document = self.document("`log.level: debug`, `a.b=1`, `c.d`, e.f, `g`\n")
        self.assertEqual([name for _, name in documents.chart_values(document)], ["log.level", "a.b", "c.d"])
        self.assertTrue(documents.has_value({"a": {"b": None}}, "a.b"))
        self.assertFalse(documents.has_value({"a": {"b": None}}, "a.c"))

    def test_reasons(self) -> None:
        document = self.document("| condition | reason |\n|---|---|\n| `A` | `BadImage`, `Other` |\n\n| `C` | `D` |\n")
        self.assertEqual(list(documents.reasons(document)), [(3, "BadImage"), (3, "Other")])

    def test_troubleshooting_says_what_the_end_to_end_test_plays(self) -> None:
        document = documents.read(REPO / "docs" / "troubleshooting.md")
        refused = documents.table_rows(document, "Jobs that are refused")
        self.assertEqual(refused, [[each.name, each.field] for each in spoilt.REFUSED_JOBS])
        bad = documents.table_rows(document, "Jobs that are taken, and do not work")
        self.assertEqual(
            [row[:4] for row in bad],
            [[each.name, each.condition, each.reason, each.says] for each in spoilt.BAD_JOBS],
        )
        self.assertTrue(all(len(row) == 5 and row[4] for row in bad), "each row says what to do")



if __name__ == "__main__":
    unittest.main()
