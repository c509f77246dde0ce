"""A job on this machine, without Kubernetes: the real coordinator and learners on loopback, the test as their operator."""

import http.client
import json
import os
import signal
import socket
import ssl
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path

_SERVER_NAME = "coordinator.pliant.internal"
_OPERATOR_TOKEN = "00" * 32
_LEARNER_TOKEN = "11" * 32
_LOOK_SECONDS = 0.05


class LocalJob:
    """Ends all of its processes on exit."""

    def __init__(self, programs: Path, directory: Path, arguments: list[str], seed: int) -> None:
        self._programs = programs
        self._directory = directory
        self._arguments = arguments
        self._seed = seed
        self._term = 0
        self._sequence = 0
        self._port = _free_port()
        self._status_port = _free_port()
        self._coordinator: subprocess.Popen | None = None
        self.learners: dict[str, subprocess.Popen] = {}
        _make_credentials(directory)

    def __enter__(self) -> "LocalJob":
        return self

    def __exit__(self, *_: object) -> None:
        for process in [*self.learners.values(), self._coordinator]:
            if process and process.poll() is None:
                process.kill()
                process.wait()

    def start_coordinator(self) -> None:
        """The first one, or, when that has been killed, one of a higher term."""
        self._term += 1
        environment = {
            "PLIANT_JOB": "test/job",
            "PLIANT_JOB_UID": "uid",
            "PLIANT_TERM": str(self._term),
            "PLIANT_TLS_DIR": str(self._directory),
            "PLIANT_STATE_DIR": str(self._directory),
            "PLIANT_MAX_LEARNERS": "8",
        }
        options = ["--address=127.0.0.1", f"--port={self._port}", f"--status-port={self._status_port}"]
        self._coordinator = self._start("pliant-coordinator", options, environment, f"coordinator-{self._term}")
        self.wait("the coordinator answers", lambda progress: True)

    def kill_coordinator(self) -> None:
        self._coordinator.kill()
        self._coordinator.wait()

    def start_learner(self, name: str) -> None:
        environment = {
            "PLIANT_COORDINATOR": f"127.0.0.1:{self._port}",
            "PLIANT_LEARNER": name,
            "PLIANT_POD_UID": f"uid-{name}",
            "PLIANT_POD_IP": "127.0.0.1",
            "PLIANT_JOB": "test/job",
            "PLIANT_JOB_UID": "uid",
            "PLIANT_TERM": str(self._term),
            "PLIANT_TOKEN_FILE": str(self._directory / "learner-token"),
            "PLIANT_TLS_DIR": str(self._directory),
            "PLIANT_CHECKPOINT_DIR": str(self._directory / "checkpoints"),
            "PLIANT_CHECKPOINT_EVERY_STEPS": "20",
            "PLIANT_GRACE_SECONDS": "60",
            "PLIANT_MAX_LEARNERS": "8",
            **self._training(),
        }
        self.learners[name] = self._start("pliant-learner", self._arguments, environment, name)

    def parameters_of_run_alone(self) -> str:
        """The hash that one learner ends with, undisturbed."""
        environment = {"PLIANT_CHECKPOINT_DIR": str(self._directory / "alone"), **self._training()}
        self._start("pliant-learner", self._arguments, environment, "alone").wait()
        return self.last_words("alone")["parametersSha256"]

    def last_words(self, name: str) -> Mapping:
        """The termination message of a learner that has ended."""
        return json.loads((self._directory / f"{name}.termination").read_text())

    def plan(self, wanted: list[str], ended: list[str] = ()) -> None:
        """What the operator does: these learners are wanted, the pods of those have ended."""
        self._sequence += 1
        learners = [{"name": name, "podUid": f"uid-{name}", "state": "Wanted"} for name in wanted]
        learners += [{"name": name, "podUid": f"uid-{name}", "state": "Ended"} for name in ended]
        body = json.dumps({"leaseTransitions": 0, "sequence": self._sequence, "learners": learners})
        context = ssl.create_default_context(cafile=self._directory / "ca.crt")
        connection = _NamedConnection("127.0.0.1", self._port, timeout=10, context=context)
        connection.request("PUT", "/v1/plan", body, {"Authorization": f"Bearer {_OPERATOR_TOKEN}"})
        response = connection.getresponse()
        text = response.read().decode()
        connection.close()
        if response.status != http.HTTPStatus.OK:
            raise AssertionError(f"PUT /v1/plan: {response.status} {text}")

    def progress(self) -> Mapping | None:
        connection = http.client.HTTPConnection("127.0.0.1", self._status_port, timeout=10)
        try:
            connection.request("GET", "/progress")
            return json.loads(connection.getresponse().read())
        except OSError:
            return None
        finally:
            connection.close()

    def wait(self, what: str, reached: Callable[[Mapping], bool], seconds: float = 120) -> Mapping:
        deadline = time.monotonic() + seconds
        progress = None
        while time.monotonic() < deadline:
            progress = self.progress()
            if progress is not None and reached(progress):
                return progress
            time.sleep(_LOOK_SECONDS)
        raise AssertionError(f"waited {seconds} s until {what}, in vain: {progress}\n{self._log_ends()}")

    def wait_for_members(self, *names: str, step: int = 0) -> Mapping:
        """Until exactly these train, and have come to this step."""

        def reached(progress: Mapping) -> bool:
            members = (progress.get("membership") or {}).get("learners", [])
            steady = progress["state"] == "Running" and sorted(members) == sorted(names)
            return steady and progress.get("step", -1) >= step

        return self.wait(f"{', '.join(names)} train at step {step}", reached)

    def _training(self) -> dict[str, str]:
        return {
            "PLIANT_GLOBAL_BATCH_SIZE": "256",
            "PLIANT_LOGICAL_SHARDS": "32",
            "PLIANT_SEED": str(self._seed),
        }

    def _start(self, program: str, options: list[str], environment: Mapping[str, str], name: str) -> subprocess.Popen:
        with (self._directory / f"{name}.log").open("w") as log:
            return subprocess.Popen(
                [self._programs / program, *options],
                env={
                    "PATH": os.environ["PATH"],
                    "OPENBLAS_NUM_THREADS": "1",
                    "PLIANT_TERMINATION_LOG": str(self._directory / f"{name}.termination"),
                    **environment,
                },
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def _log_ends(self) -> str:
        ends = []
        for path in sorted(self._directory.glob("*.log")):
            lines = path.read_text(errors="replace").splitlines()
            ends += [f"--- {path.name}", *lines[-8:]]
        return "\n".join(ends)


def leave(process: subprocess.Popen) -> int:
    """As Kubernetes ends a pod."""
    process.send_signal(signal.SIGTERM)
    return process.wait(timeout=60)


class _NamedConnection(http.client.HTTPSConnection):
    """To an address, with the certificate checked against the coordinator's name."""

    def connect(self) -> None:
        plain = socket.create_connection((self.host, self.port), self.timeout)
        self.sock = self._context.wrap_socket(plain, server_hostname=_SERVER_NAME)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _make_credentials(directory: Path) -> None:
    def openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=directory, check=True, capture_output=True)

    new_key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    authority = ("-subj", "/CN=test", "-days", "1", "-addext", "keyUsage=critical,keyCertSign")
    openssl("req", "-x509", *new_key, "-keyout", "ca.key", "-out", "ca.crt", *authority)
    openssl("req", *new_key, "-keyout", "tls.key", "-out", "tls.csr", "-subj", f"/CN={_SERVER_NAME}")
    (directory / "extensions").write_text(f"subjectAltName=DNS:{_SERVER_NAME}\nauthorityKeyIdentifier=keyid\n")
    issuer = ("-CA", "ca.crt", "-CAkey", "ca.key", "-extfile", "extensions")
    openssl("x509", "-req", "-in", "tls.csr", "-out", "tls.crt", *issuer)
    (directory / "operator-token").write_text(_OPERATOR_TOKEN)
    (directory / "learner-token").write_text(_LEARNER_TOKEN)
