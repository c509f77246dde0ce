"""A node: its own root file system and namespaces, with containerd, kubelet, kube-proxy and pretend
GPUs in them."""

import json
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from . import cgroups
from .control_plane import ControlPlane
from .daemon import Daemon, wait_until
from .errors import DevError
from .network import POD_RANGE, NodeNetwork
from .settings import CLUSTER_SOURCES, GPUS_PER_NODE

PAUSE_IMAGE = "localhost/pliant/pause:1"

# Paths inside the node.
_CONTAINERD_SOCKET = "/run/containerd/containerd.sock"
_CONFIG = "/etc/pliant"
UNHEALTHY_GPUS = "/run/pretend-gpus-unhealthy"

_CONTAINERD_CONFIG = f"""\
version = 2
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE_IMAGE}"
  disable_apparmor = true
  # Without CAP_SYS_RESOURCE nobody may lower a process's score.
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "/etc/cni/net.d"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = false
"""


def _network_config(network: NodeNetwork) -> dict:
    # Each pod has its own link to the node, and all traffic is routed, so replies always pass the
    # node's address translation, without the bridge netfilter module.
    addresses = {
        "type": "host-local",
        "ranges": [[{"subnet": network.pod_range}]],
        "routes": [{"dst": "0.0.0.0/0"}],
        "dataDir": "/run/cni",
    }
    return {"cniVersion": "1.0.0", "name": "pods", "plugins": [{"type": "ptp", "ipam": addresses}]}


def _kubelet_config(cgroup: str, network: NodeNetwork) -> dict:
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": network.address,
        "authentication": {
            "x509": {"clientCAFile": f"{_CONFIG}/ca.crt"},
            "webhook": {"enabled": True},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": f"{_CONFIG}/kubelet-server.crt",
        "tlsPrivateKeyFile": f"{_CONFIG}/kubelet-server.key",
        "containerRuntimeEndpoint": f"unix://{_CONTAINERD_SOCKET}",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": cgroup,
        "failCgroupV1": False,
        "failSwapOn": False,
        "enforceNodeAllocatable": ["pods"],
        "oomScoreAdj": 0,
        # There is no DNS service: look-ups fail at once, not after a timeout.
        "clusterDNS": ["127.0.0.1"],
        "resolvConf": "",
        "evictionHard": {
            "memory.available": "100Mi",
            "nodefs.available": "1%",
            "imagefs.available": "1%",
        },
        # Images come only by import: never remove one to save space.
        "imageGCHighThresholdPercent": 100,
        "nodeStatusUpdateFrequency": "5s",
        "shutdownGracePeriod": "0s",
    }


def _proxy_config(name: str) -> dict:
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "clientConnection": {"kubeconfig": f"{_CONFIG}/kube-proxy.kubeconfig"},
        "clusterCIDR": POD_RANGE,
        "hostnameOverride": name,
        "mode": "nftables",
        "oomScoreAdj": 0,
        # The size of the kernel's connection table can be set only in the machine's first network
        # namespace.
        "conntrack": {"maxPerCore": 0, "min": 0},
    }


@dataclass(frozen=True)
class NodeFiles:
    """Files on the host from which a node is made."""

    image: Path  # an unpacked node image
    programs: Path
    checkpoints: Path
    small_volume: Path  # shared by the nodes like `checkpoints`, and quickly full


class Node:
    """`directory`: all files that the node writes."""

    def __init__(self, number: int, directory: Path):
        self.name = f"node-{number}"
        self.network = NodeNetwork(number)
        self._directory = directory
        self._root = Daemon("root", directory / "run")
        self.containerd = Daemon("containerd", directory / "run")
        self._kubelet = Daemon("kubelet", directory / "run")
        self._proxy = Daemon("kube-proxy", directory / "run")
        self._gpus = Daemon("pretend-gpus", directory / "run")

    @property
    def daemons(self) -> list[Daemon]:
        return [self._root, self.containerd, self._kubelet, self._proxy, self._gpus]

    def start_root(self, files: NodeFiles) -> int:
        """Makes the node's namespaces and file system; returns a process that lives in them."""
        for folder in ("upper", "work", "root", "containerd", "kubelet"):
            (self._directory / folder).mkdir(parents=True, exist_ok=True)
        cgroups.create(self.name)
        namespaces = ["--mount", "--net", "--pid", "--ipc", "--uts"]
        script: list[str | Path] = [CLUSTER_SOURCES / "node-root", self.name, self._directory]
        # When the first process of its process namespace ends, everything in the node ends.
        self._root.start(
            [
                "unshare",
                *namespaces,
                "--fork",
                "--kill-child=KILL",
                *script,
                files.image,
                files.programs,
                files.checkpoints,
                files.small_volume,
            ]
        )
        wait_until(
            f"the file system of {self.name} is made",
            lambda: self.run(["test", "-e", "/run/node-ready"]).returncode == 0,
            10,
            [self._root],
        )
        return self._process()

    def start_containerd(self) -> None:
        self._write("/etc/containerd/config.toml", _CONTAINERD_CONFIG)
        self._write("/etc/cni/net.d/10-pods.conflist", json.dumps(_network_config(self.network)))
        self.containerd.start(self.command(["containerd"]))
        wait_until(
            f"containerd of {self.name} answers",
            lambda: self.run(["ctr", "version"]).returncode == 0,
            30,
            [self._root, self.containerd],
        )

    def import_image(self, archive: Path) -> None:
        """Loads an archive of an image into containerd."""
        with archive.open("rb") as source:
            result = subprocess.run(
                self.command(["ctr", "--namespace", "k8s.io", "images", "import", "-"]),
                stdin=source,
                capture_output=True,
                text=True,
                check=False,
            )
        if result.returncode != 0:
            raise DevError(
                f"{self.name} cannot load {archive}: {result.stderr.strip()}",
                log=self.containerd.log,
            )

    def images(self) -> set[str]:
        return set(
            self.run(["ctr", "--namespace", "k8s.io", "images", "list", "--quiet"]).stdout.split()
        )

    def start_kubernetes(self, control_plane: ControlPlane) -> None:
        authority = control_plane.authority
        server = authority.issue(
            f"{self.name}-server", self.name, hosts=[self.name, self.network.address]
        )
        user = f"system:node:{self.name}"
        for name, source in {
            "ca.crt": authority.certificate,
            "kubelet-server.crt": server[0],
            "kubelet-server.key": server[1],
            "kubelet.kubeconfig": control_plane.kubeconfig(self.name, user, "system:nodes"),
            "kube-proxy.kubeconfig": control_plane.kubeconfig("kube-proxy", "system:kube-proxy"),
        }.items():
            self._write(f"{_CONFIG}/{name}", source.read_text())
        self._write(
            f"{_CONFIG}/kubelet.json",
            json.dumps(_kubelet_config(cgroups.path_of(self.name), self.network)),
        )
        self._write(f"{_CONFIG}/kube-proxy.json", json.dumps(_proxy_config(self.name)))
        kubelet_flags = [
            f"--config={_CONFIG}/kubelet.json",
            f"--kubeconfig={_CONFIG}/kubelet.kubeconfig",
            f"--hostname-override={self.name}",
            f"--node-ip={self.network.address}",
        ]
        self._kubelet.start(self.command(["/opt/kubernetes/kubelet", *kubelet_flags]))
        self._proxy.start(
            self.command(["/opt/kubernetes/kube-proxy", f"--config={_CONFIG}/kube-proxy.json"])
        )
        self._gpus.start(
            self.command(
                [
                    "/opt/kubernetes/pretend-gpus",
                    f"--count={GPUS_PER_NODE}",
                    f"--unhealthy-file={UNHEALTHY_GPUS}",
                ]
            )
        )

    def stop(self) -> None:
        self._root.stop(first=signal.SIGKILL)
        for daemon in self.daemons:
            daemon.stop()

    def command(self, inside: Sequence[str | Path]) -> list[str]:
        """The host's command line for a command inside the node."""
        process = self._process()
        namespaces = ["--mount", "--net", "--ipc", "--uts", "--root", "--wdns=/"]
        return [
            *(
                "nsenter",
                f"--target={process}",
                *namespaces,
                f"--pid=/proc/{process}/ns/pid_for_children",
                "--",
            ),
            *map(str, inside),
        ]

    def run(self, inside: Sequence[str | Path]) -> subprocess.CompletedProcess:
        return subprocess.run(self.command(inside), capture_output=True, text=True, check=False)

    def _process(self) -> int:
        process = self._root.pid()
        if process is None:
            raise DevError(f"{self.name} does not run", log=self._root.log)
        return process

    def _write(self, path: str, text: str) -> None:
        """Writes a file in the node, readable only by its root user, through the node's own view of
        its disk."""
        script = 'umask 077; mkdir -p "$(dirname "$1")"; cat > "$1"'
        subprocess.run(
            self.command(["sh", "-ec", script, "sh", path]), input=text, text=True, check=True
        )
