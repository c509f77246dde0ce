"""What the program says and returns when kubectl or its user does something wrong."""

import json
import os
import signal
import subprocess
import sys
import time
import unittest

from kubectl_pliant.arguments import parser
from kubectl_pliant.completion import commands_of
from play import JOBS, ROOT, ProgramTest


class FaultsTest(ProgramTest):
    def test_forbidden(self) -> None:
        said = (
            'Error from server (Forbidden): elastictrainingjobs.pliant.dev is forbidden: User "jane" cannot list resource '
            '"elastictrainingjobs" in API group "pliant.dev" in the namespace "team-a"'
        )
        self.cluster.fault("get", stderr=said, code=1, stdout='{"items": []}')
        self.assert_fails(
            "list", 1,
            "forbidden: you may not list elastictrainingjobs.pliant.dev in namespace team-a; ask an administrator for a "
            "role with this verb",
        )  # fmt: skip

    def test_no_custom_resource(self) -> None:
        (self.cluster.folder / f"{JOBS}.json").unlink()
        self.assert_fails(
            "list -A", 1,
            "this cluster has no Pliant, or an old one: install the chart, or name another --context",
        )  # fmt: skip

    def test_no_kubectl(self) -> None:
        self.assert_fails(
            "list", 1,
            "there is no program kubectl in PATH: install it, https://kubernetes.io/docs/tasks/tools",
            PATH="/nonexistent",
        )  # fmt: skip

    def test_an_answer_that_is_cut_off(self) -> None:
        self.cluster.fault("get", cut=500)
        self.assert_fails("list", 1, f"the answer of kubectl get {JOBS}.pliant.dev is cut off or no JSON: run it again")

    def test_an_answer_that_is_no_list(self) -> None:
        for answer in ("5", '{"items": 5}', "[]", "[" * 100000, "9" * 10000, "NaN"):
            with self.subTest(answer=answer[:20]):
                self.cluster.fault("get", stdout=answer, code=0)
                ended = self.run_it("list")
                self.assertEqual((ended.code, ended.stdout), (1, ""))
                self.assertRegex(ended.stderr, r"\Aerror: the answer of .*\n\Z")

    def test_wrong_use(self) -> None:
        for command in (
            "",
            "lists",
            "list --sort x",
            "list -A -n x",
            "list --output yaml",
            "explain",
            "explain Digits",
        ):
            with self.subTest(command=command):
                ended = self.run_it(command)
                self.assertEqual((ended.code, ended.stdout), (2, ""))
                self.assertRegex(ended.stderr, "error: ")
        self.assertEqual(self.cluster.calls(), [])

    def test_ctrl_c_ends_a_kubectl_that_does_not_answer(self) -> None:
        self.assertEqual(self.signalled_while_kubectl_hangs(signal.SIGINT), 130)

    def test_a_terminal_that_closes_ends_a_kubectl(self) -> None:
        self.signalled_while_kubectl_hangs(signal.SIGHUP)

    def test_ctrl_c_while_kubectl_starts(self) -> None:
        """The signal comes when the process is there and the program has no name for it yet."""
        context = self.cluster.folder.name
        self.cluster.fault("config", delay=60)
        interrupted = (
            "import signal, subprocess, sys\n"
            f"sys.path.insert(0, {str(ROOT / 'cli')!r})\n"
            "class Interrupted(subprocess.Popen):\n"
            "    def __init__(self, *arguments, **options):\n"
            "        super().__init__(*arguments, **options)\n"
            "        signal.raise_signal(signal.SIGINT)\n"
            "subprocess.Popen = Interrupted\n"
            "from kubectl_pliant.program import main\n"
            f"sys.exit(main(['list', '--context={context}']))\n"
        )
        ended = subprocess.run(
            [sys.executable, "-S", "-c", interrupted], env=self.cluster.environment({}), timeout=20,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        self.assertEqual((ended.returncode, ended.stdout, ended.stderr), (130, "", ""))
        self.assert_no_process_of(context)

    def signalled_while_kubectl_hangs(self, number: signal.Signals) -> int:
        """The exit code of a `list` that the signal ends; it says nothing and leaves no process."""
        context = self.cluster.folder.name  # in the arguments of its process, and of no other
        self.cluster.fault("get", delay=60)
        process = self.cluster.start(["list", f"--context={context}"])
        self.addCleanup(process.kill)
        deadline = time.monotonic() + 20
        while not self.cluster.calls():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)
        process.send_signal(number)
        self.assertEqual(process.communicate(timeout=20), ("", ""))
        self.assert_no_process_of(context)
        return process.returncode

    def assert_no_process_of(self, context: str) -> None:
        left = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
        self.assertNotIn(context, left)

    def test_a_reader_that_has_seen_enough(self) -> None:
        process = self.cluster.start(["list", "-A"])
        assert process.stdout and process.stderr
        process.stdout.close()
        self.assertEqual((process.wait(30), process.stderr.read()), (0, ""))
        process.stderr.close()


class OperatorTest(ProgramTest):
    def test_a_leader_that_has_just_been_replaced(self) -> None:
        """The Lease names the one before for some seconds."""
        sentence = "the operator has made no plan since its leader changed: try again in 15 s"
        plan = [404, "nothing was planned yet: another replica is the leader"]
        self.cluster.write("http-6060.json", {"/debug/explain?job=team-a/digits": plan})
        self.assert_fails("explain digits --deep", 1, sentence)
        self.cluster.write("http-6060.json", {"/debug/snapshot": [404, '{"error":"nothing was planned yet"}']})
        self.assert_fails("whatif --set nodes+=1x8", 1, sentence)

    def test_an_error_of_the_operator_is_a_sentence(self) -> None:
        for body, said in (
            ('{"error": "too many at a time"}', "too many at a time"), ('{"error": 5}', '{"error": 5}'), ("[", "["),
            ("", "without a sentence"),
        ):  # fmt: skip
            with self.subTest(body=body):
                self.cluster.write("http-6060.json", {"/debug/snapshot": [503, body]})
                self.assert_fails("whatif --set nodes+=1x8", 1, f"the operator answers 503: {said}")


class EditsTest(ProgramTest):
    def test_a_refusal_by_the_api_server_is_wrong_use(self) -> None:
        said = (
            'The ElasticTrainingJob "digits" is invalid: spec.elastic.minLearners: Invalid value: "integer": minLearners '
            "must not be greater than maxLearners: lower it, or raise maxLearners"
        )
        self.cluster.fault("patch", stderr=said, code=1)
        self.assert_fails("scale digits 1", 2, f"the API server refuses it: {said}")

    def test_a_conflict(self) -> None:
        said = (
            'Error from server (Conflict): Operation cannot be fulfilled on elastictrainingjobs.pliant.dev "digits": the '
            "object has been modified; please apply your changes to the latest version and try again"
        )
        self.cluster.fault("patch", stderr=said, code=1)
        self.assert_fails("suspend digits", 1, "somebody else changed the object at the same time: run it again")

    def test_one_merge_patch_and_the_spec_alone(self) -> None:
        for command, patch in (
            ("priority digits 5000", {"spec": {"priority": 5000}}),
            ("scale digits 8", {"spec": {"elastic": {"maxLearners": 8}}}),
            ("suspend digits --timeout 1", {"spec": {"suspend": True}}),
            ("resume digits --timeout 1", {"spec": {"suspend": False}}),
        ):
            with self.subTest(command=command):
                (self.cluster.folder / "calls.jsonl").unlink(missing_ok=True)
                self.run_it(f"{command} -n team-a")
                patches = [call for call in self.cluster.calls() if "patch" in call]
                self.assertEqual(
                    patches[0][:5], ["patch", "--namespace=team-a", f"{JOBS}.pliant.dev", "digits", "--type=merge"]
                )
                self.assertEqual(json.loads(patches[0][5].partition("=")[2]), patch)
                self.assertEqual(len(patches), 1)

    def test_the_job_is_deleted_while_the_operator_is_awaited(self) -> None:
        said = 'Error from server (NotFound): elastictrainingjobs.pliant.dev "digits" not found'
        self.cluster.fault("get digits", stderr=said, code=1)
        self.assert_fails("suspend digits", 1, "there is no job digits; look for it with: kubectl pliant list -A")


class OptionsTest(ProgramTest):
    def test_options_that_name_the_cluster_reach_kubectl(self) -> None:
        self.run_it("list -A --context east --kubeconfig /tmp/config")
        self.run_it("explain digits -n team-a --context=east")
        first, second = self.cluster.calls()
        path = "/apis/pliant.dev/v1alpha1/elastictrainingjobs?limit=1000"
        self.assertEqual(first[:4], ["get", "--kubeconfig=/tmp/config", "--context=east", f"--raw={path}"])
        self.assertEqual(second[:4], ["get", "--context=east", "--namespace=team-a", f"{JOBS}.pliant.dev"])

    def test_the_present_namespace_is_kubectls(self) -> None:
        self.run_it("list")
        asked, got = self.cluster.calls()
        self.assertEqual(asked[:3], ["config", "view", "--minify"])
        self.assertEqual(got[1], "--raw=/apis/pliant.dev/v1alpha1/namespaces/team-a/elastictrainingjobs?limit=1000")

    def test_help_is_everywhere(self) -> None:
        self.assertIn("explain", self.run_it("--help").stdout)
        self.assertIn("Example: kubectl pliant explain", self.run_it("explain --help").stdout)
        commands = commands_of(parser())
        self.assertGreater(len(commands), 14)
        for name, command in commands.items():
            with self.subTest(command=name):
                self.assertRegex(command.format_help(), rf"Example: .*kubectl pliant {name}")

    def test_piped_output_has_no_escape_sequences(self) -> None:
        ended = self.run_it("list -A", TERM=os.environ.get("TERM", "xterm"))
        self.assertNotIn("\x1b", ended.stdout)


if __name__ == "__main__":
    unittest.main()
