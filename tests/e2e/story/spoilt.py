"""Jobs that cannot work, and the messages that their owners read. docs/troubleshooting.md has the same tables for
people.

Pure: functions that spoil a good job's manifest.
"""

from collections.abc import Callable
from dataclasses import dataclass

QUOTA_MEMORY = "4Pi"  # in the ResourceQuota of these jobs' namespace


@dataclass(frozen=True)
class RefusedJob:
    """A job that the API server rejects: `kubectl apply` prints why."""

    name: str
    spoil: Callable[[dict], None]
    field: str  # named in the answer


@dataclass(frozen=True)
class BadJob:
    """A job that is accepted, and reports in a condition and in an event what is wrong with it."""

    name: str
    spoil: Callable[[dict], None]
    condition: str
    reason: str
    says: str  # part of both messages


def _pod(job: dict) -> dict:
    return job["spec"]["template"]["spec"]


def _learner(job: dict) -> dict:
    return _pod(job)["containers"][0]


def _field(*path: str, value: object) -> Callable[[dict], None]:
    """Sets a field of the job's spec."""

    def spoil(job: dict) -> None:
        holder = job["spec"]
        for name in path[:-1]:
            holder = holder[name]
        holder[path[-1]] = value

    return spoil


def _container(**fields: object) -> Callable[[dict], None]:
    """Sets fields of the learner's container."""
    return lambda job: _learner(job).update(fields)


def _program(script: str) -> Callable[[dict], None]:
    """Sets another program, and allows no failure. `$$` means `$` to Kubernetes."""

    def spoil(job: dict) -> None:
        _learner(job).update(command=["/bin/sh", "-c", script], args=[])
        job["spec"]["failurePolicy"] = {"maxFailures": 0}

    return spoil


def _killed_by(signal: str) -> str:
    """Kills a child process: a container's first process ignores its own signals."""
    return f"sh -c 'kill -{signal} $$$$'; exit $?"


def _model(edit: str) -> Callable[[dict], None]:
    """The learner trains with a model file edited by this sed script."""
    learner = "exec pliant-learner --model=/tmp/model.yaml --data=/data"
    return _program(f"sed '{edit}' /model/model.yaml > /tmp/model.yaml && {learner}")


def _flags(*flags: str) -> Callable[[dict], None]:
    return _container(args=[*flags])


def _volume(**source: object) -> Callable[[dict], None]:
    """Adds a volume that the learner mounts."""

    def spoil(job: dict) -> None:
        _pod(job)["volumes"].append({"name": "more", **source})
        _learner(job)["volumeMounts"].append({"name": "more", "mountPath": "/more"})

    return spoil


def _mount_of_nothing(job: dict) -> None:
    _learner(job)["volumeMounts"].append({"name": "absent-volume", "mountPath": "/absent"})


def _failing_init_container(job: dict) -> None:
    learner = _learner(job)
    fetch = {"name": "fetch", "image": learner["image"], "resources": learner.get("resources", {})}
    command = ["/bin/sh", "-c", "echo no such data; exit 3"]
    _pod(job)["initContainers"] = [{**fetch, "command": command, "terminationMessagePolicy": "FallbackToLogsOnError"}]
    job["spec"]["failurePolicy"] = {"maxFailures": 0}


def _too_little_memory(job: dict) -> None:
    memory = {"memory": "24Mi"}
    _learner(job)["resources"] = {"requests": {"cpu": "50m", **memory}, "limits": memory}
    job["spec"]["failurePolicy"] = {"maxFailures": 0}


def _requests(memory: str) -> Callable[[dict], None]:
    return _container(resources={"requests": {"cpu": "50m", "memory": memory}})


REFUSED_JOBS = (
    RefusedJob(
        "`minLearners` above `maxLearners`", _field("elastic", "minLearners", value=9), "spec.elastic.minLearners"
    ),
    RefusedJob("no `maxLearners`", _field("elastic", value={}), "spec.elastic.maxLearners"),
    RefusedJob(
        "a batch that the shards do not divide",
        _field("training", "globalBatchSize", value=100),
        "spec.training.globalBatchSize",
    ),
    RefusedJob(
        "`logicalShards` that is no power of two",
        _field("training", "logicalShards", value=24),
        "spec.training.logicalShards",
    ),
    RefusedJob("fewer shards than GPUs", _field("training", "logicalShards", value=4), "spec.training.logicalShards"),
    RefusedJob("a priority out of range", _field("priority", value=0), "spec.priority"),
    RefusedJob("a queue whose name is no DNS label", _field("queue", value="Research"), "spec.queue"),
    RefusedJob("no checkpoint volume", _field("checkpoint", "volume", value={}), "spec.checkpoint.volume"),
    RefusedJob("no container named `learner`", _container(name="main"), "spec.template.spec.containers"),
    RefusedJob(
        "a fixed `nodeName`", _field("template", "spec", "nodeName", value="node-1"), "spec.template.spec.nodeName"
    ),
    RefusedJob(
        "`restartPolicy` other than `Never`",
        _field("template", "spec", "restartPolicy", value="Always"),
        "spec.template.spec.restartPolicy",
    ),
)

BAD_JOBS = (
    # Jobs that are never admitted.
    BadJob(
        "a mount of a volume that is not defined", _mount_of_nothing, "Admitted", "TemplateRefused", "absent-volume"
    ),
    BadJob(
        "a service account that is not there",
        _field("template", "spec", "serviceAccountName", value="absent-account"),
        "Admitted",
        "TemplateRefused",
        "absent-account",
    ),
    BadJob("more CPU or memory than the namespace's quota", _requests("5Pi"), "Admitted", "TemplateRefused", "exceeded quota"),
    # Jobs that never get GPUs from the planner.
    BadJob(
        "a node selector that fits no node",
        _field("template", "spec", "nodeSelector", value={"gpu": "absent"}),
        "Progressing",
        "NoNodeFits",
        "no node can run a learner",
    ),
    BadJob("more memory than any node has", _requests("3Pi"), "Progressing", "NoNodeFits", "too little memory"),
    BadJob(
        "a minimum that the cluster does not have",
        _field("elastic", value={"minLearners": 9, "maxLearners": 9}),
        "Progressing",
        "TooLarge",
        "would not fit if nobody else ran",
    ),
    # Jobs whose learners never start.
    BadJob(
        "an image that is not there",
        _container(image="localhost/pliant/absent:1", imagePullPolicy="Never"),
        "Progressing",
        "ImagePullFailed",
        "localhost/pliant/absent:1",
    ),
    BadJob("an image name that is none", _container(image="No/Image"), "Progressing", "ImagePullFailed", "No/Image"),
    BadJob(
        "a checkpoint claim that is not there",
        _field("checkpoint", "volume", value={"persistentVolumeClaim": {"claimName": "absent-claim"}}),
        "Progressing",
        "VolumeMissing",
        "absent-claim",
    ),
    BadJob(
        "a scheduler that does not run",
        _field("template", "spec", "schedulerName", value="absent-scheduler"),
        "Progressing",
        "SchedulerSilent",
        "no scheduler has looked for a node",
    ),
    BadJob(
        "a config map that is not there, as a volume",
        _volume(configMap={"name": "absent-config"}),
        "Progressing",
        "VolumeNotMounted",
        "absent-config",
    ),
    BadJob(
        "a host directory that is not there",
        _volume(hostPath={"path": "/absent", "type": "Directory"}),
        "Progressing",
        "VolumeNotMounted",
        "hostPath type check failed",
    ),
    BadJob(
        "a secret that is not there, in the environment",
        _container(envFrom=[{"secretRef": {"name": "absent-secret"}}]),
        "Progressing",
        "ContainerCannotStart",
        "absent-secret",
    ),
    BadJob(
        "an image that runs as root where that is forbidden",
        _container(securityContext={"runAsUser": 0, "runAsNonRoot": True}),
        "Progressing",
        "ContainerCannotStart",
        "non-root",
    ),
    BadJob(
        "an init container that fails",
        _failing_init_container,
        "Failed",
        "TooManyFailures",
        "container fetch exited with code 3: no such data",
    ),
    # Programs that fail.
    BadJob(
        "a command that is not there",
        lambda job: (_program("")(job), _learner(job).update(command=["/absent-program"])),
        "Failed",
        "TooManyFailures",
        "/absent-program",
    ),
    BadJob(
        "a program that crashes, after a word in its log",
        _program("echo KeyError: labels >&2; exit 1"),
        "Failed",
        "TooManyFailures",
        "code 1: KeyError: labels",
    ),
    BadJob("a program that is killed", _program(_killed_by("KILL")), "Failed", "TooManyFailures", "code 137 (SIGKILL)"),
    BadJob(
        "a program that touches what it must not",
        _program(_killed_by("SEGV")),
        "Failed",
        "TooManyFailures",
        "code 139 (SIGSEGV)",
    ),
    BadJob("too little memory", _too_little_memory, "Failed", "TooManyFailures", "OOMKilled"),
    BadJob(
        "a program that ends at once",
        _program("true"),
        "Failed",
        "TooManyFailures",
        "its program ended before the training was complete",
    ),
    BadJob(
        "a program that hangs, or does not use Pliant",
        _program("exec sleep 600"),
        "Progressing",
        "LearnerNotConnected",
        "has not contacted the job's coordinator",
    ),
    # Learners with wrong input.
    BadJob(
        "a flag that is none",
        _flags("--model=/model/model.yaml", "--data=/data", "--epoch=3"),
        "Failed",
        "PermanentExitCode",
        "--epoch",
    ),
    BadJob(
        "a model file that is not there",
        _flags("--model=/model/absent.yaml", "--data=/data"),
        "Failed",
        "PermanentExitCode",
        "/model/absent.yaml",
    ),
    BadJob(
        "data that is not there",
        _flags("--model=/model/model.yaml", "--data=/absent-data"),
        "Failed",
        "PermanentExitCode",
        "/absent-data",
    ),
    BadJob("a layer that is none", _model("s/batch_norm/batch_nrom/"), "Failed", "PermanentExitCode", "batch_nrom"),
    BadJob(
        "a model that does not fit its data",
        _model("s/^input:.*/input: [1, 9, 9]/"),
        "Failed",
        "PermanentExitCode",
        "/tmp/model.yaml",
    ),
    BadJob(
        "a learning rate that is no number",
        _model("s/learningRate: 0.05/learningRate: fast/"),
        "Failed",
        "PermanentExitCode",
        "learningRate",
    ),
)

# Only the learner that has shard 0 of the step raises, once: the learner that recomputes the shard must not raise, too.
_RAISES_ONCE = """
import pathlib, pliant, torch
from torch.nn.functional import cross_entropy

torch.manual_seed(0)
data = torch.utils.data.TensorDataset(torch.randn(4096, 8), torch.zeros(4096, dtype=torch.long))
model = torch.nn.Linear(8, 2)
elastic = pliant.attach(model, torch.optim.SGD(model.parameters(), 0.1), data, epochs=1_000_000)
raised = pathlib.Path(elastic.job.checkpoint_dir, "raised")
for step in elastic.steps():
    for inputs, labels in step:
        if step.number >= 3 and step.shard.index == 0 and not raised.exists():
            raised.parent.mkdir(parents=True, exist_ok=True)
            raised.touch()
            raise ValueError("the third step is a bad one")
        step.backward(cross_entropy(model(inputs), labels))
    step.commit()
"""


def raising_program(image: str) -> BadJob:
    """Two learners of a PyTorch program. `image`: an image for such programs."""

    def spoil(job: dict) -> None:
        resources = {"requests": {"cpu": "50m", "memory": "256Mi"}}
        command = ["/usr/bin/python3", "-c", _RAISES_ONCE]
        _learner(job).update(image=image, command=command, args=[], resources=resources)
        job["spec"]["elastic"] = {"minLearners": 2, "maxLearners": 2}
        job["spec"]["failurePolicy"] = {"maxFailures": 0}

    says = "ValueError: the third step is a bad one ("
    return BadJob("a Python program that raises", spoil, "Failed", "TooManyFailures", says)
