"""Lists the jobs in pages. `kubectl get --output=json` would hold all jobs in its memory and print them again with
indents: for 15,000 jobs that takes most of the time, and a gigabyte."""

from __future__ import annotations

import gc
import time
from urllib.parse import quote

from .errors import CommandError
from .job import Job, read_job
from .kubectl import JOBS, Kubectl, decoded, items_of
from .names import is_name

_PATH = "/apis/pliant.dev/v1alpha1"
_NAMESPACE = "{.contexts[0].context.namespace}"  # in a kubeconfig
_PAGE = 1000  # jobs
_MAX_CONTINUE_CHARS = 1 << 12
_MAX_BYTES = 1 << 29  # of all pages
_SECONDS = 300.0  # for all pages


def list_jobs(kubectl: Kubectl, seconds: float = _SECONDS) -> list[Job]:
    """The jobs of the connection's namespaces. A page is forgotten when its jobs are read."""
    path = _path(kubectl)
    if path is None:
        return [read_job(each) for each in kubectl.list(JOBS, seconds=seconds)]
    # Values of JSON have no cycles, and to look for some takes a third of the time.
    collects = gc.isenabled()
    gc.disable()
    try:
        return _all_pages(kubectl, path, seconds)
    finally:
        if collects:
            gc.enable()


def _all_pages(kubectl: Kubectl, path: str, seconds: float) -> list[Job]:
    deadline = time.monotonic() + seconds
    jobs: list[Job] = []
    size, token = 0, ""
    while True:
        left = max(deadline - time.monotonic(), 0.1)
        answer = kubectl.get_raw(f"{path}?limit={_PAGE}" + (f"&continue={quote(token, safe='')}" if token else ""), left)
        size += len(answer)
        page = decoded(answer, f"kubectl get {JOBS}")
        jobs += map(read_job, items_of(page, f"kubectl get {JOBS}"))
        token = _continue(page)
        if not token:
            return jobs
        if size > _MAX_BYTES:
            raise CommandError(f"the jobs have more than {_MAX_BYTES >> 20} MiB: narrow them with -n")
        if time.monotonic() > deadline:
            raise CommandError(f"the API server has not listed all jobs in {seconds:g} s: narrow them with -n")


def _path(kubectl: Kubectl) -> str | None:
    """None: kubectl alone knows the namespace, for example that of the pod in which it runs."""
    connection = kubectl.connection
    if connection.all_namespaces:
        return f"{_PATH}/elastictrainingjobs"
    namespace = connection.namespace
    if namespace is None:
        try:
            said = kubectl.call(["config", "view", "--minify", f"--output=jsonpath={_NAMESPACE}"], scope=())
        except CommandError:
            return None
        namespace = said.decode(errors="replace") or "default"
    return f"{_PATH}/namespaces/{namespace}/elastictrainingjobs" if is_name(namespace) else None


def _continue(page: object) -> str:
    metadata = page.get("metadata") if isinstance(page, dict) else None
    token = metadata.get("continue") if isinstance(metadata, dict) else None
    return token if isinstance(token, str) and len(token) <= _MAX_CONTINUE_CHARS else ""
