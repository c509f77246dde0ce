"""The only place that starts kubectl, which has the user's credentials. There is no second client of the API server."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Sequence
from dataclasses import dataclass

from .errors import CommandError
from .processes import start, stop
from .server_errors import error_of

JOBS = "elastictrainingjobs.pliant.dev"
QUEUES = "trainingqueues.pliant.dev"
POOLS = "gpupools.pliant.dev"
_CHUNK = 500  # objects of one request
_MAX_ANSWER_BYTES = 1 << 29
_MAX_ERROR_BYTES = 1 << 16
_SECONDS = 300.0  # for one call of kubectl, with all of its requests
_REQUEST = "--request-timeout=60s"


@dataclass(frozen=True)
class Connection:
    """The cluster and the namespace, as kubectl's own options name them."""

    kubeconfig: str | None = None
    context: str | None = None
    namespace: str | None = None
    all_namespaces: bool = False

    def options(self) -> list[str]:
        given = [("--kubeconfig", self.kubeconfig), ("--context", self.context)]
        return [f"{option}={value}" for option, value in given if value is not None]

    def scope(self) -> list[str]:
        if self.all_namespaces:
            return ["--all-namespaces"]
        return [] if self.namespace is None else [f"--namespace={self.namespace}"]


class Kubectl:
    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    def start(
        self,
        arguments: Sequence[str],
        *,
        scope: Sequence[str] | None = None,
        stdin: int = subprocess.DEVNULL,
    ) -> subprocess.Popen[bytes]:
        """The process, which the caller stops. It ends with this program at the latest."""
        inside = self.connection.scope() if scope is None else scope
        # Behind the verb: --all-namespaces is no option of kubectl itself.
        command = ["kubectl", arguments[0], *self.connection.options(), *inside, *arguments[1:]]
        try:
            return start(command, stdin)
        except FileNotFoundError:
            raise CommandError(
                "there is no program kubectl in PATH: install it, https://kubernetes.io/docs/tasks/tools"
            ) from None
        except (OSError, ValueError) as error:
            raise CommandError(f"kubectl cannot be started: {error}") from None

    def call(
        self,
        arguments: Sequence[str],
        *,
        scope: Sequence[str] | None = None,
        stdin: bytes | None = None,
        seconds: float = _SECONDS,
    ) -> bytes:
        """Its standard output. Raises a CommandError if it fails."""
        process = self.start(
            arguments,
            scope=scope,
            stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
        )
        ended = _Exchange(process, stdin, seconds).result()
        if ended.code != 0:
            raise error_of(ended.stderr.decode(errors="replace"), ended.code)
        return ended.stdout

    def get(self, resource: str, name: str, *, scope: Sequence[str] | None = None) -> object:
        answer = self.call(["get", resource, name, "--output=json", _REQUEST], scope=scope)
        return decoded(answer, f"kubectl get {resource}")

    def get_raw(self, path: str, seconds: float) -> bytes:
        """The API server's answer to a path, which names the namespace itself."""
        return self.call(["get", f"--raw={path}", _REQUEST], scope=(), seconds=seconds)

    def list(
        self,
        resource: str,
        *,
        options: Sequence[str] = (),
        scope: Sequence[str] | None = None,
        seconds: float = _SECONDS,
    ) -> list[object]:
        call = ["get", resource, *options, f"--chunk-size={_CHUNK}", "--output=json", _REQUEST]
        answer = self.call(call, scope=scope, seconds=seconds)
        return items_of(decoded(answer, f"kubectl get {resource}"), f"kubectl get {resource}")

    def patch(self, resource: str, name: str, patch: object) -> object:
        """The object after a merge patch."""
        answer = self.call(
            ["patch", resource, name, "--type=merge", f"--patch={json.dumps(patch)}",
             "--output=json", _REQUEST]
        )  # fmt: skip
        return decoded(answer, f"kubectl patch {resource}")


def decoded(answer: bytes, call: str) -> object:
    try:
        value: object = json.loads(answer)
    except (ValueError, RecursionError):
        raise CommandError(f"the answer of {call} is cut off or no JSON: run it again") from None
    return value


def items_of(answer: object, call: str) -> list[object]:
    items = answer.get("items") if isinstance(answer, dict) else None
    if not isinstance(items, list):
        raise CommandError(f"the answer of {call} is no list of objects: check kubectl's version")
    return items


@dataclass(frozen=True)
class _Ended:
    code: int
    stdout: bytes
    stderr: bytes


class _Exchange:
    """Reads both outputs of a process to their ends, within bounds of bytes and seconds."""

    def __init__(self, process: subprocess.Popen[bytes], stdin: bytes | None, seconds: float) -> None:
        self._process = process
        self._stdin = stdin
        self._seconds = seconds
        self._stdout = bytearray()
        self._stderr = bytearray()
        self._too_large = False

    def result(self) -> _Ended:
        threads = [
            threading.Thread(target=self._read_stdout, daemon=True),
            threading.Thread(target=self._read_stderr, daemon=True),
            threading.Thread(target=self._write, daemon=True),
        ]
        for thread in threads:
            thread.start()
        try:
            code = self._process.wait(self._seconds)
        except subprocess.TimeoutExpired:
            raise CommandError(f"kubectl has not answered for {self._seconds:g} s: check the network") from None
        finally:
            stop(self._process)
        for thread in threads:
            thread.join(5)  # a program that kubectl started may hold its outputs open
        if self._too_large:
            raise CommandError(f"the answer has more than {_MAX_ANSWER_BYTES >> 20} MiB: narrow it with -n")
        return _Ended(code, bytes(self._stdout), bytes(self._stderr))

    def _read_stdout(self) -> None:
        stream = self._process.stdout
        assert stream is not None
        while block := stream.read1(1 << 16):  # type: ignore[attr-defined]
            self._stdout += block
            if len(self._stdout) > _MAX_ANSWER_BYTES:
                self._too_large = True
                self._process.kill()
                return

    def _read_stderr(self) -> None:
        stream = self._process.stderr
        assert stream is not None
        while block := stream.read1(1 << 12):  # type: ignore[attr-defined]
            self._stderr = (self._stderr + block)[-_MAX_ERROR_BYTES:]

    def _write(self) -> None:
        if self._stdin is None or self._process.stdin is None:
            return
        try:
            self._process.stdin.write(self._stdin)
            self._process.stdin.close()
        except OSError:
            pass  # it ended before it read everything; its exit code says why
