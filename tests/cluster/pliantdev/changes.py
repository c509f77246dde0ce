"""The files that differ from a commit, according to git."""

from pathlib import Path

from .errors import DevError
from .settings import REPO
from .source_tree import git

# Tried in this order if no commit is given.
_BRANCHES = ("origin/main", "main")


def base(since: str | None, root: Path = REPO) -> tuple[str, str]:
    """The commit to compare with, and its description."""
    if since:
        commit = git("rev-parse", "--verify", "--quiet", f"{since}^{{commit}}", root=root)
        if not commit:
            raise DevError(f"--since: git knows no commit {since}", remedy="git log --oneline")
        return commit.strip(), since
    for branch in _BRANCHES:
        commit = git("merge-base", "HEAD", branch, root=root)
        if commit:
            return commit.strip(), f"the merge base with {branch}"
    raise DevError(
        f"there is no {' and no '.join(_BRANCHES)} to compare with",
        remedy="./dev test changed --since COMMIT",
    )


def files(commit: str, root: Path = REPO) -> list[str]:
    """Files changed, added or removed since the commit, committed or not. A renamed file appears
    under both names."""
    changed = git("diff", "--name-only", "--no-renames", "-z", commit, "--", root=root)
    added = git("ls-files", "--others", "--exclude-standard", "-z", root=root)
    if changed is None or added is None:
        raise DevError(f"git cannot compare {root} with {commit}", remedy="git status")
    return sorted({name for name in (changed + added).split("\0") if name})
