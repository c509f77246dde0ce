"""kubectl pliant logs --kept: the output of learners that ended, which the runtime keeps on the checkpoint volume."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from .errors import CommandError
from .fields import Fields
from .job import read_job
from .kubectl import JOBS
from .log_lines import shown
from .logs import Choice, learners_of
from .names import job_name, job_uid
from .pods import CONTAINER as LEARNER
from .short_pod import PodWish, execute, short_pod
from .world import World

_MOUNT = "/checkpoints"
_USER = 65532  # of Pliant's images; files are readable for everyone
# The runtime's names: POD-UID_OF_POD.log, and .log.1 for what was before.
_FILE = re.compile(r"(?P<pod>[a-z0-9][-a-z0-9]{0,62})-(?P<uid>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.log(\.1)?")
_NUMBER = re.compile(r".*-(\d{1,9})")
_MAX_FILES = 256
# Oldest first, so that .log.1 is before .log.
_LIST = 'cd "$1" 2>/dev/null || exit 0; ls -1tr'
# Each file after a line with its size, so that no content can pass for another file. Links and pipes are left out.
_READ = (
    'cd "$1" || exit 1; shift; for f; do if [ -f "$f" ] && [ ! -L "$f" ]; then '
    's=$(wc -c < "$f"); echo "$((s)) $f"; head -c "$((s))" "$f"; fi; done'
)


@dataclass(frozen=True)
class KeptFile:
    name: str
    pod_uid: str
    number: int  # of the learner; -1: its name does not say

    @property
    def prefix(self) -> str:
        return self.name if self.number < 0 else f"learner-{self.number}"


def files_in(listing: bytes) -> list[KeptFile]:
    """The files of learners in the output of ls; the newest _MAX_FILES."""
    found = []
    for line in listing.decode(errors="replace").splitlines():
        if match := _FILE.fullmatch(line):
            number = _NUMBER.fullmatch(match["pod"])
            found.append(KeptFile(line, match["uid"], int(number[1]) if number else -1))
    return found[-_MAX_FILES:]


def lines_of(answer: bytes, files: Sequence[KeptFile], tail: int | None) -> list[str]:
    """The lines of all files, each with its learner. Raises a CommandError if the answer is not what _READ prints."""
    prefixes = {each.name: each.prefix for each in files}
    found: list[str] = []
    while answer:
        head, _, rest = answer.partition(b"\n")
        size, _, name = head.decode(errors="replace").partition(" ")
        is_size = size.isascii() and size.isdecimal() and len(size) < 12
        if not is_size or name not in prefixes or len(rest) < int(size):
            raise CommandError("the kept output changed while it was read: run it again")
        content, answer = rest[: int(size)], rest[int(size) :]
        lines = content.removesuffix(b"\n").split(b"\n") if content else []
        for line in lines if tail is None else lines[max(0, len(lines) - tail) :]:
            found += shown(prefixes[name], line)
    return found


def volume_of(job: Fields) -> dict[str, object]:
    """The checkpoint volume, read-only, from known fields alone."""
    volume = job.below("spec").below("checkpoint").below("volume")
    claim = volume.below("persistentVolumeClaim").text("claimName")
    nfs = volume.below("nfs")
    path = volume.below("hostPath").text("path")
    if claim:
        return {"name": "checkpoints", "persistentVolumeClaim": {"claimName": claim, "readOnly": True}}
    if nfs.text("server") and nfs.text("path"):
        source = {"server": nfs.text("server"), "path": nfs.text("path"), "readOnly": True}
        return {"name": "checkpoints", "nfs": source}
    if path:
        return {"name": "checkpoints", "hostPath": {"path": path, "type": "Directory"}}
    raise CommandError("spec.checkpoint.volume of the job is not understood: check kubectl get etj JOB -o yaml")


def wish_of(value: object, image: str | None) -> PodWish:
    """The pod that reads, by the job's object. It runs as the learners do, unless they run as root."""
    job = Fields(value)
    spec = job.below("spec").below("template").below("spec")
    security = spec.below("securityContext")
    learner = next((each for each in spec.items("containers") if each.text("name") == LEARNER), Fields({}))
    user = learner.below("securityContext").integer("runAsUser") or security.integer("runAsUser") or _USER
    group = security.integer("fsGroup")
    chosen = image or learner.text("image")
    if not chosen:
        raise CommandError("the job's template names no image for container learner: name one with --image")
    names = [each.text("name") for each in spec.items("imagePullSecrets")]
    return PodWish(
        purpose="kept-output",
        image=chosen,
        memory="256Mi",
        pull_secrets=tuple(name for name in names if name),
        user=user,
        groups=() if group is None else (group,),
        volumes=(volume_of(job),),
        mount_path=_MOUNT,
    )


def show(world: World, name: str, choice: Choice, image: str | None) -> None:
    value = world.kubectl.get(JOBS, job_name(name))
    job = read_job(value)
    folder = f"{_MOUNT}/{job_uid(job.uid)}/logs"
    running = {each.uid for each in learners_of(world, job, Choice()) if not each.ended}
    scope = world.kubectl.connection.scope()
    with short_pod(world.kubectl, wish_of(value, image), scope) as pod:
        listing = execute(world.kubectl, pod, ["sh", "-c", _LIST, "sh", folder], scope)
        found = [each for each in files_in(listing) if each.pod_uid not in running]
        files = [each for each in found if choice.learner in (None, each.number)]
        command = ["sh", "-c", _READ, "sh", folder, *(each.name for each in files)]
        lines = lines_of(execute(world.kubectl, pod, command, scope), files, choice.tail) if files else []
    world.print(lines)
    if not files:
        world.note(f"no output of ended learners of {name} is kept on its checkpoint volume")
