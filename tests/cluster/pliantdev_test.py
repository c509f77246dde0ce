"""Tests of those parts of ./dev that can be tested without building or starting anything large."""

import json
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest
from pathlib import Path

from pliantdev import host, openapi, testing
from pliantdev.content_hash import content_hash
from pliantdev.counts import Counts
from pliantdev.ctest import count_results
from pliantdev.daemon import Daemon, wait_until
from pliantdev.errors import DevError
from pliantdev.pki import Authority


class TemporaryFolderTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)


class ContentHashTest(TemporaryFolderTest):
    def test_follows_contents_and_names_not_places(self):
        for place in ("a", "b"):
            (self.folder / place / "deep").mkdir(parents=True)
            (self.folder / place / "deep" / "file").write_text("text")
        same = content_hash(self.folder / "a")
        self.assertEqual(same, content_hash(self.folder / "b"))
        (self.folder / "b" / "deep" / "file").rename(self.folder / "b" / "deep" / "other")
        self.assertNotEqual(same, content_hash(self.folder / "b"))
        (self.folder / "a" / "deep" / "file").write_text("other text")
        self.assertNotEqual(same, content_hash(self.folder / "a"))

    def test_keeps_inputs_apart(self):
        self.assertNotEqual(content_hash("ab", "c"), content_hash("a", "bc"))


class DaemonTest(TemporaryFolderTest):
    def setUp(self):
        super().setUp()
        self.daemon = Daemon("sleeper", self.folder)
        self.addCleanup(self.daemon.stop)

    def test_is_found_again_and_ended(self):
        self.assertIsNone(self.daemon.pid())
        self.daemon.start(["sleep", "60"])
        pid = self.daemon.pid()
        self.assertEqual(pid, Daemon("sleeper", self.folder).pid())
        self.daemon.start(["sleep", "60"])
        self.assertEqual(pid, self.daemon.pid(), "a running one is not started again")
        self.daemon.stop()
        self.assertIsNone(self.daemon.pid())

    def test_its_processor_time_is_known(self):
        self.assertEqual(self.daemon.cpu_seconds(), 0)
        self.daemon.start(["sh", "-c", "while :; do :; done"])
        deadline = time.monotonic() + 20
        while self.daemon.cpu_seconds() < 0.05:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)

    def test_one_that_ignores_the_signal_is_killed(self):
        self.daemon.start(["sh", "-c", "trap '' TERM; while :; do sleep 0.05; done"])
        pid = self.daemon.pid()
        time.sleep(0.2)
        self.daemon.stop(grace_seconds=0.1)
        self.assertFalse(Path(f"/proc/{pid}").exists())

    def test_a_process_that_got_the_same_id_is_left_alone(self):
        other = subprocess.Popen(["sleep", "60"])
        self.addCleanup(other.wait)
        self.addCleanup(other.kill)
        self.daemon.start(["sleep", "60"])
        file = self.folder / "sleeper.pid"
        recorded, start_time, boot = file.read_text().split()
        self.daemon.stop()
        for pid, start, boot_id in (
            (other.pid, start_time + "0", boot),
            (other.pid, "1", "another-boot"),
        ):
            file.write_text(f"{pid} {start} {boot_id}\n")
            self.assertIsNone(self.daemon.pid())
            self.daemon.stop()
            self.assertIsNone(other.poll())

    def test_an_end_while_waiting_is_an_error_that_quotes_the_log(self):
        self.daemon.start(["sh", "-c", "echo no such luck; exit 1"])
        with self.assertRaisesRegex(
            DevError, "sleeper has ended while waiting until pigs fly(.|\n)*no such luck"
        ):
            wait_until("pigs fly", lambda: False, 10, [self.daemon])


class SignalTest(unittest.TestCase):
    def test_a_signal_clears_up_all_that_was_started(self):
        program = textwrap.dedent("""
            import sys, time
            from pliantdev import cli
            def run(*_):
                try:
                    print("begun", flush=True)
                    time.sleep(60)
                finally:
                    print("cleared", flush=True)
            cli._run = run
            sys.exit(cli.main(["status"]))
            """)
        process = subprocess.Popen(
            [sys.executable, "-B", "-c", program],
            cwd=Path(__file__).parent,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), "begun\n")
        process.terminate()
        said, complaint = process.communicate(timeout=20)
        self.assertEqual(said, "cleared\n")
        self.assertIn("interrupted", complaint)
        self.assertEqual(process.returncode, 128 + signal.SIGTERM)


class MirrorTest(TemporaryFolderTest):
    def test_is_the_one_that_the_machine_uses(self):
        cases = {
            "deb [signed-by=/k] http://mirror.example/debian bookworm main\n": "http://mirror.example/debian",
            "Types: deb\nURIs: https://mirror.example/debian/\nSuites: trixie\n": "https://mirror.example/debian/",
            "# deb http://old.example/debian x main\n": "http://deb.debian.org/debian",
            "deb http://security.example/debian-security x main\n": "http://deb.debian.org/debian",
            "deb https://other.example/tools stable main\n": "http://deb.debian.org/debian",
        }
        for text, mirror in cases.items():
            (self.folder / "sources.list").write_text(text)
            self.assertEqual(host.debian_mirror(self.folder), mirror, text)


class AuthorityTest(TemporaryFolderTest):
    def test_issues_what_openssl_verifies(self):
        authority = Authority(self.folder)
        certificate, _ = authority.issue(
            "server", "name", "group", hosts=["10.0.0.1", "name.example"]
        )
        command = [
            "openssl",
            "verify",
            "-CAfile",
            authority.certificate,
            "-verify_ip",
            "10.0.0.1",
            certificate,
        ]
        subprocess.run(command, check=True, capture_output=True)
        first = certificate.read_text()
        self.assertEqual(Authority(self.folder).issue("server", "name")[0].read_text(), first)


class CountsTest(TemporaryFolderTest):
    def _results(self, junit: str, **reports: str) -> Counts:
        (self.folder / "ctest.junit").write_text(f"<testsuite>{junit}</testsuite>")
        for name, text in reports.items():
            (self.folder / f"{name}.xml").write_text(text)
        return count_results(self.folder)

    def test_adds_cases_and_counts_programs_without_a_report_once(self):
        run, failed = (
            '<testcase name="{}" status="run"/>',
            '<testcase name="{}" status="fail"><failure/></testcase>',
        )
        report = '<testsuites tests="{}" failures="{}" disabled="0">{}</testsuites>'
        skipped = '<testcase result="skipped"/>'
        self.assertEqual(
            self._results(run.format("a") + run.format("script"), a=report.format(7, 0, skipped)),
            Counts(7, 0, 1),
        )
        self.assertEqual(self._results(failed.format("a"), a=report.format(7, 2, "")), Counts(5, 2))
        self.assertEqual(self._results(failed.format("crashed")), Counts(0, 1))
        self.assertEqual(
            self._results(failed.format("b"), b=report.format(7, 0, "")),
            Counts(7, 1),
            "a leak at its end",
        )
        self.assertEqual(
            self._results(failed.format("b"), b="<testsuites"),
            Counts(0, 1),
            "it crashed while it wrote",
        )

    def test_a_test_without_its_device_is_skipped(self):
        ended = '<testcase name="a" status="notrun"><skipped message="{}"/></testcase>'
        self.assertEqual(
            self._results(ended.format("SKIP_REGULAR_EXPRESSION_MATCHED")), Counts(0, 0, 1)
        )
        self.assertEqual(
            self._results(ended.format("Unable to find executable")),
            Counts(0, 1),
            "nobody chose so",
        )

    def test_a_last_line_gives_the_counts(self):
        self.assertEqual(Counts.from_last_line("5 passed, 0 failed\n", 0), Counts(5, 0))
        self.assertEqual(Counts.from_last_line("5 passed, 2 failed", 1), Counts(5, 2))
        self.assertEqual(Counts.from_last_line("5 passed, 0 failed", 1), Counts(5, 1))
        self.assertEqual(Counts.from_last_line("Traceback", 1), Counts(0, 1))
        self.assertEqual(Counts.from_last_line("", 0), Counts(0, 1), "silence is no success")

    def test_nothing_run_is_a_failure(self):
        self.assertEqual(count_results(self.folder), Counts(0, 1))


class TestCommandTest(TemporaryFolderTest):
    def test_images_without_the_set_that_uses_them_are_an_error_and_no_silence(self):
        (self.folder / "data_batch_1.bin").touch()
        for sets in [], ["unit"], ["e2e"]:
            with self.assertRaisesRegex(
                DevError, f"remedy: ./dev test all --cifar10 {self.folder}"
            ):
                testing.check_arguments(sets, self.folder, False)

    def test_a_folder_without_images_is_an_error(self):
        with self.assertRaisesRegex(DevError, "has no \\*.bin"):
            testing.check_arguments(["all"], self.folder, False)


class OpenApiTest(TemporaryFolderTest):
    def setUp(self):
        super().setUp()
        meta = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
        quantity = "io.k8s.apimachinery.pkg.api.resource.Quantity"
        budget = {
            "type": "object",
            "properties": {"max": {"type": "string", "format": "int-or-string"}},
            "x-kubernetes-group-version-kind": [
                {"group": "policy.k8s.io", "version": "v1", "kind": "Budget"}
            ],
        }
        pod = {"type": "object", "x-kubernetes-group-version-kind": [
            {"group": "", "version": "v1", "kind": "Pod"}]}  # fmt: skip
        texts = {"type": "object", "additionalProperties": {"type": "string"}}
        free = {"type": "object", "properties": {}, "x-kubernetes-preserve-unknown-fields": True}
        job = {
            "type": "object",
            "properties": {
                "metadata": {"type": "object"},
                # A field named "properties" is not the list of fields.
                "spec": {"type": "object", "properties": {"properties": texts, "free": free}},
            },
        }
        source = self.folder / "openapi"
        definitions = {"Budget": budget, "Pod": pod, meta: {}, quantity: {"type": "string"}}
        source.write_text(json.dumps({"definitions": definitions}))
        version = {"name": "v1alpha1", "schema": {"openAPIV3Schema": job}}
        spec = {"group": "pliant.dev", "names": {"kind": "Job"}, "versions": [version]}
        openapi.write_schemas(source, [{"spec": spec}], self.folder)
        self.definitions = self.read("definitions.json")["definitions"]

    def read(self, name):
        return json.loads((self.folder / name).read_text())

    def test_has_a_file_for_each_kind_as_kubeconform_names_it(self):
        reference = {"$ref": "definitions.json#/definitions/Budget"}
        self.assertEqual(self.read("budget-policy-v1.json"), reference)
        self.assertEqual(self.read("pod-v1.json"), {"$ref": "definitions.json#/definitions/Pod"})
        self.assertTrue((self.folder / "job-pliant-v1alpha1.json").exists())

    def test_refuses_fields_that_are_not_known(self):
        self.assertIs(self.definitions["Budget"]["additionalProperties"], False)
        job = self.read("job-pliant-v1alpha1.json")
        self.assertIs(job["additionalProperties"], False)
        fields = job["properties"]["spec"]
        self.assertIs(fields["additionalProperties"], False)
        texts = fields["properties"]["properties"]
        self.assertEqual(texts["additionalProperties"], {"type": "string"})
        self.assertNotIn("additionalProperties", fields["properties"]["free"])
        self.assertIn("ObjectMeta", job["properties"]["metadata"]["$ref"])

    def test_takes_numbers_where_kubernetes_does(self):
        field = self.definitions["Budget"]["properties"]["max"]
        self.assertEqual(field, {"type": ["string", "integer"]})


if __name__ == "__main__":
    unittest.main()
