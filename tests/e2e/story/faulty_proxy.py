"""Imitates an API server that is hard to reach, and an operator that dies when it writes: a proxy in the operator's
pod, between it and the real API server. behind_proxy.py starts it there; it needs only Python's standard library.

On its own port POST /mood sets its behaviour, and GET /seen returns the requests that it saw."""

import contextlib
import dataclasses
import http.client
import http.server
import json
import os
import random
import re
import signal
import socket
import ssl
import struct
import threading
import time
import urllib.parse
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

API_PORT, MOOD_PORT = 8001, 8002
_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_LEASE = "pliant-operator"
_OPERATOR = "pliant-operator"  # name of its process
_OF_ONE_CONNECTION = {"connection", "keep-alive", "transfer-encoding", "content-length", "host", "te", "upgrade"}
# The fields that identify a write of a job's status. A repeated write may have other progress values, and other
# reserved numbers: those reserved by an operator that was killed stay unused.
_STATUS_FIELDS = ("phase", "desiredLearners", "learners", "membershipId")
_NUMBER = re.compile(r"-\d+$")
_ANY_NUMBER = "-#"
_READ_BYTES = 65536
_WRITES = {"POST", "PUT", "PATCH", "DELETE"}
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER on, with 0 seconds

BEFORE, AFTER = "before", "after"


@dataclass(frozen=True)
class Mood:
    """The state of the connection to the API server."""

    delay_seconds: float = 0.0  # max added delay of a request, and of each piece of a watch
    reset_share: float = 0.0  # share of requests, and of pieces of watches, at which the connection is cut
    refuse_share: float = 0.0  # share of requests answered 429; the lease's are not: they have their own server queue
    kills: int = 0  # how often the operator is killed at each write: 2: before and after it; 1: one of these


@dataclass(frozen=True)
class Exchange:
    """A request and its outcome."""

    time: float  # Unix seconds of its arrival
    method: str
    path: str
    outcome: str  # a status, "reset", or "before" or "after": the operator was killed before or after the write


def write_of(method: str, target: str, body: bytes) -> str | None:
    """A name of the change that a request makes, equal when it is repeated; None if it changes nothing or only the
    lease or events."""
    path, _, query = target.partition("?")
    if method not in _WRITES or "dryRun=All" in query or "/leases" in path or "/events" in path:
        return None
    told = json.loads(body) if body else {}
    if method == "POST":
        name = told["metadata"]["name"]
        if path.endswith("/pods"):
            name = _NUMBER.sub(_ANY_NUMBER, name)
        if path.endswith("/secrets"):  # it has a coordinator's term: an operator that dies here leaves the term unused
            name = _NUMBER.sub("", name)
        return f"POST {path}/{name}"
    if path.endswith("/status"):
        status = told.get("status", {})
        return f"{method} {path} {[status.get(each) for each in _STATUS_FIELDS]}"
    return f"{method} {path}"


@dataclass
class Failpoints:
    """Decides where the operator is killed: at each write, once or twice. It still makes progress: when it repeats a write
    after that, it is not killed."""

    kills: int = 0
    tries: dict[str, int] = field(default_factory=dict)

    def side(self, write: str, kills_each: int) -> str | None:
        tried = self.tries.get(write, 0) + 1
        side = None
        if tried <= kills_each:
            first = self.kills % 2 == 0 if kills_each == 1 else tried == 1
            side = BEFORE if first else AFTER
            self.kills += 1
        made = side != BEFORE
        self.tries[write] = 0 if made and write.endswith(_ANY_NUMBER) else tried  # the next one is another pod
        return side


@dataclass
class Way:
    """State shared by all connections."""

    connect: Callable[[], http.client.HTTPConnection]  # to the real API server
    kill: Callable[[], None]  # kills the operator, and returns when nothing of it is left
    mood: Mood = Mood()
    seen: list[Exchange] = field(default_factory=list)
    lock: threading.RLock = field(default_factory=threading.RLock)
    life: int = 0  # number of the operator's present life: counts its kills
    failpoints: Failpoints = field(default_factory=Failpoints)
    chance: random.Random = field(default_factory=lambda: random.Random(1))

    def happens(self, share: float) -> bool:
        return share > 0 and self.chance.random() < share


class _Cut(Exception):
    """The connection must end."""


def _body(request: http.server.BaseHTTPRequestHandler) -> bytes:
    if request.headers.get("Transfer-Encoding") != "chunked":
        return request.rfile.read(int(request.headers.get("Content-Length", 0)))
    body = b""
    while size := int(request.rfile.readline(), 16):
        body += request.rfile.read(size)
        request.rfile.readline()
    request.rfile.readline()
    return body


class Handler(http.server.BaseHTTPRequestHandler):
    """One connection of the operator."""

    protocol_version = "HTTP/1.1"
    way: Way

    def setup(self) -> None:
        super().setup()
        self._upstream = self.way.connect()
        with self.way.lock:  # not while the operator is being killed
            self._life = self.way.life

    def finish(self) -> None:
        self._upstream.close()
        with contextlib.suppress(OSError):
            super().finish()

    def log_message(self, *_: object) -> None:
        """Silent: requests are kept in `seen`, not logged."""

    def _serve(self) -> None:
        begin = time.time()
        try:
            outcome = self._answer(_body(self))
        except (_Cut, OSError, http.client.HTTPException) as error:
            outcome = str(error) if isinstance(error, _Cut) else "reset"
            self._reset()
        with self.way.lock:
            self.way.seen.append(Exchange(begin, self.command, self.path.partition("?")[0], outcome))

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _serve

    def _answer(self, body: bytes) -> str:
        way, mood = self.way, self.way.mood
        write = write_of(self.command, self.path, body)
        with way.lock:
            self._check_alive()
            side = way.failpoints.side(write, mood.kills) if write and mood.kills else None
            if side == BEFORE:
                self._kill(BEFORE)
        self._delay()
        if "/leases/" not in self.path and way.happens(mood.refuse_share):
            return self._refuse()
        cut_after = way.happens(mood.reset_share / 2)
        if way.happens(mood.reset_share / 2):
            raise _Cut("reset")
        headers = {name: value for name, value in self.headers.items() if name.lower() not in _OF_ONE_CONNECTION}
        self._upstream.request(self.command, self.path, body or None, headers)
        response = self._upstream.getresponse()
        if response.chunked and self.command == "GET":
            self._head(response, {"Transfer-Encoding": "chunked"})
            self._stream(response)
            return str(response.status)
        answer = response.read()
        if cut_after:
            raise _Cut("reset")
        with way.lock:
            if side == AFTER:
                self._kill(AFTER)
            self._check_alive()
        self._delay()
        self._head(response, {"Content-Length": str(len(answer))})
        self.wfile.write(answer)
        return str(response.status)

    def _stream(self, response: http.client.HTTPResponse) -> None:
        while data := response.read1(_READ_BYTES):
            self._delay()
            if self.way.happens(self.way.mood.reset_share):
                self.wfile.write(b"%x\r\n%b" % (len(data), data[: len(data) // 2]))
                raise _Cut("reset")
            self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        self.wfile.write(b"0\r\n\r\n")

    def _head(self, response: http.client.HTTPResponse, length: Mapping[str, str]) -> None:
        self.send_response_only(response.status, response.reason)
        for name, value in response.getheaders():
            if name.lower() not in _OF_ONE_CONNECTION:
                self.send_header(name, value)
        for name, value in length.items():
            self.send_header(name, value)
        self.end_headers()

    def _refuse(self) -> str:
        status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "TooManyRequests", "code": 429}
        answer = json.dumps({**status, "message": "Too many requests, please try again later."}).encode()
        self.send_response_only(http.HTTPStatus.TOO_MANY_REQUESTS)
        for name, value in (
            ("Retry-After", "1"),
            ("Content-Type", "application/json"),
            ("Content-Length", str(len(answer))),
        ):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(answer)
        return "429"

    def _delay(self) -> None:
        time.sleep(self.way.chance.uniform(0, self.way.mood.delay_seconds))

    def _check_alive(self) -> None:
        if self._life != self.way.life:
            raise _Cut("dead")

    def _kill(self, side: str) -> None:
        # Under the lock, so that connections of the next life begin after the kill.
        self.way.kill()
        self.way.life += 1
        raise _Cut(side)

    def _reset(self) -> None:
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            self.connection.close()


class MoodHandler(http.server.BaseHTTPRequestHandler):
    way: Way

    def do_GET(self) -> None:
        with self.way.lock:
            seen = [dataclasses.astuple(each) for each in self.way.seen]
        self._answer(seen)

    def do_POST(self) -> None:
        mood = Mood(**json.loads(_body(self)))
        with self.way.lock:
            self.way.mood = mood
        self._answer(dataclasses.asdict(mood))

    def log_message(self, *_: object) -> None:
        """Silent: the story knows its own requests."""

    def _answer(self, value: object) -> None:
        answer = json.dumps(value).encode()
        self.send_response(http.HTTPStatus.OK)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


def serve(way: Way, address: tuple[str, int], handler: type[http.server.BaseHTTPRequestHandler]) -> Server:
    """Starts the server on its own thread."""
    server = Server(address, type(handler.__name__, (handler,), {"way": way}))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def _connect() -> http.client.HTTPConnection:
    host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
    context = ssl.create_default_context(cafile=str(_ACCOUNT / "ca.crt"))
    return http.client.HTTPSConnection(host, int(port), context=context)


def _kill() -> None:
    """Kills the operator, whose processes are visible in the pod's containers, and empties the lease, which would
    otherwise expire later."""
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            if (process / "comm").read_text().strip() == _OPERATOR:
                os.kill(int(process.name), signal.SIGKILL)
    namespace = (_ACCOUNT / "namespace").read_text()
    path = f"/apis/coordination.k8s.io/v1/namespaces/{urllib.parse.quote(namespace)}/leases/{_LEASE}"
    connection = _connect()
    with contextlib.suppress(OSError, http.client.HTTPException):  # then the next operator waits until it expires
        headers = {
            "Authorization": f"Bearer {(_ACCOUNT / 'token').read_text()}",
            "Content-Type": "application/merge-patch+json",
        }
        connection.request("PATCH", path, json.dumps({"spec": {"holderIdentity": ""}}), headers)
        connection.getresponse().read()
    connection.close()


def main() -> None:
    way = Way(_connect, _kill)
    serve(way, ("127.0.0.1", API_PORT), Handler)
    serve(way, ("", MOOD_PORT), MoodHandler)
    threading.Event().wait()


if __name__ == "__main__":
    main()
