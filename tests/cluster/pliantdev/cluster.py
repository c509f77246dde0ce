"""The local cluster as a whole: a control plane and two nodes."""

import concurrent.futures
import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from . import cgroups, control_plane, network
from .control_plane import ControlPlane, Place
from .daemon import Daemon, wait_until
from .errors import DevError
from .node import Node, NodeFiles
from .settings import GPUS_PER_NODE, STATE

NODE_COUNT = 2
CHECKPOINTS = STATE / "checkpoints"

_DIRECTORY = STATE / "cluster"
# A separate file system that nodes share like CHECKPOINTS, to test a full volume. It has room for
# about ten checkpoints of the demo.
SMALL_VOLUME = _DIRECTORY / "small-volume"
_SMALL_VOLUME_SIZE = "16m"
_CONTROL_PLANE = _DIRECTORY / "control-plane"
_STARTED_FROM = _DIRECTORY / "started-from"
# This process keeps the control plane's network namespace alive.
_NETWORK = Daemon("network", _DIRECTORY / "run")

KUBECONFIG = _CONTROL_PLANE / "admin.kubeconfig"


def nodes() -> list[Node]:
    return [Node(number, _DIRECTORY / f"node-{number}") for number in range(1, NODE_COUNT + 1)]


def node(name: str) -> Node:
    for each in nodes():
        if each.name == name:
            return each
    raise DevError(
        f"there is no node {name}",
        remedy="the nodes are " + ", ".join(each.name for each in nodes()),
    )


def daemons() -> dict[str, Daemon]:
    """Every process of the cluster, by its name in ./dev status."""
    named = {daemon.name: daemon for daemon in (_NETWORK, *control_plane.daemons(_CONTROL_PLANE))}
    for each in nodes():
        named |= {f"{each.name}/{daemon.name}": daemon for daemon in each.daemons}
    return named


def is_up() -> bool:
    return all(daemon.pid() for daemon in daemons().values())


def _runs_from(files: NodeFiles) -> bool:
    """Whether the running cluster was started from these files."""
    return is_up() and _STARTED_FROM.exists() and _STARTED_FROM.read_text() == str(files)


def _for_each_node(action: Callable[[Node], None]) -> None:
    with concurrent.futures.ThreadPoolExecutor() as pool:
        list(pool.map(action, nodes()))


def up(files: NodeFiles, pause_archive: Path) -> None:
    """Starts the cluster unless it runs completely. Removes the remains of another one first."""
    if _runs_from(files):
        return
    down()
    if _another_runs():
        raise DevError(
            "a cluster with another PLIANT_STATE runs, and they would share their addresses",
            remedy="PLIANT_STATE=... ./dev down, with its folder",
        )
    _DIRECTORY.mkdir(parents=True)
    _STARTED_FROM.write_text(str(files))
    shutil.rmtree(CHECKPOINTS, ignore_errors=True)  # of jobs of the previous cluster
    CHECKPOINTS.mkdir()
    CHECKPOINTS.chmod(0o1777)  # learners are not root
    _mount_small_volume()
    _NETWORK.start(["unshare", "--net", "sleep", "infinity"])
    wait_until("the control plane's network namespace is made", _network_is_apart, 5, [_NETWORK])
    plane = ControlPlane(_place(_network_process(), files.programs))
    network.connect_control_plane(_network_process())
    plane.start()
    _for_each_node(lambda each: _start_node(each, plane, files, pause_archive))
    wait_until(
        "all nodes are ready and offer their GPUs",
        lambda: _ready(files.programs),
        90,
        [*daemons().values()],
    )


def _start_node(each: Node, plane: ControlPlane, files: NodeFiles, pause_archive: Path) -> None:
    process = each.start_root(files)
    others = [other.network for other in nodes() if other.name != each.name]
    network.connect_node(process, _network_process(), each.network, others)
    each.start_containerd()
    each.import_image(pause_archive)
    each.start_kubernetes(plane)


def take_away(name: str) -> None:
    """Ends a node and everything that runs in it at once, like a loss of power. Its disk stays."""
    node(name).stop()


def bring_back(name: str, files: NodeFiles, pause_archive: Path) -> None:
    """Starts a node again that was taken away. Does nothing if it runs."""
    each = node(name)
    if all(daemon.pid() for daemon in each.daemons):
        return
    plane = ControlPlane(_place(_network_process(), files.programs))
    each.stop()
    _start_node(each, plane, files, pause_archive)


def down() -> None:
    """Ends every process of the cluster, complete or not, and removes its files."""
    for each in nodes():
        each.stop()
    control_plane.stop(_CONTROL_PLANE)
    _NETWORK.stop()
    _unmount_small_volume()
    if not _another_runs():
        cgroups.remove_all()
    shutil.rmtree(_DIRECTORY, ignore_errors=True)


def _mount_small_volume() -> None:
    SMALL_VOLUME.mkdir()
    options = f"size={_SMALL_VOLUME_SIZE},mode=1777"
    mount: list[str | Path] = ["mount", "-t", "tmpfs", "-o", options, "pliant-small-volume", SMALL_VOLUME]
    result = subprocess.run(mount, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise DevError(f"a file system in memory cannot be mounted: {result.stderr.strip()}")


def _unmount_small_volume() -> None:
    if SMALL_VOLUME.is_mount():
        subprocess.run(["umount", "--lazy", SMALL_VOLUME], capture_output=True, check=False)


def _another_runs() -> bool:
    """Whether the machine has another cluster. Ours has ended, but the kernel takes a while to
    remove its interfaces, especially on a busy machine."""
    deadline = time.monotonic() + 30
    while Path("/sys/class/net", network.HOST_INTERFACE).exists():
        if time.monotonic() > deadline:
            return True
        time.sleep(0.05)
    return False


def leftovers() -> list[str]:
    """Remains of a cluster that was ended; empty if `down` works correctly."""
    processes = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            text = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if str(_DIRECTORY) in text or "/pliant/node-" in (entry / "cgroup").read_text():
                processes.append(f"process {entry.name}: {text}")
    mounts = [
        line for line in Path("/proc/mounts").read_text().splitlines() if str(_DIRECTORY) in line
    ]
    interface = Path("/sys/class/net", network.HOST_INTERFACE)
    files = [str(path) for path in (*cgroups.remaining(), interface, _DIRECTORY) if path.exists()]
    return [*processes, *mounts, *files]


def load_image(archive: Path) -> None:
    _for_each_node(lambda each: each.import_image(archive))


def kubectl(programs: Path, *arguments: str) -> subprocess.CompletedProcess:
    command: list[str | Path] = [programs / "kubectl", f"--kubeconfig={KUBECONFIG}", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def _place(network_process: int, programs: Path) -> Place:
    return Place(
        directory=_CONTROL_PLANE,
        programs=programs,
        address=network.CONTROL_PLANE_ADDRESS,
        network_namespace=Path(f"/proc/{network_process}/ns/net"),
        service_range=network.SERVICE_RANGE,
        service_address=network.API_SERVICE_ADDRESS,
        api_port=6443,
        etcd_port=2379,
        etcd_peer_port=2380,
        controller_manager_port=10257,
        scheduler_port=10259,
    )


def _network_process() -> int:
    process = _NETWORK.pid()
    if process is None:
        raise DevError("the control plane's network namespace is gone", log=_NETWORK.log)
    return process


def _network_is_apart() -> bool:
    """Whether the process has left our namespace, which must not be changed. It is recorded before
    it leaves."""
    return os.readlink(f"/proc/{_network_process()}/ns/net") != os.readlink("/proc/self/ns/net")


def _ready(programs: Path) -> bool:
    time.sleep(0.2)
    template = (
        "{range .items[*]}"
        '{.status.conditions[?(@.type=="Ready")].status} '
        '{.status.allocatable.nvidia\\.com/gpu}{"\\n"}'
        "{end}"
    )
    lines = kubectl(programs, "get", "nodes", "-o", f"jsonpath={template}").stdout.splitlines()
    return lines == [f"True {GPUS_PER_NODE}"] * NODE_COUNT
