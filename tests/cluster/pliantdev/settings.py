"""Folders, and the versions of the local cluster's components."""

import os
from pathlib import Path

REPO = Path(__file__).resolve().parents[3]
CLUSTER_SOURCES = REPO / "tests" / "cluster"

# Results that can be rebuilt from their inputs, keyed by a hash of these; shared by all checkouts
# on the machine.
CACHE = Path(os.environ.get("PLIANT_CACHE", "/var/cache/pliant"))
# State of the running cluster: process ids, certificates, logs, the nodes' disks, checkpoints.
STATE = Path(os.environ.get("PLIANT_STATE", "/var/lib/pliant"))

DEBIAN_RELEASE = "trixie"
KUBERNETES_VERSION = "v1.34.4"
HELM_VERSION = "v3.22.0"

GPUS_PER_NODE = 4
