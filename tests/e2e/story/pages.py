"""The commands of the task pages, of the quick start and of pages for administrators, run as they stand there.

Shell fences without a mark of their own run from top to bottom; YAML fences are the files that the commands name.
Only the registry and the image's tag differ.
"""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from . import checks, operator_pod, waiting
from .errors import StoryError
from .kubectl import Kubectl
from .screen import Screen
from .stage import GPUS_TOTAL, Stage

REPO = Path(__file__).resolve().parents[3]
# In the order in which a reader follows them: the last one ends and deletes the job.
TASKS = (
    "docs/tasks/submit-a-job.md",
    "docs/tasks/change-a-job.md",
    "docs/tasks/debug-a-job.md",
    "docs/tasks/checkpoints-and-results.md",
)
QUICK_START = "docs/quick-start.md"
# Their marked fences run, which change nothing while no job is there.
FOR_ADMINISTRATORS = ("docs/install.md", "docs/operations.md", "docs/queues.md")
_OURS = "run-by=tests/e2e/story/pages.py"
_NAMESPACE = "digits"
_PATCHED = "example.com/gpu"
_FENCE = re.compile(r"^```(\w+)[ ]?(.*?)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_WATCHES = re.compile(r"^(kubectl (?:.*? )?-w(?= |$).*?)( *#.*)?$", re.MULTILINE)
_SECONDS = 600.0
_WATCH_SECONDS = 5.0  # a command that watches never ends
# The files that the pages name, by a line that only they have.
_FILES = {
    "kind: ElasticTrainingJob": "job.yaml",
    "metadata: {name: training, namespace: digits}": "claim.yaml",
    "metadata: {name: results}": "results.yaml",
    "metadata: {name: replay}": "replay.yaml",
}


@dataclass(frozen=True)
class Script:
    """Commands of one fence."""

    page: str
    text: str


def scripts(page: str, text: str, *, unmarked: bool = True) -> list[Script]:
    """The fences to run: the marked ones and, if `unmarked`, those without a mark. Pure."""
    marks = ("", _OURS) if unmarked else (_OURS,)
    return [Script(page, body) for language, mark, body in _FENCE.findall(text) if language == "sh" and mark in marks]


def files(text: str) -> Iterator[tuple[str, str]]:
    """Names and contents of the YAML fences that commands name. Pure."""
    for language, _, body in _FENCE.findall(text):
        name = next((name for line, name in _FILES.items() if line in body), None)
        if language == "yaml" and name:
            yield name, body


def with_image(text: str, image: str) -> str:
    """The page with the registry and the tag of the image that there is. Pure."""
    registry, _, tag = image.partition("/pliant/learner:")
    return text.replace("registry.example.com/ml", registry).replace("pliant/learner:0.1.0", f"pliant/learner:{tag}")


def bounded(text: str) -> str:
    """A command that watches is ended after some seconds. Pure."""
    return _WATCHES.sub(rf"timeout {_WATCH_SECONDS:g} \1 || [ $? = 124 ]", text)


def variables(text: str) -> dict[str, str]:
    """The lines that set a variable and do nothing else. Pure."""
    lines = re.findall(r"^((?:export )?(\w+)=(?:\$\(.*\)|\S*)) *(?:#.*)?$", text, re.MULTILINE)
    return {name: f"{line}\n" for line, name in lines}


def play(stage: Stage, screen: Screen) -> list[checks.Check]:
    for name in ("KUBECONFIG", "PLIANT_KUBECTL"):
        if name not in os.environ:
            raise StoryError(f"{name} is not set: run this by ./dev")
    stage.clear()
    found = []
    for name, part in (
        ("marked commands for administrators", _administration),
        ("commands of the task pages", _tasks),
        ("commands of the quick start", _quick_start),
    ):
        with tempfile.TemporaryDirectory() as scratch:
            shell = _Shell(Path(scratch), screen)
            try:
                part(stage, shell, screen)
            except StoryError as error:
                shell.problems.append(str(error))
        found.append(checks.Check(f"the {name} work", tuple(shell.problems)))
    return found


class _Shell:
    """A user's, in a folder with the repository's manifests, whose kubeconfig may be changed."""

    def __init__(self, folder: Path, screen: Screen) -> None:
        self._folder = folder
        self._screen = screen
        for part in ("manifests", "cli"):
            (folder / part).symlink_to(REPO / part)
        kubeconfig = folder / "kubeconfig"
        shutil.copy(os.environ["KUBECONFIG"], kubeconfig)
        programs = Path(os.environ["PLIANT_KUBECTL"]).parent
        path = os.pathsep.join([str(programs), str(REPO / "cli"), os.environ["PATH"]])
        self._environment = {**os.environ, "KUBECONFIG": str(kubeconfig), "PATH": path}
        self._variables: dict[str, str] = {}
        self.problems: list[str] = []  # empty if all commands succeed

    def write(self, name: str, content: str) -> None:
        (self._folder / name).write_text(content)

    def run(self, script: Script) -> None:
        """The script has the variables of earlier scripts that it names."""
        self._screen.say(f"   {script.page}: {script.text.strip().splitlines()[0]}")
        used = [line for name, line in self._variables.items() if f"${name}" in script.text]
        text = f"set -e\n{''.join(used)}{bounded(script.text)}"
        with (self._folder / "output").open("w+") as output:
            process = subprocess.Popen(
                ["bash", "-c", text], cwd=self._folder, env=self._environment, stdin=subprocess.DEVNULL,
                stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
            try:
                code = process.wait(_SECONDS)
            except subprocess.TimeoutExpired:
                code = None
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # also what it has left in the background
            process.wait()
            output.seek(0)
            said = output.read()
        self._variables |= variables(script.text)
        if code != 0:
            ending = f"exit status {code}" if code is not None else f"timed out after {_SECONDS:.0f} s"
            self.problems.append(f"{script.page}: {ending}: {script.text.strip()}: {said.strip()[-500:]}")


def _administration(stage: Stage, shell: _Shell, screen: Screen) -> None:
    kubectl = stage.operator_kubectl
    kubectl.run("rollout", "status", "deployment/pliant", "--timeout=120s")
    waiting.wait(kubectl, screen, "one of the operator's replicas leads", lambda: _is_led(kubectl), 120.0)
    for page in FOR_ADMINISTRATORS:
        for script in scripts(page, (REPO / page).read_text(), unmarked=False):
            shell.run(script)


def _is_led(kubectl: Kubectl) -> bool:
    try:
        return bool(operator_pod.leader(kubectl))
    except StoryError:  # after an installation the Lease may still name an earlier replica
        return False


def _tasks(stage: Stage, shell: _Shell, _screen: Screen) -> None:
    kubectl = stage.kubectl.within(_NAMESPACE)
    _clear(kubectl)
    texts = {page: with_image((REPO / page).read_text(), stage.learner_image) for page in TASKS}
    for text in texts.values():
        for name, content in files(text):
            shell.write(name, content)
    for page, text in texts.items():
        for script in scripts(page, text):
            shell.run(script)
    _clear(kubectl)


def _clear(kubectl: Kubectl) -> None:
    kubectl.run("delete", "namespace", _NAMESPACE, "--ignore-not-found", "--timeout=180s")
    kubectl.run("delete", "persistentvolume", _NAMESPACE, "--ignore-not-found", "--timeout=60s")


def _quick_start(stage: Stage, shell: _Shell, screen: Screen) -> None:
    """The nodes of this cluster have a device plugin for their GPUs, so what the page patches is another resource."""
    text = (REPO / QUICK_START).read_text().replace("localhost/pliant/learner:0.1.0", stage.learner_image)
    text = text.replace("nvidia.com/gpu", _PATCHED).replace("nvidia\\.com", "example\\.com")
    patch, start, priority, *rest = scripts(QUICK_START, text)
    try:
        shell.run(patch)
        _use_patched(stage, screen)
        shell.run(start)
        shell.run(priority)
        moved = (3, GPUS_TOTAL - 3)
        kubectl = stage.kubectl
        waiting.wait(kubectl, screen, "the GPUs move to 3 and 5", lambda: _learners(kubectl) == moved, 120.0)
    finally:
        gone = json.dumps([{"op": "remove", "path": f"/status/capacity/{_PATCHED.replace('/', '~1')}"}])
        for node in stage.kubectl.json("get", "nodes")["items"]:
            name = node["metadata"]["name"]
            stage.kubectl.attempt("patch", "node", name, "--subresource=status", "--type=json", "-p", gone)
    for script in rest:
        shell.run(script)


def _learners(kubectl: Kubectl) -> tuple[int, ...]:
    jobs = kubectl.json("get", "elastictrainingjobs")["items"]
    by_name = sorted(jobs, key=lambda job: job["metadata"]["name"])
    return tuple(each.get("status", {}).get("learners", 0) for each in by_name)


def _use_patched(stage: Stage, screen: Screen) -> None:
    """A pod that asks for what the page has patched runs: scheduler and kubelet take it for a resource."""
    name = "pretends"
    limits = {_PATCHED: "1"}
    container = {"name": name, "image": stage.learner_image, "command": ["true"], "resources": {"limits": limits}}
    kubectl = stage.kubectl
    kubectl.apply({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    })  # fmt: skip

    def ended() -> bool:
        return kubectl.json("get", "pod", name)["status"].get("phase") == "Succeeded"

    waiting.wait(kubectl, screen, "a pod runs on a pretend GPU that was patched", ended, 120.0)
    kubectl.run("delete", "pod", name)
