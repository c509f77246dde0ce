"""Control groups of the nodes: the groups of a node's pods are below /pliant/NODE.

Tested with version 1 and an unused version 2 ("hybrid"). Version 2 alone follows the kernel's
manual and has not been tested yet. """

import contextlib
import os
import time
from pathlib import Path

from .errors import DevError

_ROOT = Path("/sys/fs/cgroup")
_PARENT = "pliant"
_CONTROLLERS = ("cpu", "cpuset", "memory", "pids")


def is_version_2() -> bool:
    return (_ROOT / "cgroup.controllers").exists()


def missing_controllers() -> list[str]:
    if is_version_2():
        present = (_ROOT / "cgroup.controllers").read_text().split()
        return [name for name in _CONTROLLERS if name not in present]
    return [name for name in _CONTROLLERS if not (_ROOT / name / "cgroup.procs").exists()]


def _hierarchies() -> list[Path]:
    if is_version_2():
        return [_ROOT]
    # Controllers that are mounted together have several names for one folder.
    found = {path.resolve() for path in _ROOT.iterdir() if (path / "cgroup.procs").exists()}
    return sorted(found)


def path_of(node: str) -> str:
    return f"/{_PARENT}/{node}"


def create(node: str) -> None:
    for hierarchy in _hierarchies():
        group = hierarchy
        for part in (_PARENT, node):
            if is_version_2():
                # A group passes controllers to its children only if they are enabled here.
                (group / "cgroup.subtree_control").write_text(
                    " ".join(f"+{name}" for name in _CONTROLLERS)
                )
            group = group / part
            group.mkdir(exist_ok=True)
            # In version 1 a new cpuset is empty, and nothing may run in it.
            for file in ("cpuset.cpus", "cpuset.mems"):
                if (
                    not is_version_2()
                    and (group / file).exists()
                    and not (group / file).read_text().strip()
                ):
                    (group / file).write_text((group.parent / file).read_text())


def remaining() -> list[Path]:
    return [hierarchy / _PARENT for hierarchy in _hierarchies() if (hierarchy / _PARENT).exists()]


def remove_all(timeout_seconds: float = 10.0) -> None:
    """Removes all of Pliant's groups. Their processes have ended, but the kernel may take a moment
    to release the groups."""
    deadline = time.monotonic() + timeout_seconds
    for top in remaining():
        while top.exists():
            for folder, _, _ in os.walk(top, topdown=False):
                with contextlib.suppress(OSError):
                    os.rmdir(folder)
            if top.exists():
                if time.monotonic() > deadline:
                    raise DevError(
                        f"the control group {top} cannot be removed: something still runs in it"
                    )
                time.sleep(0.1)
