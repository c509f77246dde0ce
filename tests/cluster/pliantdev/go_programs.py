"""Kubernetes, etcd, the pretend GPUs and helm, compiled from their Go modules inside an image of their own."""

import os
from pathlib import Path

from .content_hash import content_hash
from .errors import DevError
from .settings import CACHE, CLUSTER_SOURCES, HELM_VERSION, KUBERNETES_VERSION

_NAMES = (
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-proxy",
    "kube-scheduler",
    "kubectl",
    "kubelet",
    "pretend-gpus",
)


def folder() -> Path:
    """Where the programs lie once they are built; the name follows from their sources."""
    sources = content_hash(CLUSTER_SOURCES / "kubernetes", CLUSTER_SOURCES / "helm", KUBERNETES_VERSION, HELM_VERSION)
    return CACHE / f"go-programs-{sources}"


def existing() -> Path:
    programs = folder()
    if not programs.exists():
        raise DevError(f"the Kubernetes programs are not built yet (no {programs})", remedy="./dev build")
    return programs
