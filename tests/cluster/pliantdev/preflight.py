"""Checks the machine before anything is changed on it, and reports obstacles with their
remedies."""

import os
import platform
import resource
import shutil
import subprocess
from pathlib import Path

from . import cgroups, host, network
from .errors import DevError
from .images import running_engine
from .settings import CACHE, STATE

_GIB = 1 << 30
# Measured: an empty cache grows to about 20 GiB (images 7, Go modules and objects 5, C++ objects of
# all presets 6).
_DISK_COLD = 25 * _GIB
_DISK_WARM = 6 * _GIB
_MEMORY = 5 * _GIB  # for two jobs with eight learners, and a compiler


def require_root() -> None:
    if os.geteuid() != 0:
        raise DevError(
            "./dev needs root: it makes namespaces, mounts and control groups",
            remedy="sudo ./dev ...",
        )


def check(*, cluster: bool) -> None:
    """Raises one error that lists all problems. `cluster`: the command starts nodes, not only a
    compiler."""
    require_root()
    for folder in (CACHE, STATE):
        folder.mkdir(parents=True, exist_ok=True)
    # Pods, watches and object files need many descriptors: use as many as the machine allows.
    _, most_files = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most_files, most_files))
    problems = [*_machine(), *(_cluster() if cluster else [])]
    if problems:
        raise DevError(
            "this machine is not ready:\n" + "\n".join(f"  * {problem}" for problem in problems)
        )
    host.install_packages(host.missing_packages(container_engine=running_engine() is not None))


def _machine() -> list[str]:
    problems = []
    if platform.machine() != "x86_64":
        problems.append(
            f"the processor is {platform.machine()}; only x86_64 has been tried and is supported"
        )
    cold = not (CACHE / "build").exists()
    free, wanted = shutil.disk_usage(CACHE).free, _DISK_COLD if cold else _DISK_WARM
    if free < wanted:
        problems.append(
            f"{CACHE} has {free // _GIB} GiB free, {wanted // _GIB} are needed: "
            "make room (./dev clean removes old caches), or set PLIANT_CACHE to a larger disk"
        )
    return problems


def _cluster() -> list[str]:
    problems = []
    missing = cgroups.missing_controllers()
    if missing:
        problems.append(
            f"control groups lack {', '.join(missing)}: boot with "
            f"cgroup_enable={','.join(missing)}; in a container, mount /sys/fs/cgroup writable"
        )
    available = _available_memory()
    if available < _MEMORY:
        problems.append(
            f"{available / _GIB:.1f} GiB of memory are free, {_MEMORY // _GIB} are needed: "
            "end other programs"
        )
    for program, try_it in {
        "namespaces": ["unshare", "--mount", "--net", "--pid", "--ipc", "--uts", "--fork", "true"],
        "overlay file systems": [
            "sh",
            "-c",
            "grep -qw overlay /proc/filesystems || modprobe overlay",
        ],
    }.items():
        if (
            shutil.which(try_it[0])
            and subprocess.run(try_it, capture_output=True, check=False).returncode != 0
        ):
            problems.append(
                f"the kernel or the container around us refuses {program}: "
                "run ./dev on a machine or in a virtual machine"
            )
    if shutil.which("ip"):
        for route in network.overlapping_routes():
            problems.append(
                f"the route {route} of this machine lies in the local cluster's addresses: "
                "remove it for now"
            )
    return problems


def _available_memory() -> int:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return 0
