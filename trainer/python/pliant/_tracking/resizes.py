"""The resizes of this job, as its coordinator reports them (docs/contracts.md §2)."""

import http.client
import json
import os
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_SECONDS = 2.0
_MAX_ANSWER_BYTES = 1 << 20
MembershipId = tuple[int, int]  # (term, counter)


@dataclass(frozen=True)
class Resize:
    """A change of the learners that has taken place."""

    membership: MembershipId  # that it led to
    step: int  # the last one before it
    before: int  # learners
    after: int
    kind: str  # Planned or Recovery
    reason: str  # a sentence; may be empty
    pause_seconds: float | None
    steps_lost: int

    def __str__(self) -> str:
        counted = f"{self.before} → {self.after} learners"
        why = self.reason or self.kind.lower()
        return f"step {self.step}: {counted}: {why}"


def membership_id(text: object) -> MembershipId | None:
    """ "term.counter" as numbers, which order memberships; None if it is something else."""
    try:
        term, counter = str(text).split(".")
        return int(term), int(counter)
    except ValueError:
        return None


class Resizes:
    """Asks the coordinator. Without one, there are no resizes."""

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        self._environment = environment

    def known(self) -> list[Resize]:
        """The last 64, in order. Raises OSError, HTTPException or ValueError if it has no answer."""
        if "PLIANT_COORDINATOR" not in self._environment:
            return []
        progress = json.loads(self._ask())
        found = progress.get("resizes") if isinstance(progress, dict) else None
        if not isinstance(found, list):
            raise ValueError("the coordinator's answer has no resizes")
        resizes = [_parse(each) for each in found if isinstance(each, dict)]
        return [each for each in resizes if each is not None]

    def _ask(self) -> bytes:
        environment = self._environment
        folder = Path(environment["PLIANT_TLS_DIR"])
        token = Path(environment["PLIANT_TOKEN_FILE"]).read_text().strip()
        connection = _ToCoordinator(
            *_address(environment["PLIANT_COORDINATOR"]),
            timeout=_SECONDS,
            context=ssl.create_default_context(cafile=str(folder / "ca.crt")),
        )
        connection.name = f"{environment['PLIANT_JOB_UID']}.coordinator.pliant.internal"
        try:
            connection.request("GET", "/v1/progress", headers={"Authorization": f"Bearer {token}"})
            answer = connection.getresponse()
            body = answer.read(_MAX_ANSWER_BYTES + 1)
        finally:
            connection.close()
        if answer.status != 200 or len(body) > _MAX_ANSWER_BYTES:
            raise ValueError(f"the coordinator answers {answer.status} with {len(body)} bytes")
        return body


class _ToCoordinator(http.client.HTTPSConnection):
    """Checks the certificate against `name`, whatever the address is."""

    name = ""

    def connect(self) -> None:
        plain = socket.create_connection((self.host, self.port), self.timeout)
        context: ssl.SSLContext = self._context  # type: ignore[attr-defined]
        self.sock = context.wrap_socket(plain, server_hostname=self.name)


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host.strip("[]"), int(port)


def _parse(entry: dict[str, Any]) -> Resize | None:
    """None: it has not taken place yet, or it is no resize."""
    membership = membership_id(entry.get("membership"))
    if membership is None or not isinstance(entry.get("runningUnixSeconds"), int | float):
        return None
    pause = entry.get("longestPauseSeconds")
    return Resize(
        membership=membership,
        step=_count(entry, "step"),
        before=_count(entry, "from"),
        after=_count(entry, "to"),
        kind=str(entry.get("kind", ""))[:16],
        reason=str(entry.get("reason", ""))[:1024],
        pause_seconds=float(pause) if isinstance(pause, int | float) else None,
        steps_lost=_count(entry, "stepsLost"),
    )


def _count(entry: dict[str, Any], name: str) -> int:
    value = entry.get(name)
    return value if isinstance(value, int) and value >= 0 else 0
