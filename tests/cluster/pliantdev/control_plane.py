"""etcd and the Kubernetes control plane, for the two-node cluster and, smaller, for integration
tests on loopback ports."""

import contextlib
import functools
import shutil
import socket
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from .daemon import Daemon, wait_until
from .kubeconfig import write_kubeconfig
from .pki import Authority

# A test's control plane keeps its files in a subfolder of this name.
_LOOPBACK_FOLDER = "control-plane"


@dataclass(frozen=True)
class Place:
    """Where a control plane runs, and its addresses."""

    directory: Path
    programs: Path  # the folder with etcd, kube-apiserver, ...
    address: str
    network_namespace: Path | None  # None: the host's
    service_range: str
    service_address: str  # of the API server inside the cluster, the first address in the range
    api_port: int
    etcd_port: int
    etcd_peer_port: int
    controller_manager_port: int
    scheduler_port: int | None  # None: no scheduler

    def sharing(self, flag: str) -> list[str]:
        """The flag with which a server may take a port of _held_ports."""
        return [] if self.network_namespace else [flag]


@contextlib.contextmanager
def _held_ports(count: int) -> Iterator[list[int]]:
    """Ports of the loopback interface that no other process can get meanwhile, but those of this
    user that share them knowingly (SO_REUSEPORT)."""
    with contextlib.ExitStack() as sockets:
        held = [sockets.enter_context(socket.socket()) for _ in range(count)]
        for each in held:
            each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            each.bind(("127.0.0.1", 0))
        yield [each.getsockname()[1] for each in held]


def _loopback_place(directory: Path, programs: Path, ports: Sequence[int]) -> Place:
    """A control plane for tests of clients: no nodes, no scheduler."""
    api, etcd, peer, controllers = ports
    return Place(
        directory=directory,
        programs=programs,
        address="127.0.0.1",
        network_namespace=None,
        service_range="10.96.0.0/24",
        service_address="10.96.0.1",
        api_port=api,
        etcd_port=etcd,
        etcd_peer_port=peer,
        controller_manager_port=controllers,
        scheduler_port=None,
    )


def daemons(directory: Path) -> list[Daemon]:
    """The processes of the control plane with its files in this folder, in their starting order."""
    names = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
    return [Daemon(name, directory / "run") for name in names]


def stop(directory: Path) -> None:
    # A short grace period: the API server would wait a minute for its watchers, none of which
    # outlives it here.
    for daemon in reversed(daemons(directory)):
        daemon.stop(grace_seconds=1.0)


class ControlPlane:
    """A control plane. All its files are below its place's directory."""

    def __init__(self, place: Place):
        self._place = place
        self.admin_kubeconfig = place.directory / "admin.kubeconfig"
        self.etcd, self.api_server, self.controller_manager, self.scheduler = daemons(
            place.directory
        )

    @functools.cached_property
    def authority(self) -> Authority:
        return Authority(self._place.directory / "pki")

    @property
    def server(self) -> str:
        return f"https://{self._place.address}:{self._place.api_port}"

    def start(self) -> None:
        """Starts it. Returns when pods can be created in the default namespace."""
        place = self._place
        self._start_etcd()
        # Waits, because the API server retries only after 20 s.
        etcd = f"https://{place.address}:{place.etcd_port}/health"
        wait_until("etcd answers", lambda: self._get(etcd) is not None, 60, [self.etcd])
        self._start_api_server()
        self.kubeconfig("admin", "kubernetes-admin", "system:masters")
        needs = [self.etcd, self.api_server]
        wait_until(
            "the API server is ready",
            lambda: self._get(f"{self.server}/readyz") is not None,
            90,
            needs,
        )
        self._start_client(
            self.controller_manager, place.controller_manager_port, self._controller_manager_flags()
        )
        if place.scheduler_port:
            self._start_client(self.scheduler, place.scheduler_port, ["--leader-elect=false"])
        service_account = f"{self.server}/api/v1/namespaces/default/serviceaccounts/default"
        wait_until(
            "the default service account exists",
            lambda: self._get(service_account) is not None,
            60,
            [*needs, self.controller_manager],
        )

    def stop(self) -> None:
        stop(self._place.directory)

    def kubeconfig(self, file: str, user: str, group: str = "") -> Path:
        credentials = self.authority.issue(file, user, group)
        path = self._place.directory / f"{file}.kubeconfig"
        return write_kubeconfig(path, self.server, self.authority.certificate, user, credentials)

    def _start(self, daemon: Daemon, flags: list[str]) -> None:
        command: list[str | Path] = [self._place.programs / daemon.name, *flags]
        if self._place.network_namespace:
            command = ["nsenter", f"--net={self._place.network_namespace}", *command]
        daemon.start(command)

    def _start_client(self, daemon: Daemon, port: int, flags: list[str]) -> None:
        kubeconfig = self.kubeconfig(daemon.name, f"system:{daemon.name}")
        certificate, key = self.authority.issue(daemon.name, f"system:{daemon.name}")
        self._start(
            daemon,
            [
                f"--kubeconfig={kubeconfig}",
                f"--authentication-kubeconfig={kubeconfig}",
                f"--authorization-kubeconfig={kubeconfig}",
                f"--bind-address={self._place.address}",
                f"--secure-port={port}",
                *self._place.sharing("--permit-port-sharing"),
                f"--tls-cert-file={certificate}",
                f"--tls-private-key-file={key}",
                f"--client-ca-file={self.authority.certificate}",
                *flags,
            ],
        )

    def _start_etcd(self) -> None:
        place = self._place
        certificate, key = self.authority.issue("etcd", "etcd", hosts=[place.address])
        client, peer = (
            f"https://{place.address}:{port}" for port in (place.etcd_port, place.etcd_peer_port)
        )
        flags = [
            f"--data-dir={place.directory / 'etcd'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            *place.sharing("--socket-reuse-port"),
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            # The data are deleted with the cluster: they need not survive a loss of power.
            "--unsafe-no-fsync",
            "--log-level=warn",
        ]
        for prefix in ("", "peer-"):
            flags += [
                f"--{prefix}cert-file={certificate}",
                f"--{prefix}key-file={key}",
                f"--{prefix}trusted-ca-file={self.authority.certificate}",
                f"--{prefix}client-cert-auth",
            ]
        self._start(self.etcd, flags)

    def _start_api_server(self) -> None:
        place = self._place
        names = ["kubernetes", "kubernetes.default", "kubernetes.default.svc", "localhost"]
        hosts = [*names, place.address, place.service_address, "127.0.0.1"]
        certificate, key = self.authority.issue("kube-apiserver", "kube-apiserver", hosts=hosts)
        etcd_certificate, etcd_key = self.authority.issue("etcd-client", "kube-apiserver")
        kubelet_certificate, kubelet_key = self.authority.issue(
            "kubelet-client", "kube-apiserver", "system:masters"
        )
        public, private = self.authority.key_pair("service-accounts")
        self._start(
            self.api_server,
            [
                f"--bind-address={place.address}",
                f"--advertise-address={place.address}",
                f"--secure-port={place.api_port}",
                *place.sharing("--permit-port-sharing"),
                f"--tls-cert-file={certificate}",
                f"--tls-private-key-file={key}",
                f"--client-ca-file={self.authority.certificate}",
                f"--etcd-servers=https://{place.address}:{place.etcd_port}",
                f"--etcd-cafile={self.authority.certificate}",
                f"--etcd-certfile={etcd_certificate}",
                f"--etcd-keyfile={etcd_key}",
                f"--kubelet-certificate-authority={self.authority.certificate}",
                f"--kubelet-client-certificate={kubelet_certificate}",
                f"--kubelet-client-key={kubelet_key}",
                "--kubelet-preferred-address-types=InternalIP",
                "--service-account-issuer=https://kubernetes.default.svc",
                f"--service-account-key-file={public}",
                f"--service-account-signing-key-file={private}",
                f"--service-cluster-ip-range={place.service_range}",
                "--authorization-mode=Node,RBAC",
                "--enable-admission-plugins=NodeRestriction",
                "--allow-privileged=true",
                # A loopback address cannot be the endpoint of the `kubernetes` service.
                f"--endpoint-reconciler-type={'lease' if place.network_namespace else 'none'}",
            ],
        )

    def _controller_manager_flags(self) -> list[str]:
        _, private = self.authority.key_pair("service-accounts")
        return [
            f"--service-account-private-key-file={private}",
            f"--root-ca-file={self.authority.certificate}",
            f"--service-cluster-ip-range={self._place.service_range}",
            "--use-service-account-credentials",
            "--leader-elect=false",
            # Time after which a lost node is noticed.
            "--node-monitor-grace-period=20s",
        ]

    def _get(self, url: str) -> str | None:
        """The answer of a server of the control plane; None while it does not answer."""
        context = ssl.create_default_context(cafile=str(self.authority.certificate))
        context.load_cert_chain(
            *self.authority.issue("admin", "kubernetes-admin", "system:masters")
        )
        try:
            with urllib.request.urlopen(url, timeout=5, context=context) as response:
                return response.read().decode()
        except (urllib.error.URLError, OSError):
            return None


def loopback_up(directory: Path, programs: Path) -> Path:
    """Starts a new control plane for tests, in its own folder, and returns the administrator's
    kubeconfig."""
    loopback_down(directory)
    with _held_ports(4) as ports:
        place = _loopback_place(directory / _LOOPBACK_FOLDER, programs, ports)
        control_plane = ControlPlane(place)
        try:
            control_plane.start()
        except BaseException:
            control_plane.stop()
            raise
    return control_plane.admin_kubeconfig


def loopback_down(directory: Path) -> None:
    """Ends the control plane in this folder, if there is one, and removes its files."""
    stop(directory / _LOOPBACK_FOLDER)
    shutil.rmtree(directory / _LOOPBACK_FOLDER, ignore_errors=True)
