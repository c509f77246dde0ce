"""The cluster's addresses, and its network: one namespace for the control plane, with a bridge, and
one for each node.

        host ── veth ──┐
                     bridge (control plane) ── veth ── node-1 ── pods of node-1
                       └─────────────────────── veth ── node-2 ── pods of node-2

A network namespace and its interfaces disappear with the last process in it: nothing needs to be
cleaned up.
"""

import contextlib
import json
import subprocess
from dataclasses import dataclass

from .errors import DevError

NODE_RANGE = "10.213.0.0/24"
CONTROL_PLANE_ADDRESS = "10.213.0.1"
HOST_ADDRESS = "10.213.0.254"
POD_RANGE = "10.214.0.0/16"
SERVICE_RANGE = "10.215.0.0/24"
API_SERVICE_ADDRESS = "10.215.0.1"

HOST_INTERFACE = "pliant-host"


@dataclass(frozen=True)
class NodeNetwork:
    """The addresses of a node. Nodes are numbered from 1."""

    number: int

    @property
    def address(self) -> str:
        return f"10.213.0.{10 + self.number}"

    @property
    def pod_range(self) -> str:
        return f"10.214.{self.number}.0/24"


def _ip(*arguments: str, inside: int | None = None) -> str:
    """Runs `ip`, in the network namespace of the process `inside` if it is given."""
    command = ["nsenter", f"--net=/proc/{inside}/ns/net"] if inside else []
    result = subprocess.run(
        [*command, "ip", *arguments], capture_output=True, text=True, check=False
    )
    if result.returncode != 0:
        raise DevError(f"ip {' '.join(arguments)} failed: {result.stderr.strip()}")
    return result.stdout


def overlapping_routes() -> list[str]:
    """Routes of the host into the cluster's ranges, apart from the cluster's own."""
    prefixes = ("10.213.0.", "10.214.", "10.215.0.")
    return [
        route["dst"]
        for route in json.loads(_ip("-json", "route", "show", "table", "all") or "[]")
        if route.get("dst", "").startswith(prefixes) and route.get("dev") != HOST_INTERFACE
    ]


def connect_control_plane(process: int) -> None:
    """Gives the namespace of `process` the bridge, and the host an interface on it."""
    _ip("link", "set", "lo", "up", inside=process)
    _ip("link", "add", "nodes", "type", "bridge", inside=process)
    _ip("address", "add", f"{CONTROL_PLANE_ADDRESS}/24", "dev", "nodes", inside=process)
    _ip("link", "set", "nodes", "up", inside=process)
    _ip(
        "link", "add", HOST_INTERFACE, "type", "veth", "peer", "name", "host", "netns", str(process)
    )
    _ip("address", "add", f"{HOST_ADDRESS}/24", "dev", HOST_INTERFACE)
    _ip("link", "set", HOST_INTERFACE, "up")
    _ip("link", "set", "host", "master", "nodes", "up", inside=process)


def connect_node(
    process: int, control_plane: int, network: NodeNetwork, others: list[NodeNetwork]
) -> None:
    """Connects the namespace of `process` to the bridge and adds the routes to pods. It may replace
    a namespace that has ended."""
    port = f"node-{network.number}"
    # The kernel takes a while to remove the interfaces of a namespace that has ended.
    if port in _ip("-brief", "link", "show", inside=control_plane):
        with contextlib.suppress(DevError):  # it has been removed meanwhile
            _ip("link", "delete", port, inside=control_plane)
    _ip("link", "set", "lo", "up", inside=process)
    _ip(
        "link",
        "add",
        "eth0",
        "type",
        "veth",
        "peer",
        "name",
        port,
        "netns",
        str(control_plane),
        inside=process,
    )
    _ip("address", "add", f"{network.address}/24", "dev", "eth0", inside=process)
    _ip("link", "set", "eth0", "up", inside=process)
    _ip("link", "set", port, "master", "nodes", "up", inside=control_plane)
    # Service addresses need a route, although kube-proxy replaces them before it is used.
    _ip("route", "add", "default", "via", CONTROL_PLANE_ADDRESS, inside=process)
    for other in others:
        _ip("route", "add", other.pod_range, "via", other.address, inside=process)
    _ip("route", "replace", network.pod_range, "via", network.address, inside=control_plane)
