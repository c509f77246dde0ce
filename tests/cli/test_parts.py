"""The pure parts: widths, times, tables, fields, efficiency, errors of kubectl, sentences."""

import json
import math
import unittest

import play  # noqa: F401  (its folder has the package's path)
from kubectl_pliant import advice, explanation, fields, history, job_list, server_errors, table, text, times
from kubectl_pliant.efficiency import efficiency
from kubectl_pliant.errors import CommandError, ForbiddenError, NotFoundError
from kubectl_pliant.job import Condition, Job, Speed, read_job
from kubectl_pliant.names import job_name
from kubectl_pliant.table import Column


class TextTest(unittest.TestCase):
    def test_characters_that_a_terminal_acts_on_are_escaped(self) -> None:
        for given, shown in (
            ("plain, ünïcode 研究", "plain, ünïcode 研究"),
            ("a\x1b[2Jb\x07\x9b\x7f", "a\\x1b[2Jb\\x07\\x9b\\x7f"),
            ("a\r\n\tb\0", "a\\x0d\\x0a\\x09b\\x00"),
            ("\u202egnp\u200b\u2028\ufeff", "\\u{202e}gnp\\u{200b}\\u{2028}\\u{feff}"),
            ("\ud800\ue000", "\\u{d800}\\u{e000}"),
        ):
            with self.subTest(given=given):
                self.assertEqual(text.harmless(given), shown)
                self.assertTrue(all(ord(each) >= 32 for each in text.harmless(given)))

    def test_it_is_bounded(self) -> None:
        self.assertEqual(text.harmless("a" * 10, 4), "aaaa…")
        self.assertEqual(text.harmless("a" * 4, 4), "aaaa")

    def test_widths(self) -> None:
        for given, columns in (("abc", 3), ("研究", 4), ("e\u0301", 1), ("🚀", 2), ("", 0), ("ü…", 2)):
            with self.subTest(given=given):
                self.assertEqual(text.width(given), columns)

    def test_a_cut_text_is_as_wide_as_there_is_room(self) -> None:
        for given, columns, shown in (
            ("abcdef", 6, "abcdef"),
            ("abcdef", 5, "abcd…"),
            ("研究研究", 8, "研究研究"),
            ("研究研究", 7, "研究研…"),
            ("研究研究", 6, "研究…"),
            ("abc", 1, "…"),
            ("abc", None, "abc"),
        ):
            with self.subTest(given=given, columns=columns):
                self.assertEqual(text.cut(given, columns), shown)
        self.assertEqual([text.pad("研", 4), text.pad("a", 3, right=True), text.pad("abc", 2)], ["研  ", "  a", "abc"])

    def test_wrapped_lines(self) -> None:
        self.assertEqual(text.wrap("aa bb cc", 7, "  "), ["  aa bb", "  cc"])
        self.assertEqual(text.wrap("aaaaaaaaaa bb", 6), ["aaaaaaaaaa", "bb"])
        self.assertEqual(text.wrap("aa bb", None, " "), [" aa bb"])


class TimesTest(unittest.TestCase):
    def test_a_time_needs_a_valid_date_and_zone(self) -> None:
        for given, time in (
            ("1970-01-01T00:00:00Z", 0.0),
            ("1970-01-01T01:00:00.5+01:00", 0.5),
            ("1969-12-31T23:59:59Z", -1.0),
            ("2026-11-27T12:00:00Z", float(play.NOW)),
            ("2026-13-27T12:00:00Z", None),
            ("2026-11-27 12:00:00Z", None),
            ("2026-11-27T12:00:00", None),
            ("2026-11-27T12:00:00+99:99", None),
            ("0001-01-01T00:00:00+23:59", -62135683140.0),
            ("", None),
            ("٢٠٢٦-11-27T12:00:00Z", None),
        ):
            with self.subTest(given=given):
                self.assertEqual(times.parse(given), time)
        self.assertEqual(times.shown(float(play.NOW)), "2026-11-27T12:00:00Z")

    def test_spans(self) -> None:
        for seconds, shown in (
            (-5, "0s"), (0, "0s"), (59.9, "59s"), (60, "1m"), (3599, "59m"), (3600, "1h00m"),
            (86399, "23h59m"), (86400, "1d00h"), (86400 * 400 + 7200, "400d02h"),
        ):  # fmt: skip
            with self.subTest(seconds=seconds):
                self.assertEqual(times.span(seconds), shown)
        self.assertEqual([times.until(None, 5), times.until(5, 5), times.until(65, 5)], ["", "due", "1m"])


class FieldsTest(unittest.TestCase):
    def test_values_of_wrong_types_are_absent_and_noted(self) -> None:
        for value in ("x", True, [], {}, -1, 1.5, 2**63, math.nan):
            read = fields.Fields({"a": {"b": value}})
            with self.subTest(value=value):
                self.assertIsNone(read.below("a").integer("b"))
                self.assertEqual(read.malformed, {"a.b"})
        read = fields.Fields({"a": math.inf, "b": "x" * 100, "c": {}, "d": [1, {"e": 2}], "f": 1, "n": None})
        self.assertIsNone(read.number("a"))
        self.assertIsNone(read.time("b"))
        self.assertEqual(list(read.items("c")), [])
        self.assertEqual([each.integer("e") for each in read.items("d")], [None, 2])
        self.assertIsNone(read.boolean("f"))
        self.assertIsNone(read.text("n"))
        self.assertEqual(read.malformed, {"a", "b", "c", "d[0]", "f"})

    def test_lists_are_bounded(self) -> None:
        self.assertEqual(sum(1 for _ in fields.Fields({"a": [{}] * 9999}).items("a")), fields.MAX_ITEMS)

    def test_a_value_that_is_no_object_is_malformed(self) -> None:
        for value in (None, 5, "x", []):
            with self.subTest(value=value):
                self.assertEqual(read_job(value).malformed, {fields.WHOLE})
                self.assertEqual(table.cell(None, "status.reason", read_job(value).malformed), "?")
        self.assertEqual(read_job({"status": None}).malformed, frozenset())


class TableTest(unittest.TestCase):
    def test_columns_line_up_and_the_last_one_is_cut(self) -> None:
        columns = [Column("NAME"), Column("N", True), Column("REASON")]
        rows = [["研究", "5", "a sentence that is long"], ["b", "15", ""]]
        self.assertEqual(
            table.table(columns, rows, 30),
            ["NAME    N   REASON", "研究    5   a sentence that i…", "b      15"],
        )
        self.assertEqual(table.table(columns, rows, None)[1], "研究    5   a sentence that is long")
        self.assertEqual(table.table(columns, rows, 1)[1], "研究    5   a sentence that…")

    def test_malformed_values(self) -> None:
        malformed = frozenset({"status.share", "spec.queue"})
        for path, shown in (("status.share.demandLearners", "?"), ("spec.queue", "?"), ("spec.queues", "")):
            with self.subTest(path=path):
                self.assertEqual(table.cell(None, path, malformed), shown)
        self.assertEqual(table.cell(0, "spec.queue", malformed), "0")


class GpusTest(unittest.TestCase):
    def test_the_status_counts_them(self) -> None:
        for status, want in (
            ({"gpus": 3, "learners": 4}, (3, "3")),
            ({"learners": 4}, (None, "0")),
            ({"gpus": "x", "learners": 4}, (None, "?")),
            ({}, (None, "0")),
        ):
            with self.subTest(status=status):
                job = read_job({"spec": {"elastic": {"gpusPerLearner": 2}}, "status": status})
                self.assertEqual((job.gpus, job_list.gpus_cell(job)), want)


class EfficiencyTest(unittest.TestCase):
    def test_it_is_relative_to_the_fewest_learners(self) -> None:
        speeds = (Speed(2, 200.0), Speed(4, 300.0), Speed(4, 320.0), Speed(8, 400.0))
        for learners, want in ((2, 1.0), (4, 0.8), (8, 0.5), (3, None), (0, None), (None, None)):
            with self.subTest(learners=learners):
                self.assertEqual(efficiency(Job(learners=learners, speeds=speeds)), want)
        self.assertIsNone(efficiency(Job(learners=1)))

    def test_speeds_that_are_none_do_not_count(self) -> None:
        wrong = [{"learners": 0, "samplesPerSecond": 1}, {"learners": 1, "samplesPerSecond": 0}, {"learners": "1"}, 5]
        job = read_job({"status": {"learners": 1, "speeds": [*wrong, {"learners": 1, "samplesPerSecond": 2}]}})
        self.assertEqual(efficiency(job), 1.0)


class OrderTest(unittest.TestCase):
    def test_jobs_without_the_value_come_last(self) -> None:
        jobs = [Job("b", "a", priority=1), Job("a", "b"), Job("a", "a", priority=9), Job()]
        for order, want in (("priority", [2, 0, 3, 1]), ("name", [3, 2, 1, 0]), ("gpus", [3, 2, 1, 0])):
            with self.subTest(order=order):
                self.assertEqual([jobs.index(each) for each in job_list.in_order(jobs, order)], want)

    def test_progress_is_complete_only_at_the_end(self) -> None:
        for step, total, want in ((999, 1000, "99%"), (1000, 1000, "100%"), (2000, 1000, "100%"), (1, 0, "")):
            with self.subTest(step=step):
                self.assertEqual(job_list.progress_cell(Job(step=step, total_steps=total)), want)


class ServerErrorsTest(unittest.TestCase):
    """The texts are those of kubectl 1.32."""

    def assert_is(self, stderr: str, kind: type, code: int, sentence: str) -> None:
        error = server_errors.error_of(stderr, 1)
        self.assertIs(type(error), kind)
        self.assertEqual((error.code, error.sentence), (code, sentence))

    def test_forbidden_names_verb_resource_and_place(self) -> None:
        said = 'elastictrainingjobs.pliant.dev is forbidden: User "jane" cannot list resource "elastictrainingjobs" in API group "pliant.dev"'
        remedy = "; ask an administrator for a role with this verb"
        for where, shown in (
            (' in the namespace "team-a"', f" in namespace team-a{remedy}"),
            (" at the cluster scope", f" in the whole cluster{remedy}, or name a namespace with -n"),
        ):
            self.assert_is(
                f"Error from server (Forbidden): {said}{where}\n", ForbiddenError, 1,
                f"forbidden: you may not list elastictrainingjobs.pliant.dev{shown}",
            )  # fmt: skip
        self.assert_is(
            "Error from server (Forbidden): no\x1b[0m",
            ForbiddenError,
            1,
            "forbidden: Error from server (Forbidden): no\\x1b[0m",
        )

    def test_not_found(self) -> None:
        self.assert_is(
            'Error from server (NotFound): elastictrainingjobs.pliant.dev "digits" not found', NotFoundError, 1,
            "there is no job digits; look for it with: kubectl pliant list -A",
        )  # fmt: skip

    def test_no_custom_resource(self) -> None:
        self.assert_is(
            'error: the server doesn\'t have a resource type "elastictrainingjobs"', CommandError, 1,
            "this cluster has no Pliant, or an old one: the resource elastictrainingjobs is not installed; install the "
            "chart, or name another --context",
        )  # fmt: skip

    def test_unreachable(self) -> None:
        noise = 'E1128 11:52:49.496497   15047 memcache.go:265] "Unhandled Error" err="couldn\'t get current server"\n'
        self.assert_is(
            f"{noise}The connection to the server 127.0.0.1:18087 was refused - did you specify the right host or port?",
            CommandError, 1,
            "the API server cannot be reached: The connection to the server 127.0.0.1:18087 was refused - did you "
            "specify the right host or port?; check --context and the network",
        )  # fmt: skip

    def test_other_words_are_passed_on_within_bounds(self) -> None:
        self.assert_is(
            "Error in configuration: context was not found for specified context: nope", CommandError, 2,
            "Error in configuration: context was not found for specified context: nope; list them with: kubectl config "
            "get-contexts",
        )  # fmt: skip
        self.assert_is("", CommandError, 1, "kubectl failed: it said nothing, and its exit code is 1")
        self.assertLess(len(server_errors.error_of("x" * 99999, 1).sentence), 700)


class HistoryTest(unittest.TestCase):
    def test_each_change_of_size_has_its_sizes(self) -> None:
        """The operator names an eviction by its cause."""
        for reason in ("Resizing", "Reclaimed", "Released"):
            with self.subTest(reason=reason):
                event = history.read_event({"reason": reason, "message": "from 4 to 0 learners: checkpointed and queued"})
                self.assertEqual((event.size, event.note), ("4 -> 0", "checkpointed and queued"))
        self.assertEqual(history.read_event({"reason": "Started", "message": "8 learners train"}).size, "")


class AdviceTest(unittest.TestCase):
    def test_a_job_that_is_complete_needs_nothing(self) -> None:
        """Its conditions, as the operator writes them."""
        conditions = [
            {"type": "Complete", "status": "True", "reason": "Completed"},
            *({"type": each, "status": "False", "reason": "Succeeded"} for each in ("HasPlace", "Progressing", "Running")),
        ]
        status = {"phase": "Succeeded", "reason": "the training is complete", "conditions": conditions}
        sections = explanation.explain(read_job({"metadata": {"name": "a", "namespace": "n"}, "status": status}), 0.0)
        self.assertNotIn("What to do", [each.about for each in sections if each.sentences])

    def test_each_reason_of_a_plan_has_its_entry(self) -> None:
        """docs/conditions.md has all of them, which another test compares with the planner's code."""
        page = (play.ROOT / "docs" / "conditions.md").read_text()
        rows = page.partition("## Why a job has its size")[2].partition("\n## ")[0].splitlines()
        documented = {row.split("`")[1] for row in rows if row.startswith("| `")}
        documented |= {"Suspended", "Finished"}  # of one row
        self.assertGreater(len(documented), 25)
        self.assertEqual(documented, set(advice.BY_REASON))

    def test_each_limit_has_its_words(self) -> None:
        page = (play.ROOT / "docs" / "conditions.md").read_text()
        rows = page.partition("## What limits a job")[2].splitlines()
        documented = {name for row in rows if row.startswith("| `") for name in row.split("|")[1].split("`")[1::2]}
        self.assertEqual(documented, set(advice.LIMITS))

    def test_advice_names_only_commands_that_exist(self) -> None:
        for reason, words in advice.BY_REASON.items():
            if words:
                with self.subTest(reason=reason):
                    self.assertNotIn("{", words.format(job="digits"))


class ExplanationTest(unittest.TestCase):
    def said(self, job: Job, about: str) -> tuple[str, ...]:
        found = [each.sentences for each in explanation.explain(job, 0.0) if each.about == about]
        return found[0] if found else ()

    def test_a_waiting_job_says_how_many_are_before_it(self) -> None:
        for before, sentence in (
            (0, "No job of its queue is before it."),
            (1, "1 job of its queue is before it."),
            (3, "3 jobs of its queue are before it."),
        ):
            with self.subTest(before=before):
                job = Job(waiting_since=-60.0, jobs_before=before)
                self.assertEqual(self.said(job, "Waits"), ("It has waited for 1m.", sentence))
        self.assertEqual(self.said(Job(jobs_before=3), "Waits"), ())

    def test_an_unknown_limit_is_quoted(self) -> None:
        self.assertEqual(
            self.said(Job(limited_by="New\x1b"), "Share"),
            ("What keeps it from more: the operator calls it New\\x1b.",),
        )

    def test_each_condition_has_its_advice(self) -> None:
        def has(type_name: str, status: str, reason: str) -> Job:
            return Job(name="a", phase="Running", conditions=(Condition(type_name, status, reason, "", None),))

        for job, want in (
            (has("HasPlace", "True", "Maximum"), "For more, raise maxLearners: kubectl pliant scale a N."),
            (has("HasPlace", "True", "New"), "Nothing."),
            (
                has("Failed", "True", "TooManyFailures"),
                "Fix what Failed says; docs/conditions.md explains its reasons.",
            ),
            (has("Running", "False", "Starting"), "Nothing."),
            (has("Progressing", "False", "TooLarge"), "Nothing."),
        ):
            with self.subTest(want=want):
                self.assertEqual(self.said(job, "What to do"), (want,))


class NamesTest(unittest.TestCase):
    def test_no_name_passes_for_an_option_or_two(self) -> None:
        self.assertEqual(job_name("digits-1"), "digits-1")
        for wrong in ("", "-A", "--all", "a/b", "a b", "A", "a\n", "a" * 254, "a\0"):
            with self.subTest(wrong=wrong), self.assertRaises(CommandError) as raised:
                job_name(wrong)
            self.assertEqual(raised.exception.code, 2)


class RecordedTest(unittest.TestCase):
    def test_hostile_objects_are_shown_in_bounds(self) -> None:
        items = json.loads((play.HERE / "api" / "hostile.json").read_text())["items"]
        jobs = [read_job(each) for each in items]
        shown = job_list.lines(jobs, 0.0, with_namespace=True, max_columns=None)
        shown += [line for job in jobs for line in explanation.lines(explanation.explain(job, 0.0), 80)]
        self.assertTrue(all(line.isprintable() for line in shown))
        self.assertLess(max(map(len, shown)), 3000)


if __name__ == "__main__":
    unittest.main()
