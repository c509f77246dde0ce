"""Real processes of one job on this machine: a coordinator and its learners, talking TLS over loopback."""

import collections
import http.client
import json
import os
import pathlib
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import unittest

BIN = pathlib.Path(os.environ["PLIANT_BIN"])
# Timeout for processes that hang. Sanitizers and a busy machine slow processes down: seconds become tens of seconds,
# and a whole training takes minutes.
PATIENCE_SECONDS = 180
UID = "00000000-aaaa-bbbb-cccc-000000000001"
NAME = f"{UID}.coordinator.pliant.internal"
SAMPLES = range(250)  # sample indices of toy-learner
TOKENS = {"operator": "0123abcd" * 8, "learner": "89ef4567" * 8}
PEER_KEY = "45670123" * 8


class Stalled(AssertionError):
    """A condition did not become true in time."""


def make_certificates(folder):
    """The job's CA, and the coordinator's certificate signed by it."""

    def openssl(*arguments):
        subprocess.run(["openssl", *arguments], check=True, cwd=folder, capture_output=True)

    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    openssl("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.crt", "-days", "2", "-subj", "/CN=test CA",
            "-addext", "keyUsage=critical,keyCertSign")
    openssl("req", *key, "-keyout", "tls.key", "-out", "tls.csr", "-subj", "/CN=coordinator")
    (folder / "extensions").write_text(f"subjectAltName=DNS:{NAME}\nauthorityKeyIdentifier=keyid\n")
    openssl("x509", "-req", "-in", "tls.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial",
            "-days", "2", "-extfile", "extensions", "-out", "tls.crt")


class Process:
    """A process and its log. Only its starter ends it, by its pid."""

    def __init__(self, name, folder, command, environment):
        self.name = name
        self.log = folder / f"{name}.log"
        with open(self.log, "a") as log:
            self.popen = subprocess.Popen(command, env={**os.environ, **environment}, stdout=log, stderr=log)

    def running(self):
        return self.popen.poll() is None

    def terminate(self):
        self.popen.send_signal(signal.SIGTERM)

    def kill(self):
        """Kills it like a power failure: it sends nothing and flushes nothing."""
        if self.running():
            self.popen.kill()
        self.popen.wait()

    def processor_seconds(self):
        """CPU seconds that all its threads have used so far."""
        after_name = pathlib.Path(f"/proc/{self.popen.pid}/stat").read_text().rpartition(")")[2].split()
        user, system = after_name[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def exit_code(self):
        try:
            return self.popen.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            raise Stalled(f"{self.name} does not end") from None

    def logged(self, message):
        """Its log lines with this message."""
        written = self.log.read_text().rpartition("\n")[0]
        lines = (json.loads(line) for line in written.splitlines() if line.startswith("{"))
        return [line for line in lines if line["message"] == message]


class Learner(Process):
    def __init__(self, job, name, command, environment):
        self.termination_log = job.folder / f"{name}.termination"
        self.uid = f"uid-{name}"
        super().__init__(name, job.folder, command, {
            "PLIANT_LEARNER": name,
            "PLIANT_POD_UID": self.uid,
            "PLIANT_TERMINATION_LOG": str(self.termination_log),
            **environment,
        })

    def termination(self):
        return json.loads(self.termination_log.read_text())


class HttpsTo(http.client.HTTPSConnection):
    """Checks the certificate against the name of the job's coordinator, whatever the address."""

    def connect(self):
        plain = socket.create_connection((self.host, self.port), self.timeout)
        self.sock = self._context.wrap_socket(plain, server_hostname=NAME)


class Job:
    """One job: its Secrets, coordinator, learners and checkpoint volume. The test takes the operator's part.

    The job trains slowly until the test has seen the state that it waits for, and then as fast as the machine can: no
    result depends on the speed.
    """

    def __init__(self, *, program=None, environment=None, shard_milliseconds=20, epochs=60):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="pliant-scenario-"))
        self.secret = self.folder / "secret"
        self.secret.mkdir()
        make_certificates(self.secret)
        for role, token in TOKENS.items():
            (self.secret / f"{role}-token").write_text(token)
        (self.secret / "peer-key").write_text(PEER_KEY)
        self.program = program or [str(BIN / "toy-learner")]
        self.pace_file = self.folder / "pace"
        self.shard_milliseconds = shard_milliseconds
        self.set_pace(shard_milliseconds)
        self.environment = {
            "TOY_EPOCHS": str(epochs),
            "PLIANT_PACE_FILE": str(self.pace_file),
            **(environment or {}),
        }
        # The first coordinator chooses them, because another process could take a port that is only found free here.
        # Later coordinators listen on the same.
        self.port = self.status_port = self.probe_port = 0
        self.processes = []
        self.learners = {}
        self.coordinator = None
        self.sequence = 0
        self.clean = False

    def close(self):
        for process in self.processes:
            process.kill()
        if self.clean:
            shutil.rmtree(self.folder, ignore_errors=True)

    # -- Speed --

    def set_pace(self, shard_milliseconds):
        write_pace(self.pace_file, shard_milliseconds)

    def let_go(self):
        """Ends the slow pace: from here on the test only waits for the end."""
        self.pace_file.unlink(missing_ok=True)

    # -- Processes --

    def start_coordinator(self, *, term=1, state="state"):
        self.coordinator = Process("coordinator", self.folder, [
            str(BIN / "pliant-coordinator"), "--address", "127.0.0.1", "--port", str(self.port),
            "--status-port", str(self.status_port), "--probe-port", str(self.probe_port),
        ], {
            "PLIANT_JOB": "test/toy",
            "PLIANT_JOB_UID": UID,
            "PLIANT_TERM": str(term),
            "PLIANT_TLS_DIR": str(self.secret),
            "PLIANT_STATE_DIR": str(self.folder / state),
            "PLIANT_MAX_LEARNERS": "8",
        })
        self.processes.append(self.coordinator)

        def listens():
            if not self.coordinator.running():
                raise Stalled(f"the coordinator has ended: {self.coordinator.log.read_text()}")
            return any(line["term"] == term for line in self.coordinator.logged("coordinator listens"))

        self.wait("the coordinator listens", listens)
        line = self.coordinator.logged("coordinator listens")[-1]
        self.port, self.status_port, self.probe_port = line["port"], line["statusPort"], line["probePort"]
        self.wait("the coordinator serves", lambda: self.healthy() == (200, "ok\n"))

    def training(self):
        return {
            "PLIANT_GLOBAL_BATCH_SIZE": "32",
            "PLIANT_LOGICAL_SHARDS": "8",
            "PLIANT_SEED": "11",
            "PLIANT_CHECKPOINT_DIR": str(self.folder / "checkpoints"),
            **self.environment,
        }

    def start_learner(self, number, **environment):
        name = f"toy-{number}"
        learner = Learner(self, name, self.program, {
            "PLIANT_COORDINATOR": f"127.0.0.1:{self.port}",
            "PLIANT_POD_IP": "127.0.0.1",
            "PLIANT_JOB": "test/toy",
            "PLIANT_JOB_UID": UID,
            "PLIANT_TERM": "1",
            "PLIANT_TOKEN_FILE": str(self.secret / "learner-token"),
            "PLIANT_PEER_KEY_FILE": str(self.secret / "peer-key"),
            "PLIANT_TLS_DIR": str(self.secret),
            "PLIANT_MAX_LEARNERS": "4",
            "PLIANT_CHECKPOINT_EVERY_STEPS": "20",
            "PLIANT_GRACE_SECONDS": "20",
            **self.training(),
            **environment,
        })
        self.processes.append(learner)
        self.learners[name] = learner
        return learner

    def start_learners(self, numbers):
        return [self.start_learner(number) for number in numbers]

    # -- Requests --

    def request(self, method, path, body=None, token=TOKENS["operator"], ca=None):
        context = ssl.create_default_context(cafile=ca or self.secret / "ca.crt")
        connection = HttpsTo("127.0.0.1", self.port, timeout=10, context=context)
        try:
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def healthy(self):
        """The status that the kubelet would see; 0 when nothing listens."""
        return self.status("/healthz", self.probe_port)

    def status(self, path, port=None):
        """Requests from the plain HTTP port; 0 when nothing listens."""
        connection = http.client.HTTPConnection("127.0.0.1", port or self.status_port, timeout=10)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        except OSError:
            return 0, ""
        finally:
            connection.close()

    def progress(self):
        status, body = self.request("GET", "/v1/progress")
        if status != 200:
            raise AssertionError(f"GET /v1/progress: {status} {body}")
        return json.loads(body)

    def plan(self, learners, transitions=1, reason=""):
        """Pushes a plan. Items are learners that are wanted, or pairs of a learner and its state."""
        self.sequence += 1
        listed = [item if isinstance(item, tuple) else (item, "Wanted") for item in learners]
        body = {
            "leaseTransitions": transitions,
            "sequence": self.sequence,
            "learners": [{"name": each.name, "podUid": each.uid, "state": state} for each, state in listed],
            "reason": reason,
        }
        status, answer = self.request("PUT", "/v1/plan", json.dumps(body))
        if status != 200:
            raise AssertionError(f"PUT /v1/plan: {status} {answer}")

    # -- Waiting --

    def wait(self, what, condition, seconds=PATIENCE_SECONDS):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            value = condition()
            if value:
                return value
            time.sleep(0.02)
        raise Stalled(f"waited {seconds} s: {what}")

    def wait_for_members(self, learners):
        names = sorted(learner.name for learner in learners)

        def reached():
            progress = self.progress()
            members = sorted((progress.get("membership") or {}).get("learners", []))
            return progress if members == names and progress["state"] == "Running" else None

        return self.wait(f"the members are {names}", reached)

    def wait_for_step(self, step):
        return self.wait(f"step {step} is committed",
                         lambda: (self.progress().get("step") or 0) >= step)

    def metric_lines(self):
        path = self.folder / "checkpoints" / UID / "metrics.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def checkpoints(self):
        return sorted(path.parent.name for path in (self.folder / "checkpoints" / UID).glob("step-*/manifest.json"))


def write_pace(file, shard_milliseconds):
    """Replaces the file atomically, because learners read it at any time."""
    following = file.with_suffix(".next")
    following.write_text(f"{shard_milliseconds}\n")
    following.rename(file)


_undisturbed = {}


def undisturbed_hash(job):
    """The hash of the same training by one learner alone, undisturbed."""
    key = (tuple(job.program), job.environment["TOY_EPOCHS"])
    if key not in _undisturbed:
        folder = job.folder / "alone"
        folder.mkdir()
        alone = Learner(job, "alone", job.program, {
            **job.training(),
            "PLIANT_CHECKPOINT_DIR": str(folder),
            "PLIANT_PACE_FILE": "",
            "PLIANT_RANKS_PER_LEARNER": "1",
        })
        job.processes.append(alone)
        if alone.exit_code() != 0:
            raise AssertionError(f"the run alone failed: {alone.log.read_text()}")
        _undisturbed[key] = alone.termination()["parametersSha256"]
    return _undisturbed[key]


def samples_used(folder):
    """By epoch: how often the committed steps used each sample (docs/contracts.md, section 5)."""
    lines = [json.loads(line) for path in folder.iterdir() for line in path.read_text().splitlines()]

    def order(line):
        return tuple(map(int, line["membership"].split(".")))

    committed = {}
    for line in lines:
        if line["kind"] == "committed":
            committed[line["tick"]] = max(committed.get(line["tick"], (0, 0)), order(line))
    epochs = collections.defaultdict(collections.Counter)
    for line in lines:
        if line["kind"] == "computed" and committed.get(line["tick"]) == order(line):
            for shard in line["shards"]:
                epochs[line["epoch"]].update(shard["samples"])
    return dict(epochs)


class ScenarioTest(unittest.TestCase):
    """A test that owns a job, and prints the logs of its processes when it fails."""

    def make_job(self, **options):
        job = Job(**options)

        def finish():
            outcome = getattr(self._outcome, "result", None)
            troubles = [*outcome.failures, *outcome.errors] if outcome else []
            failed = any(test is self for test, _ in troubles)
            job.clean = not failed
            job.close()
            if failed:
                for log in sorted(job.folder.glob("*.log")):
                    lines = log.read_text(errors="replace").splitlines()
                    print(f"--- {log} (last lines)", *lines[-40:], sep="\n", file=sys.stderr)

        self.addCleanup(finish)
        return job

    def running_job(self, numbers, **options):
        """A job that trains on these learners."""
        job = self.make_job(**options)
        job.set_pace(min(job.shard_milliseconds, 20))  # quick until there is something to disturb
        job.start_coordinator()
        learners = job.start_learners(numbers)
        job.plan(learners)
        job.wait_for_members(learners)
        job.wait_for_step(5)
        job.set_pace(job.shard_milliseconds)
        return job, learners

    def assert_completes(self, job, learners):
        """These learners finish the job, with the parameters of an undisturbed run."""
        job.let_go()
        for learner in learners:
            self.assertEqual(learner.exit_code(), 0, learner.log)
            self.assertEqual(learner.termination()["reason"], "Completed", learner.name)
        expected = undisturbed_hash(job)
        hashes = {learner.termination()["parametersSha256"] for learner in learners}
        self.assertEqual(hashes, {expected})
        final = json.loads((job.folder / "checkpoints" / UID / "final" / "manifest.json").read_text())
        self.assertEqual(final["parametersSha256"], expected)
        if job.coordinator.running():
            progress = job.progress()
            self.assertEqual(progress["state"], "Completed")
            self.assertEqual(progress["parametersSha256"], expected)
            self.assertEqual(sum(resize["stepsLost"] for resize in progress["resizes"]), 0)
            if any(line["kind"] == "test" for line in job.metric_lines()):
                # Learners exit at once after the last one.
                self.assertEqual(progress["evaluations"][-1]["step"], progress["totalSteps"])

    def assert_outlives_the_first(self, job, learners, reason=""):
        """These learners train together, until the first of them is killed. The others complete the job."""
        job.plan(learners, reason=reason)
        job.wait_for_members(learners)
        job.wait_for_step(job.progress()["step"] + 2)
        learners[0].kill()  # rank 0
        job.wait_for_members(learners[1:])
        self.assert_completes(job, learners[1:])

    def assert_resumed_at(self, learners, step):
        """One of these learners read the checkpoint of that step; the others got the state from it."""
        self.assertEqual([line["step"] for learner in learners for line in learner.logged("restored")], [step])

    def assert_drained(self, learner):
        self.assertEqual(learner.exit_code(), 0, learner.log)
        self.assertEqual(learner.termination()["reason"], "Drained", learner.name)

    def report_pauses(self, job):
        """Prints, for people, what the change cost the learners that stayed."""
        for resize in job.progress()["resizes"]:
            if "longestPauseSeconds" in resize:
                print(f"  {resize['kind'].lower()} {resize['from']} -> {resize['to']}: "
                      f"longest pause {resize['longestPauseSeconds'] * 1000:.0f} ms", file=sys.stderr)
