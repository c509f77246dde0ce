"""The machine that runs ./dev: its programs, missing packages, and package mirrors."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from .errors import DevError
from .progress import log_file, phase, run_logged

CA_BUNDLE = Path("/etc/ssl/certs/ca-certificates.crt")

# Programs that ./dev needs on the host, and their Debian packages.
_PACKAGES = {
    "buildah": "buildah",
    "ip": "iproute2",
    "mmdebstrap": "mmdebstrap",
    "mount": "mount",
    "/usr/lib/podman/netavark": "netavark",  # buildah requires it
    "nsenter": "util-linux",
    "openssl": "openssl",
    "setpriv": "util-linux",
    "unshare": "util-linux",
}

# Settings by which package clients find their registries. Builds get those that the machine has.
_CLIENT_SETTINGS = (
    "http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY "
    "GOPROXY GONOPROXY GOSUMDB GONOSUMDB GOPRIVATE "
    "PIP_INDEX_URL PIP_EXTRA_INDEX_URL PIP_TRUSTED_HOST"
).split()


def client_settings() -> dict[str, str]:
    return {name: os.environ[name] for name in _CLIENT_SETTINGS if os.environ.get(name)}


def debian_mirror(apt: Path = Path("/etc/apt")) -> str:
    """The mirror of this machine's own packages, else Debian's."""
    for file in [*apt.glob("sources.list"), *sorted(apt.glob("sources.list.d/*"))]:
        # Matches the one-line format and the format with a `URIs:` field.
        for line in file.read_text(errors="replace").splitlines():
            if not re.match(r"\s*(deb\s|URIs:)", line):
                continue
            match = re.search(r"https?://\S+/debian/?(?=\s|$)", line)
            if match:
                return match.group(0)
    return "http://deb.debian.org/debian"


def missing_packages(container_engine: bool) -> list[str]:
    """Debian packages that are missing. `container_engine`: one is available, so programs that
    build images without one are not needed."""
    needed = {
        package
        for program, package in _PACKAGES.items()
        if not shutil.which(program)
        and not (container_engine and package in ("buildah", "mmdebstrap", "netavark"))
    }
    return sorted(needed)


def browser() -> str:
    """The program of Chromium, which is installed if it is missing."""
    install_packages([] if shutil.which("chromium") else ["chromium"])
    return shutil.which("chromium") or "chromium"


def install_packages(packages: list[str]) -> None:
    if not packages:
        return
    if not shutil.which("apt-get"):
        raise DevError(
            f"programs are missing and this is no Debian: {' '.join(packages)}",
            remedy="install them by hand",
        )
    log = log_file("apt")
    with phase(f"Installing packages on this machine: {' '.join(packages)}"):
        quiet = {"DEBIAN_FRONTEND": "noninteractive"}
        run_logged(["apt-get", "update"], log, "apt-get update", env=quiet)
        command = ["apt-get", "install", "-y", "--no-install-recommends", *packages]
        rehearsal = subprocess.run(
            [*command, "--simulate"], capture_output=True, text=True, check=False
        )
        removed = re.findall(r"^Remv (\S+)", rehearsal.stdout, re.MULTILINE)
        if removed:
            raise DevError(
                f"{' '.join(removed)} conflicts with {' '.join(packages)}: apt would remove it",
                remedy="remove it yourself if you can do without it",
            )
        run_logged(command, log, "apt-get install", env=quiet, append=True)
