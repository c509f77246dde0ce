"""pliant-simulate as its users run it: files in, reports out."""

import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

BIN = pathlib.Path(os.environ["PLIANT_BIN"])
REPO = pathlib.Path(__file__).resolve().parents[2]
DATA = REPO / "tests" / "data" / "pollux"
WORKLOAD = DATA / "workloads-1.0" / "workload-1.csv"
# Seconds, of workload-1: the published mean of Tiresias.
TIRESIAS_MEAN = 2473.65

SCENARIO = """\
nodes: [{count: 2, gpus: 4}]
queues: {research: {weight: 200, policy: Throughput}}
jobs:
  - {name: a, profile: cifar10, batch: 1024, queue: research, deadline: 2h}
  - {name: b, profile: cifar10, submit: 5m}
events:
  - {at: 10m, fail: n01, for: 10m}
"""


def simulate(*arguments, stdin=None):
    return subprocess.run([str(BIN / "pliant-simulate"), *map(str, arguments)], input=stdin, capture_output=True,
                          text=True, timeout=120)


class SimulateTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="pliant-simulate-")))

    def succeeds(self, *arguments, **options):
        ended = simulate(*arguments, **options)
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        return ended.stdout

    def file(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return path

    def test_the_same_bytes_for_the_same_seed(self):
        def run(seed):
            html, records = self.folder / f"{seed}.html", self.folder / f"{seed}.json"
            text = self.succeeds("--workload", WORKLOAD, "--profiles", DATA, "--policy", "FairShare,Throughput",
                                 "--failures", "mtbf=12h,repair=10m", "--seed", seed, "--out", html, "--json", records)
            return text, html.read_bytes(), records.read_bytes()

        first = run(1)
        self.assertEqual(run(1), first)
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["1.html", "1.json"], "nothing else is left")
        other = run(2)
        for one, another in zip(first, other, strict=True):
            self.assertNotEqual(one, another)

    def test_baselines_have_their_published_means(self):
        records = self.folder / "report.json"
        self.succeeds("--workload", WORKLOAD, "--profiles", DATA, "--policy", "tiresias,optimus", "--json", records)
        report = json.loads(records.read_text())
        policies = {policy["policy"]: policy for policy in report["policies"]}
        self.assertAlmostEqual(policies["tiresias"]["figures"]["completion_mean_seconds"], TIRESIAS_MEAN, 6)
        for policy in policies.values():
            (run,) = policy["runs"]
            self.assertEqual(len(run["jobs"]), 160)
            for job in run["jobs"]:
                self.assertGreater(job["gpu_seconds"], 0)
                self.assertGreater(job["useful_gpu_seconds"], 0)
                self.assertLess(job["started_ms"], job["completed_ms"])
                self.assertEqual(job["at_ms_gpus_batch"][-1][:2], [job["completed_ms"], 0])

    def test_two_workloads_of_the_same_name(self):
        records = self.folder / "report.json"
        files = f"{WORKLOAD},{DATA}/workloads-0.5/workload-1.csv"
        self.succeeds("--workload", files, "--profiles", DATA, "--policy", "FairShare", "--json", records)
        self.assertEqual(json.loads(records.read_text())["workloads"],
                         ["workloads-1.0/workload-1", "workloads-0.5/workload-1"])

    def test_a_scenario(self):
        scenario = self.file("own.yaml", SCENARIO)
        for more in ([], ["--policy", "FairShare,Throughput,as-written"], ["--batch", "recorded"],
                     ["--batch", "state"], ["--resize", "restart:30", "--every", "60"], ["--speeds", "learned"]):
            with self.subTest(more):
                text = self.succeeds("--scenario", scenario, "--profiles", DATA, *more)
                self.assertIn("1 workload", text)
                self.assertIn("as-written" if "--policy" in more or not more else "batch", text)

    def test_a_snapshot_may_be_changed_before_planning(self):
        snapshot = (REPO / "tests" / "scenario" / "planner" / "replay").glob("*.json")
        for file in sorted(snapshot):
            with self.subTest(file.name):
                text = file.read_text()
                unchanged = self.succeeds("--snapshot", "-", stdin=text)
                self.assertTrue(unchanged.startswith("no job changes\n"), unchanged)
                self.assertIn("GPUs to share: ", self.succeeds("--snapshot", file, "--set", "nodes+=2x8", "--all"))

    def test_the_commands_and_the_scenario_of_the_document(self):
        """Those of docs/simulator.md, in a folder that has the data and the scenario."""
        document = (REPO / "docs" / "simulator.md").read_text()
        (scenario,) = re.findall(r"```yaml\n(.*?)```", document, re.S)
        self.file("cluster.yaml", scenario)
        (self.folder / "tests").symlink_to(REPO / "tests")
        commands = re.findall(r"```sh run-by=tests/scenario/test_simulate.py\n(.*?)```", document, re.S)
        self.assertGreater(len(commands), 1)
        for command in commands:
            with self.subTest(command):
                ended = subprocess.run(["sh", "-e", "-c", command], cwd=self.folder, capture_output=True, text=True,
                                       timeout=300, env={**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"})
                self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        self.assertLess((self.folder / "report.html").stat().st_size, 10 << 20)

    def test_bad_input(self):
        csv = "name,time,application,num_replicas,batch_size\n"
        jobs = self.file("jobs.csv", csv + "a,0,cifar10,1,128\nb,0,cifar11,1,128\n")
        wide = self.file("wide.csv", csv + "a,0,imagenet,70,12800\n")
        scenario = self.file("own.yaml", SCENARIO)
        typo = self.file("typo.yaml", SCENARIO.replace("profile: cifar10,", "profil: cifar10,", 1))
        short = ["--workload", WORKLOAD, "--profiles", DATA]
        for arguments, message in [
            ([], "name --workload FILE, --scenario FILE or --snapshot FILE"),
            (["--workload", WORKLOAD], "--profiles: is missing"),
            ([*short, "--policy", "Tiresias"], "did you mean tiresias?"),
            ([*short, "--nodes", "16*4"], "16*4"),
            ([*short, "--every", "soon"], "--every: is soon; write"),
            ([*short, "--policy", "strict", "--batch", "recorded"], "--batch: changes the batch of jobs"),
            ([*short, "--out", "/absent/report.html"], "there is no folder /absent; create it"),
            (["--workload", "absent.csv", "--profiles", DATA], "absent.csv is missing"),
            (["--workload", WORKLOAD, "--profiles", self.folder], "applications.csv"),
            (["--workload", jobs, "--profiles", DATA], "jobs.csv:3: 'application' is cifar11, which has no profile"),
            (["--workload", wide, "--profiles", DATA, "--policy", "tiresias"],
             "wide.csv: policy tiresias: job a asks for 70 GPUs, and the nodes have 64; add nodes"),
            (["--workload", f"{WORKLOAD},{WORKLOAD}", "--profiles", DATA], "another workload is named"),
            (["--scenario", typo, "--profiles", DATA], "typo.yaml:4: "),
            (["--scenario", scenario, "--profiles", DATA, "--policy", "optimus"],
             "own.yaml: policy optimus: there are queues, which a baseline does not know"),
            (["--scenario", scenario, "--profiles", DATA, "--json", scenario], "own.yaml is an input, too"),
            (["--workload", jobs, "--profiles", DATA, "--out", self.folder / "." / "jobs.csv"], "jobs.csv is an input, too"),
            (["--snapshot", "absent.json"], "absent.json: cannot be opened"),
            (["--snapshot", jobs], "jobs.csv: "),
            (["--snapshot", "absent.json", "--set", "nodes"], "nodes"),
        ]:
            with self.subTest(message):
                ended = simulate(*arguments)
                self.assertEqual((ended.returncode, ended.stdout), (2, ""), ended.stderr)
                self.assertIn(message, ended.stderr)

    def test_a_report_that_cannot_be_written(self):
        full = pathlib.Path("/dev/full")
        if not full.exists():
            self.skipTest("there is no /dev/full")
        with full.open("w") as out:
            ended = subprocess.run([str(BIN / "pliant-simulate"), "--workload", str(WORKLOAD), "--profiles", str(DATA),
                                    "--policy", "Fifo"], stdout=out, stderr=subprocess.PIPE, text=True, timeout=120)
        self.assertEqual(ended.returncode, 1, ended.stderr)
        self.assertIn("standard output", ended.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
