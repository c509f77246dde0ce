"""Small JSON files that save time: indices of tar files, positions in streams.

None of them is needed. A file that is missing, torn, too large or of another writer reads as None,
and what it held is made again. Several processes may write the same file.
"""

import hashlib
import json
import os
import secrets
from pathlib import Path
from typing import Any

from .._checks import folder as check_folder

_FORMAT = 1


def of_job(name: str) -> Path | None:
    """The folder `name` on the job's volume. None: this process is not in a job."""
    volume, job = os.environ.get("PLIANT_CHECKPOINT_DIR"), os.environ.get("PLIANT_JOB_UID")
    if "PLIANT_COORDINATOR" in os.environ and volume and job:
        return Path(volume, job, "data", name)
    return None


def of_user(name: str) -> Path | None:
    """The folder `name` in the cache of this user. None: the user has no home."""
    cache = os.environ.get("XDG_CACHE_HOME")
    try:
        return Path(cache or Path.home() / ".cache", "pliant", name)
    except RuntimeError:
        return None


def named(cache: Any, name: str) -> Path | None:
    """The folder `name` in the one that the program gives. None: it gives none."""
    given = None if cache is None else check_folder("cache", cache)
    return None if given is None else Path(given, name)


def write(file: Path, content: dict[str, Any]) -> bool:
    """Replaces the file at once. Returns False if that is not possible."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    whole = {"format": _FORMAT, "sha256": _hash(text), "content": text}
    aside = file.with_name(f".{file.name}.{os.getpid()}-{secrets.token_hex(4)}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        try:
            aside.write_text(json.dumps(whole))
            aside.replace(file)
        except BaseException:
            aside.unlink(missing_ok=True)
            raise
    except OSError:
        return False
    return True


def read(file: Path, max_bytes: int) -> dict[str, Any] | None:
    """The content of a file. None: there is none, or it is not as `write` left it."""
    try:
        with open(file, "rb") as opened:
            data = opened.read(max_bytes + 1)
        if len(data) > max_bytes:
            return None
        whole = json.loads(data)
        text = whole["content"]
        if whole["format"] != _FORMAT or whole["sha256"] != _hash(text):
            return None
        content = json.loads(text)
    # The last three: the file holds something else, perhaps nested without end.
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
