"""Where things lie, and the versions that the local cluster is made of."""

import os
from pathlib import Path

REPO = Path(__file__).resolve().parents[3]
CLUSTER_SOURCES = REPO / "tests" / "cluster"

# What can be made again from its inputs, keyed by a hash of them; shared by all checkouts on the
# machine.
CACHE = Path(os.environ.get("PLIANT_CACHE", "/var/cache/pliant"))
# What belongs to the cluster that runs now: process ids, certificates, logs, the nodes' disks,
# checkpoints.
STATE = Path(os.environ.get("PLIANT_STATE", "/var/lib/pliant"))

DEBIAN_RELEASE = "trixie"
KUBERNETES_VERSION = "v1.34.4"
HELM_VERSION = "v3.22.0"

GPUS_PER_NODE = 4
