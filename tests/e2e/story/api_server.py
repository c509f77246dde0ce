"""Reads from the API server over one kept connection. A kubectl process per second would take the trainings' CPU."""

import base64
import http.client
import json
import ssl
import tempfile
import urllib.parse
from collections.abc import Mapping
from pathlib import Path

from .kubectl import Kubectl


class ApiUnavailable(Exception):
    """The server, or the pod that it proxies to, did not answer the request."""


class ApiServer:
    """The server and the credentials of kubectl's current context. Not thread-safe."""

    def __init__(self, kubectl: Kubectl) -> None:
        config = kubectl.json("config", "view", "--raw", "--minify", "--flatten")
        cluster = config["clusters"][0]["cluster"]
        user = config["users"][0]["user"]
        address = urllib.parse.urlsplit(cluster["server"])
        self._headers = {"Accept": "application/json"}
        if "token" in user:
            self._headers["Authorization"] = f"Bearer {user['token']}"
        self._connection = http.client.HTTPSConnection(
            address.hostname, address.port or 443, timeout=10, context=_tls_context(cluster, user)
        )

    def get(self, path: str) -> Mapping:
        try:
            self._connection.request("GET", path, headers=self._headers)
            response = self._connection.getresponse()
            body = response.read()
            if response.status != http.HTTPStatus.OK:
                raise ApiUnavailable(f"GET {path}: {response.status}")
            return json.loads(body)
        except (OSError, http.client.HTTPException, json.JSONDecodeError) as error:
            self._connection.close()  # the next request connects again
            raise ApiUnavailable(f"GET {path}: {error}") from error

    def items(self, path: str) -> list[Mapping]:
        return self.get(path)["items"]


def _tls_context(cluster: Mapping, user: Mapping) -> ssl.SSLContext:
    authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
    context = ssl.create_default_context(cadata=authority)
    if "client-certificate-data" in user:
        with tempfile.TemporaryDirectory() as scratch:
            # Python's ssl module reads certificates from files only.
            files = []
            for name in ("client-certificate-data", "client-key-data"):
                files.append(Path(scratch, name))
                files[-1].touch(mode=0o600)
                files[-1].write_bytes(base64.b64decode(user[name]))
            context.load_cert_chain(*files)
    return context
