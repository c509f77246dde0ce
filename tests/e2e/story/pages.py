"""The commands of the task pages and of the quick start, run as they stand there.

Each page's shell fences without a mark of their own run from top to bottom; YAML fences are files that the commands name.
Only the names of images differ, and what would end the job comes last.
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

from . import checks, waiting
from .kubectl import Kubectl
from .screen import Screen
from .stage import GPUS_TOTAL, Stage

REPO = Path(__file__).resolve().parents[3]
TASKS = ("docs/tasks/submit-a-job.md", "docs/tasks/change-a-job.md", "docs/tasks/debug-a-job.md", "docs/tasks/checkpoints-and-results.md")
QUICK_START = "docs/quick-start.md"
FOR_ADMINISTRATORS = ("docs/install.md", "docs/operations.md")  # their marked fences, which change nothing while no job is there
_OURS = "run-by=tests/e2e/story/pages.py"
_NAMESPACE = "digits"
_PATCHED = "example.com/gpu"
_FENCE = re.compile(r"^```(\w+)[ ]?(.*?)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_IMAGE = "REGISTRY/pliant/learner:0.1.0"
_SECONDS = 300.0
_WATCH_SECONDS = 5.0  # a command that watches never ends
# They wait for the end of the job, or delete what others need.
_LAST = ("kubectl wait etj/", "kubectl delete ")
# The file that a page's commands apply, by the kind of its YAML.
_FILES = {"ElasticTrainingJob": "job.yaml", "PersistentVolumeClaim": "claim.yaml", "Pod": "results.yaml"}


@dataclass(frozen=True)
class Script:
    """Commands of one fence, which share variables and background processes."""

    page: str
    text: str


def scripts(page: str, text: str) -> tuple[list[Script], list[Script]]:
    """What runs at once, and what runs last. Pure."""
    now, last = [], []
    for language, mark, body in _FENCE.findall(text):
        if language != "sh" or mark not in ("", _OURS):
            continue
        lines = body.splitlines(keepends=True)
        late = [line for line in lines if line.startswith(_LAST)]
        if early := "".join(line for line in lines if line not in late):
            now.append(Script(page, early))
        last += [Script(page, line) for line in late]
    return now, last


def files(text: str, image: str) -> Iterator[tuple[str, str]]:
    """Names and contents of the YAML fences that are whole objects, with the image that there is. Pure."""
    for language, _, body in _FENCE.findall(text):
        kind = re.search(r"^kind: (\w+)$", body, re.MULTILINE)
        if language == "yaml" and kind and kind[1] in _FILES:
            yield _FILES[kind[1]], body.replace(_IMAGE, image)


def bounded(text: str) -> str:
    """A command that watches is ended after some seconds. Pure."""
    watches = re.compile(r"^(kubectl .*? -w)(\s*#.*)?$", re.MULTILINE)
    return watches.sub(rf"timeout {_WATCH_SECONDS:g} \1 || [ $? = 124 ]", text)


def play(stage: Stage, screen: Screen) -> list[checks.Check]:
    stage.clear()
    with tempfile.TemporaryDirectory() as scratch:
        shell = _Shell(Path(scratch), screen)
        administration = _administration(shell)
        tasks = _tasks(stage, shell)
        screen.say("   the commands of the task pages have run", "green")
        quick = _quick_start(stage, shell, screen)
    return [
        checks.Check("the marked commands for administrators work", tuple(administration)),
        checks.Check("the commands of the task pages work", tuple(tasks)),
        checks.Check("the commands of the quick start work", tuple(quick)),
    ]


class _Shell:
    """A user's, in a folder with the repository's manifests, whose kubeconfig may be changed."""

    def __init__(self, folder: Path, screen: Screen) -> None:
        self._folder = folder
        self._screen = screen
        (folder / "manifests").symlink_to(REPO / "manifests")
        kubeconfig = folder / "kubeconfig"
        shutil.copy(os.environ["KUBECONFIG"], kubeconfig)
        programs = Path(os.environ["PLIANT_KUBECTL"]).parent
        self._environment = {
            **os.environ,
            "KUBECONFIG": str(kubeconfig),
            "PATH": f"{programs}:{os.environ['PATH']}",
        }
        self._variables: dict[str, str] = {}  # the lines that set them

    def write(self, name: str, content: str) -> None:
        (self._folder / name).write_text(content)

    def run(self, script: Script) -> list[str]:
        """What is off: nothing, if all of its commands succeed. Variables are those of the scripts before it."""
        self._screen.say(f"   {script.page}: {script.text.strip().splitlines()[0]}")
        used = [line for name, line in self._variables.items() if f"${name}" in script.text]
        text = f"set -e\n{''.join(used)}{bounded(script.text)}"
        process = subprocess.Popen(
            ["bash", "-c", text], cwd=self._folder, env=self._environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
        )  # fmt: skip
        try:
            code = process.wait(_SECONDS)
        except subprocess.TimeoutExpired:
            code = None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # what it has left in the background, too
        said = process.stdout.read() if process.stdout else ""
        self._variables |= {name: line for line, name in re.findall(r"^((?:export )?(\w+)=.*\n)", script.text, re.MULTILINE)}
        if code == 0:
            return []
        ending = f"exit status {code}" if code is not None else f"not within {_SECONDS:.0f} s"
        return [f"{script.page}: {ending}: {script.text.strip()}: {said.strip()[-500:]}"]


def _administration(shell: _Shell) -> list[str]:
    marked = [fence for page in FOR_ADMINISTRATORS for fence in _marked(page, (REPO / page).read_text())]
    return [problem for script in marked for problem in shell.run(script)]


def _marked(page: str, text: str) -> list[Script]:
    return [Script(page, body) for language, mark, body in _FENCE.findall(text) if language == "sh" and mark == _OURS]


def _tasks(stage: Stage, shell: _Shell) -> list[str]:
    kubectl = stage.kubectl.within(_NAMESPACE)
    _clear(kubectl)
    kubectl.apply(_volume())
    texts = {page: (REPO / page).read_text() for page in TASKS}
    problems: list[str] = []
    for text in texts.values():
        for name, content in files(text, stage.learner_image):
            shell.write(name, content)
    pages = [scripts(page, text) for page, text in texts.items()]
    late = [script for _, last in pages for script in last]
    waits = [script for script in late if "wait" in script.text]
    *before_the_end, results = [now for now, _ in pages]
    for scripts_of_page in (*before_the_end, waits, results, [each for each in late if each not in waits]):
        for script in scripts_of_page:
            problems += shell.run(script)
    _clear(kubectl)
    return problems


def _clear(kubectl: Kubectl) -> None:
    kubectl.run("delete", "namespace", _NAMESPACE, "--ignore-not-found", "--timeout=180s")
    kubectl.run("delete", "persistentvolume", _NAMESPACE, "--ignore-not-found", "--timeout=60s")


def _quick_start(stage: Stage, shell: _Shell, screen: Screen) -> list[str]:
    """The nodes of this cluster have a device plugin for their GPUs, so what the page patches is another resource."""
    kubectl = stage.kubectl
    text = (REPO / QUICK_START).read_text().replace("localhost/pliant/learner:0.1.0", stage.learner_image)
    text = text.replace("nvidia.com/gpu", _PATCHED).replace("nvidia\\.com", "example\\.com")
    now, last = scripts(QUICK_START, text)
    problems = []
    for script in now:
        problems += shell.run(script)
        if "patch $node" in script.text:
            _use_patched(stage, screen)
        elif "patch etj training-2" in script.text:
            moved = (3, GPUS_TOTAL - 3)
            waiting.wait(kubectl, screen, "the GPUs move to 3 and 5", lambda: _learners(kubectl) == moved, _SECONDS)
    for script in last:
        problems += shell.run(script)
    for node in kubectl.json("get", "nodes")["items"]:
        gone = json.dumps([{"op": "remove", "path": f"/status/capacity/{_PATCHED.replace('/', '~1')}"}])
        kubectl.attempt("patch", "node", node["metadata"]["name"], "--subresource=status", "--type=json", "-p", gone)
    return problems


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


def _volume() -> dict:
    """The page's claim binds to it: the local cluster makes no volumes of its own."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": _NAMESPACE},
        "spec": {
            "accessModes": ["ReadWriteMany"],
            "capacity": {"storage": "10Gi"},
            "claimRef": {"namespace": _NAMESPACE, "name": "training"},
            "hostPath": {"path": "/var/lib/pliant-checkpoints", "type": "Directory"},
            "persistentVolumeReclaimPolicy": "Retain",
        },
    }
