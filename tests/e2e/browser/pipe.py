"""The Chrome DevTools Protocol over two pipes: each message is JSON, and a NUL byte ends it. It needs no WebSocket, and no
port that others of the machine could reach."""

import json
import os
import select
import time
from collections.abc import Callable, Mapping
from typing import Any

_MAX_MESSAGE_BYTES = 1 << 28  # a screenshot has some MiB
_BLOCK = 1 << 16


class BrowserError(Exception):
    """The browser refused a command, or has gone."""


class Pipe:
    """`on_event` gets what the browser says by itself, while an answer is awaited. Not thread-safe."""

    def __init__(self, read_fd: int, write_fd: int, on_event: Callable[[Mapping[str, Any]], None]) -> None:
        self._read_fd = read_fd
        self._write_fd = write_fd
        self._on_event = on_event
        self._next = 0
        self._rest = bytearray()

    def command(
        self, method: str, parameters: Mapping[str, Any], *, session: str | None = None, seconds: float = 30.0
    ) -> Mapping[str, Any]:
        """Sends a command and returns its result."""
        self._next += 1
        number = self._next
        message = {"id": number, "method": method, "params": parameters, **({"sessionId": session} if session else {})}
        self._write(json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + seconds
        while True:
            answer = self._message(deadline)
            if answer is None:
                raise BrowserError(f"{method} has no answer after {seconds:g} s")
            if answer.get("id") != number:
                self._take(answer)
            elif "error" in answer:
                raise BrowserError(f"{method}: {answer['error'].get('message', answer['error'])}")
            else:
                return answer.get("result", {})

    def listen(self, seconds: float) -> None:
        """Takes the events of this time."""
        deadline = time.monotonic() + seconds
        while (message := self._message(deadline)) is not None:
            self._take(message)

    def _take(self, message: Mapping[str, Any]) -> None:
        if "method" in message:
            self._on_event(message)

    def _write(self, data: bytes) -> None:
        try:
            while data:
                data = data[os.write(self._write_fd, data) :]
        except OSError as error:
            raise BrowserError(f"the browser has gone: {error}") from error

    def _message(self, deadline: float) -> Mapping[str, Any] | None:
        """The next message; None if there is none until the deadline."""
        while (end := self._rest.find(b"\0")) < 0:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._read_fd], [], [], left)[0]:
                return None
            block = os.read(self._read_fd, _BLOCK)
            if not block:
                raise BrowserError("the browser has gone")
            self._rest += block
            if len(self._rest) > _MAX_MESSAGE_BYTES:
                raise BrowserError(f"a message has more than {_MAX_MESSAGE_BYTES >> 20} MiB")
        text = bytes(self._rest[:end])
        del self._rest[: end + 1]
        try:
            message = json.loads(text)
        except ValueError as error:
            raise BrowserError(f"a message is no JSON: {error}") from error
        if not isinstance(message, dict):
            raise BrowserError("a message is no object")
        return message
