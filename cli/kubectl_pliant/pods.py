"""A job's learner pods as kubectl shows them. No I/O."""

from __future__ import annotations

from dataclasses import dataclass

from .fields import Fields

CONTAINER = "learner"


@dataclass(frozen=True)
class Learner:
    pod: str
    uid: str
    number: int  # of the learner; -1: not known
    has_log: bool  # its container runs or has ended
    ended: bool

    @property
    def prefix(self) -> str:
        return self.pod if self.number < 0 else f"learner-{self.number}"


def selector(job_uid: str) -> str:
    return f"pliant.dev/job-uid={job_uid},pliant.dev/role=learner"


def read_learner(value: object) -> Learner | None:
    """None: the object is no pod that has a name and a uid."""
    root = Fields(value)
    metadata, status = root.below("metadata"), root.below("status")
    name, uid = metadata.text("name"), metadata.text("uid")
    if not name or not uid:
        return None
    number = metadata.below("labels").text("pliant.dev/learner") or ""
    started, ended = False, status.text("phase") in ("Succeeded", "Failed")
    for container in status.items("containerStatuses"):
        if container.text("name") == CONTAINER:
            state = container.below("state")
            terminated = state.has("terminated")
            started, ended = terminated or state.has("running"), ended or terminated
    is_number = number.isascii() and number.isdecimal() and len(number) < 10
    return Learner(name, uid, int(number) if is_number else -1, started, ended)
