"""Self-contained kubeconfig files, which can be copied and mounted anywhere."""

import base64
from pathlib import Path

_TEMPLATE = """\
apiVersion: v1
kind: Config
current-context: {user}@pliant
contexts:
- name: {user}@pliant
  context: {{cluster: pliant, user: "{user}"}}
clusters:
- name: pliant
  cluster:
    server: {server}
    certificate-authority-data: {authority}
users:
- name: "{user}"
  user:
    client-certificate-data: {certificate}
    client-key-data: {key}
"""


def write_kubeconfig(
    path: Path, server: str, authority: Path, user: str, credentials: tuple[Path, Path]
) -> Path:
    def inline(file: Path) -> str:
        return base64.b64encode(file.read_bytes()).decode()

    certificate, key = credentials
    path.touch(mode=0o600)
    path.write_text(
        _TEMPLATE.format(
            user=user,
            server=server,
            authority=inline(authority),
            certificate=inline(certificate),
            key=inline(key),
        )
    )
    return path
