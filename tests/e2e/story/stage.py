"""The story's cluster, as ./dev describes it, and the demo's manifests with this build's image."""

import copy
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from . import pace, reference
from .errors import StoryError
from .kubectl import Kubectl

_REPO = Path(__file__).resolve().parents[3]
DEMO = _REPO / "manifests" / "demo"
NAMESPACE = "pliant-demo"
OPERATOR_NAMESPACE = "pliant-system"
MONITORING_NAMESPACE = "pliant-monitoring"
GPUS_TOTAL = 8
# Marks the namespaces and the queue of a team; its value is the name of the team.
TEAM_LABEL = "pliant-demo/team"

_EPOCHS = "--epochs="


@dataclass(frozen=True)
class Stage:
    kubectl: Kubectl
    operator_kubectl: Kubectl
    monitoring_kubectl: Kubectl | None  # None: the cluster has its own
    learner_image: str
    pytorch_image: str  # for PyTorch programs; empty: there is none
    tensorflow_image: str  # for Keras programs; empty: there is none
    prometheus_image: str  # empty: there is none
    chromium: str  # program of a browser; empty: there is none
    pictures: str  # folder for its pictures
    dev: str | None  # path of ./dev, which gives access to the nodes; None: no access
    checkpoint_volume: Mapping | None  # None: the manifests' own

    @staticmethod
    def from_environment() -> "Stage":
        def variable(name: str) -> str:
            if name not in os.environ:
                raise StoryError(f"{name} is not set: run this by ./dev")
            return os.environ[name]

        program = variable("PLIANT_KUBECTL")
        return Stage(
            kubectl=Kubectl(program, NAMESPACE),
            operator_kubectl=Kubectl(program, OPERATOR_NAMESPACE),
            monitoring_kubectl=Kubectl(program, MONITORING_NAMESPACE),
            learner_image=variable("PLIANT_LEARNER_IMAGE"),
            pytorch_image=os.environ.get("PLIANT_PYTORCH_IMAGE", ""),
            tensorflow_image=os.environ.get("PLIANT_TENSORFLOW_IMAGE", ""),
            prometheus_image=os.environ.get("PLIANT_PROMETHEUS_IMAGE", ""),
            chromium=os.environ.get("PLIANT_CHROMIUM", ""),
            pictures=os.environ.get("PLIANT_PICTURES", ""),
            dev=os.environ.get("PLIANT_DEV", str(_REPO / "dev")),
            checkpoint_volume=None,
        )

    def clear(self) -> None:
        """Removes remains of an earlier story, and creates the objects that the trainings share."""
        if self.kubectl.attempt("get", "namespace", NAMESPACE).returncode == 0:
            self.kubectl.run("delete", "elastictrainingjobs", "--all", "--wait", "--timeout=120s")
            self.kubectl.run("delete", "pods", "--all", "--wait", "--timeout=120s")
        self.kubectl.run("delete", "namespaces,trainingqueues", f"--selector={TEAM_LABEL}", "--wait", "--timeout=120s")
        reference.forget()
        self.kubectl.run("apply", "-k", str(DEMO))

    def set_up(self, namespace: str) -> Kubectl:
        """Creates another namespace with the objects that its trainings share."""
        kubectl = self.kubectl.within(namespace)
        manifests = kubectl.run("kustomize", str(DEMO)).replace(NAMESPACE, namespace)
        kubectl.run("apply", "-f", "-", stdin=manifests)
        return kubectl

    def manifest(self, name: str) -> dict:
        """One of the demo's trainings with this stage's image and volume, as fast as the machine can."""
        path = DEMO / f"{name}.yaml"
        job = self.kubectl.json("create", "--dry-run=client", "--validate=false", "-f", str(path))
        if self.checkpoint_volume is not None:
            job = with_volume(job, self.checkpoint_volume)
        return pace.unpaced(with_image(job, self.learner_image))


def with_volume(job: Mapping, volume: Mapping) -> dict:
    job = copy.deepcopy(dict(job))
    job["spec"]["checkpoint"]["volume"] = dict(volume)
    return job


def with_image(job: Mapping, image: str) -> dict:
    job = copy.deepcopy(dict(job))
    for container in job["spec"]["template"]["spec"]["containers"]:
        container["image"] = image
    return job


def with_epochs(job: Mapping, epochs: int) -> dict:
    job = copy.deepcopy(dict(job))
    for container in job["spec"]["template"]["spec"]["containers"]:
        rest = [argument for argument in container["args"] if not argument.startswith(_EPOCHS)]
        container["args"] = [*rest, f"{_EPOCHS}{epochs}"]
    return job
