"""Selects the story's cluster: the local one of ./dev, or the current one of the kubeconfig."""

import argparse
import os
import shutil
from collections.abc import Mapping, Sequence

from .errors import StoryError
from .kubectl import Kubectl
from .stage import GPUS_TOTAL, NAMESPACE, OPERATOR_NAMESPACE, Stage

GPU = "nvidia.com/gpu"
LOCAL, CURRENT = "local", "current"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("where")
    group.add_argument(
        "--cluster",
        choices=[LOCAL, CURRENT],
        default=LOCAL,
        help="local: a cluster that ./dev starts on this machine (default). current: the current cluster of the "
        "kubeconfig, in which Pliant is installed (docs/install.md); nothing is built",
    )
    group.add_argument("--learner-image", metavar="IMAGE", help="current: image of Pliant's learner, for its nodes to pull")
    group.add_argument("--pytorch-image", metavar="IMAGE", help="current: image for PyTorch programs, for e2e")
    group.add_argument("--tensorflow-image", metavar="IMAGE", help="current: image for Keras programs, for e2e")
    group.add_argument(
        "--checkpoint-claim",
        metavar="NAME",
        help=f"current: a ReadWriteMany claim in namespace {NAMESPACE} for the trainings' checkpoints",
    )


def stage_of(arguments: argparse.Namespace) -> Stage:
    """The stage. A StoryError names what the cluster or the command line lacks."""
    if arguments.cluster == LOCAL:
        for name in ("learner_image", "pytorch_image", "tensorflow_image", "checkpoint_claim"):
            if getattr(arguments, name):
                raise StoryError(f"--{name.replace('_', '-')} is for --cluster={CURRENT}")
        return Stage.from_environment()
    for name in ("learner_image", "checkpoint_claim"):
        if not getattr(arguments, name):
            raise StoryError(f"--cluster={CURRENT} needs --{name.replace('_', '-')}")
    program = os.environ.get("PLIANT_KUBECTL") or shutil.which("kubectl")
    if program is None:
        raise StoryError("there is no kubectl: install it, or name it by PLIANT_KUBECTL")
    everywhere = Kubectl(program, "default")
    _check_operator(everywhere)
    nodes = everywhere.json("get", "nodes")["items"]
    pods = everywhere.json("get", "pods", "--all-namespaces", "--field-selector=status.phase!=Succeeded")["items"]
    _check_gpus(free_gpus(nodes, pods))
    return Stage(
        kubectl=Kubectl(program, NAMESPACE),
        operator_kubectl=Kubectl(program, OPERATOR_NAMESPACE),
        monitoring_kubectl=None,
        learner_image=arguments.learner_image,
        pytorch_image=arguments.pytorch_image or "",
        tensorflow_image=arguments.tensorflow_image or "",
        prometheus_image="",
        chromium="",
        pictures="",
        dev=None,
        checkpoint_volume={"persistentVolumeClaim": {"claimName": arguments.checkpoint_claim}},
    )


def free_gpus(nodes: Sequence[Mapping], pods: Sequence[Mapping]) -> int:
    """GPUs of schedulable nodes, minus those held by others' pods. Pods of earlier stories do not count: they are
    deleted. Pure."""
    usable = {
        node["metadata"]["name"]: _gpus(node["status"].get("allocatable", {})) for node in nodes if _takes_pods(node)
    }
    held = sum(
        _gpus(container.get("resources", {}).get("requests", {}))
        for pod in pods
        if pod["spec"].get("nodeName") in usable
        and pod["status"].get("phase") not in ("Succeeded", "Failed")
        and pod["metadata"]["namespace"] != NAMESPACE
        for container in pod["spec"]["containers"]
    )
    return sum(usable.values()) - held


def _check_operator(kubectl: Kubectl) -> None:
    crd = kubectl.attempt("get", "crd", "elastictrainingjobs.pliant.dev")
    if crd.returncode != 0:
        raise StoryError(f"Pliant is not installed in the current cluster (docs/install.md): {crd.stderr.strip()}")
    operator = kubectl.json(
        "--namespace", OPERATOR_NAMESPACE, "get", "deployments", "-l", "app.kubernetes.io/name=pliant"
    )
    if not any(each["status"].get("availableReplicas") for each in operator["items"]):
        raise StoryError(f"no operator is available in namespace {OPERATOR_NAMESPACE}: look at its pods there")


def _check_gpus(free: int) -> None:
    if free != GPUS_TOTAL:
        raise StoryError(
            f"the story needs exactly {GPUS_TOTAL} free GPUs, and the current cluster has {free}: "
            "if there are more, cordon nodes; if there are fewer, end the pods that hold them"
        )


def _takes_pods(node: Mapping) -> bool:
    ready = any(each["type"] == "Ready" and each["status"] == "True" for each in node["status"].get("conditions", ()))
    return ready and not node["spec"].get("unschedulable", False)


def _gpus(resources: Mapping) -> int:
    return int(resources.get(GPU, 0))
