"""The files of the source: those that git lists or, without git, those in the folder."""

import hashlib
import re
import subprocess
import tempfile
from pathlib import Path

from .errors import DevError
from .settings import CACHE, REPO

# Folders named in .gitignore, or ignored by a tool's own file.
_NO_SOURCE = {".git", ".cache", ".mypy_cache", ".ruff_cache", "build", "__pycache__"}


def git(*arguments: str, root: Path = REPO) -> str | None:
    """git's output; None if it fails or is not installed."""
    # In a build image the files may belong to another user.
    command = ["git", "-c", "safe.directory=*", "-C", str(root), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return None
    return done.stdout if done.returncode == 0 else None


def commit() -> str:
    """The commit of the checkout; empty without git."""
    return (git("rev-parse", "--short", "HEAD") or "").strip()


def resolve(name: str, root: Path = REPO) -> str:
    """The commit of a name, always abbreviated to the same length."""
    asked = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    found = (git(*asked, root=root) or "").strip()
    if not re.fullmatch("[0-9a-f]{40}", found):
        raise DevError(
            f"this checkout does not know the commit {name}",
            remedy="git fetch --unshallow, if its history was cut off",
        )
    return found[:12]


def at(commit: str, root: Path = REPO, cache: Path = CACHE) -> Path:
    """The files of a commit, in a separate folder. They must not be changed."""
    folder = cache / "commits" / commit
    if not folder.exists():
        with tempfile.TemporaryDirectory(dir=cache) as scratch:
            archive = Path(scratch, "source.tar")
            if git("archive", f"--output={archive}", commit, root=root) is None:
                raise DevError(f"git cannot archive the commit {commit}")
            unpacked = Path(scratch, "source")
            unpacked.mkdir()
            subprocess.run(["tar", "-xf", archive, "-C", unpacked], check=True)
            folder.parent.mkdir(exist_ok=True)
            unpacked.rename(folder)
    return folder


def files(root: Path = REPO) -> list[str]:
    """All files that git does not ignore, tracked or not yet, relative to the root."""
    listed = git("ls-files", "-z", "--cached", "--others", "--exclude-standard", root=root)
    if listed is not None:
        names = {name for name in listed.split("\0") if name}
        return sorted(name for name in names if (root / name).is_file())
    return sorted(
        str(path.relative_to(root))
        for path in root.rglob("*")
        if path.is_file()
        and path.suffix != ".log"
        and not _NO_SOURCE.intersection(path.relative_to(root).parts)
    )


def identity(root: Path = REPO) -> str:
    """A hash of the contents, equal for equal contents, committed or not."""
    digest = hashlib.sha256()
    for name in files(root):
        path = root / name
        executable = path.stat().st_mode & 0o100
        contents = hashlib.sha256(path.read_bytes()).hexdigest()
        digest.update(f"{name}\0{executable}\0{contents}\0".encode())
    return digest.hexdigest()[:12]
