"""Names from the command line, checked before kubectl sees them: none passes for an option or a resource. No I/O."""

from __future__ import annotations

import re

from .errors import WRONG_USE, CommandError

_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")


def job_name(text: str) -> str:
    if not _NAME.fullmatch(text):
        raise CommandError(
            "JOB must be a name of lower-case letters, digits and '-', without its namespace, which -n names",
            WRONG_USE,
        )
    return text
