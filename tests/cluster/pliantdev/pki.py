"""The cluster's own certificate authority, in a folder, made with the openssl command."""

import secrets
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path

from .errors import DevError

_VALID_DAYS = "365"


def _openssl(*arguments: str | Path) -> None:
    result = subprocess.run(
        ["openssl", *map(str, arguments)], capture_output=True, text=True, check=False
    )
    if result.returncode != 0:
        raise DevError(f"openssl {arguments[0]} failed: {result.stderr.strip()}")


def _new_key(path: Path) -> None:
    _openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", path)
    path.chmod(0o600)


def _alternative_name(host: str) -> str:
    return f"IP:{host}" if host.replace(".", "").isdigit() else f"DNS:{host}"


class Authority:
    """Issues certificates into its folder. Existing ones are used again."""

    def __init__(self, directory: Path, name: str = "pliant-local-cluster"):
        self.directory = directory
        self.certificate = directory / "ca.crt"
        self._key = directory / "ca.key"
        self._lock = threading.Lock()  # two threads may ask for the same certificate
        if not self.certificate.exists():
            directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            _new_key(self._key)
            # fmt: off
            _openssl("req", "-x509", "-new", "-key", self._key, "-days", _VALID_DAYS,
                     "-subj", f"/CN={name}",
                     "-addext", "keyUsage=critical,digitalSignature,keyCertSign,cRLSign",
                     "-out", self.certificate)
            # fmt: on

    def issue(
        self, file: str, name: str, organization: str = "", hosts: Sequence[str] = ()
    ) -> tuple[Path, Path]:
        """A certificate for client and server use, and its key. Kubernetes reads `name` as the user
        and `organization` as its group. `hosts`: the server's DNS names and IP addresses."""
        with self._lock:
            certificate, key = self.directory / f"{file}.crt", self.directory / f"{file}.key"
            if not certificate.exists():
                self._issue(certificate, key, name, organization, hosts)
        return certificate, key

    def _issue(
        self, certificate: Path, key: Path, name: str, organization: str, hosts: Sequence[str]
    ) -> None:
        _new_key(key)
        subject = (f"/O={organization}" if organization else "") + f"/CN={name}"
        extensions = [
            "keyUsage=critical,digitalSignature",
            "extendedKeyUsage=clientAuth,serverAuth",
        ]
        if hosts:
            extensions.append("subjectAltName=" + ",".join(map(_alternative_name, hosts)))
        with tempfile.TemporaryDirectory() as scratch:
            request, extension_file = Path(scratch, "csr"), Path(scratch, "ext")
            extension_file.write_text("\n".join(extensions) + "\n")
            _openssl("req", "-new", "-key", key, "-subj", subject, "-out", request)
            unfinished = certificate.with_suffix(".new")
            # fmt: off
            _openssl("x509", "-req", "-in", request, "-CA", self.certificate, "-CAkey", self._key,
                     "-set_serial", f"0x{secrets.token_hex(16)}",
                     "-days", _VALID_DAYS, "-extfile", extension_file, "-out", unfinished)
            # fmt: on
            unfinished.rename(certificate)

    def key_pair(self, file: str) -> tuple[Path, Path]:
        """A public and a private key without a certificate, for example for service account
        tokens."""
        public, private = self.directory / f"{file}.pub", self.directory / f"{file}.key"
        if not public.exists():
            _new_key(private)
            _openssl("pkey", "-in", private, "-pubout", "-out", public)
        return public, private
