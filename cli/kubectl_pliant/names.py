"""Names from the command line, checked before kubectl sees them: none passes for an option or a resource. No I/O."""

from __future__ import annotations

import re

from .errors import WRONG_USE, CommandError
from .text import harmless

_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def is_name(text: str) -> bool:
    return _NAME.fullmatch(text) is not None


def job_name(text: str) -> str:
    if not is_name(text):
        raise CommandError(
            "JOB must be a name of lower-case letters, digits and '-', without its namespace, which -n names",
            WRONG_USE,
        )
    return text


def object_name(text: str, what: str) -> str:
    if not is_name(text):
        raise CommandError(f"{what} is no name of an object: {harmless(text, 80)}")
    return text


def job_uid(text: str | None) -> str:
    """The uid of a job as the API server made it: it becomes part of selectors and paths."""
    if text is None or not _UID.fullmatch(text):
        raise CommandError("the job has no uid that is understood: check kubectl get etj JOB -o yaml")
    return text
