"""Container images: built by docker or podman if one runs, else by buildah, which needs no service.

The code for docker and podman follows their manuals and has not been tested yet.
"""

import abc
import atexit
import contextlib
import functools
import os
import resource
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from .errors import DevError
from .host import CA_BUNDLE, client_settings, debian_mirror
from .progress import log_file, phase, run_logged
from .settings import CACHE, DEBIAN_RELEASE

# The base image of the Dockerfiles. Buildah has no image registry here, so we make the base image.
BASE_IMAGE = f"debian:{DEBIAN_RELEASE}-slim"
_OWN_BASE_IMAGE = f"localhost/{BASE_IMAGE}"


@dataclass(frozen=True)
class Mounted:
    """A command to run inside an image."""

    command: Sequence[str]
    mounts: Mapping[Path, str] = field(default_factory=dict)  # host path → path inside
    environment: Mapping[str, str] = field(default_factory=dict)
    directory: str = "/"
    terminal: bool = False


class Engine(abc.ABC):
    """Builds and runs images on the host's network."""

    @abc.abstractmethod
    def has(self, image: str) -> bool: ...

    @abc.abstractmethod
    def command_to_run(self, image: str, what: Mounted) -> list[str]: ...

    @abc.abstractmethod
    def save(self, image: str, archive: Path, log: Path) -> None:
        """Writes an archive that containerd imports."""

    @abc.abstractmethod
    def unpack(self, image: str, directory: Path, log: Path) -> None:
        """Writes the image's file system into an empty directory."""

    @abc.abstractmethod
    def _build_command(self) -> list[str]: ...

    @abc.abstractmethod
    def remove_others(self, image: str) -> None:
        """Removes the images that differ from this one only by their tag."""

    @abc.abstractmethod
    def prepare(self) -> str:
        """Makes sure that the base image exists. Returns its name."""

    def build(
        self,
        dockerfile: Path,
        context: Path,
        image: str,
        log: Path,
        target: str = "",
        base: str = "",
        arguments: Mapping[str, str] | None = None,
    ) -> None:
        command = [*self._build_command(), "--file", str(dockerfile), "--tag", image]
        command += ["--target", target] if target else []
        for name, value in {**({"BASE": base} if base else {}), **(arguments or {})}.items():
            command += ["--build-arg", f"{name}={value}"]
        with _secrets() as secrets:
            for name, file in secrets.items():
                command += ["--secret", f"id={name},src={file}"]
            run_logged([*command, str(context)], log, f"building the image {image}")

    def ensure(self, dockerfile: Path, context: Path, image: str, target: str, expect: str) -> None:
        """Builds an image, whose name has the hash of its inputs, unless it exists."""
        if not self.has(image):
            with phase(f"Building the image {image}", expect):
                base = self.prepare()
                log = log_file(f"image-{target}")
                self.build(dockerfile, context, image, log, target=target, base=base)


@contextlib.contextmanager
def _secrets() -> Iterator[dict[str, Path]]:
    """Settings by which package clients reach their registries from this machine. Builds see them
    while they run; images never contain them."""
    with tempfile.TemporaryDirectory() as scratch:
        sources, settings = Path(scratch, "apt-sources"), Path(scratch, "settings")
        sources.write_text(f"deb {debian_mirror()} {DEBIAN_RELEASE} main\n")
        exports = [f"export {name}='{value}'" for name, value in client_settings().items()]
        secrets = {"apt-sources": sources, "settings": settings}
        if CA_BUNDLE.exists():
            secrets["ca-bundle"] = CA_BUNDLE
            exports.append("export PIP_CERT=/run/secrets/ca-bundle")
        settings.write_text("".join(line + "\n" for line in exports) or ":\n")
        yield secrets


# Runs a program in its own process and mount namespaces. When it ends in any way, or we are killed,
# none of its processes and mounts is left.
# fmt: off
_CONTAINED = ["setpriv", "--pdeathsig", "KILL",
              "unshare", "--mount", "--pid", "--fork", "--kill-child=KILL", "--mount-proc", "--"]
# fmt: on


def _present_limits() -> list[str]:
    """Options that keep the present limits: newer versions of buildah raise them by default, which
    not every root user may."""
    options = []
    for name, limit in (("nofile", resource.RLIMIT_NOFILE), ("nproc", resource.RLIMIT_NPROC)):
        _, hard = resource.getrlimit(limit)
        if hard != resource.RLIM_INFINITY:
            options += ["--ulimit", f"{name}={hard}:{hard}"]
    return options


class Buildah(Engine):
    """Keeps images in our own store below the cache, and builds them in a chroot: without a service
    and without user namespaces."""

    def __init__(self) -> None:
        # Read by buildah itself.
        os.environ["BUILDAH_ISOLATION"] = "chroot"
        self._store = ["--root", str(CACHE / "images"), "--runroot", "/run/pliant-images"]
        self._buildah = [*_CONTAINED, "buildah", *self._store]
        self._containers: dict[str, str] = {}  # by image

    def _output(self, *arguments: str) -> str:
        result = subprocess.run(
            [*self._buildah, *arguments], capture_output=True, text=True, check=False
        )
        if result.returncode != 0:
            raise DevError(f"buildah {arguments[0]} failed: {result.stderr.strip()}")
        return result.stdout.strip()

    def has(self, image: str) -> bool:
        # Not by `inspect`: it fails in the same way when buildah itself does not work.
        return image in self._output("images", "--format", "{{.Name}}:{{.Tag}}").split()

    def prepare(self) -> str:
        if self.has(_OWN_BASE_IMAGE):
            return _OWN_BASE_IMAGE
        log = log_file("image-base")
        with (
            phase("Making a Debian base image", "about 30 s"),
            tempfile.TemporaryDirectory(dir=CACHE) as scratch,
        ):
            archive = Path(scratch, "debian.tar")
            mirror = debian_mirror()
            # The image names Debian's own mirror, although this machine may use another one.
            sources = f"deb http://deb.debian.org/debian {DEBIAN_RELEASE} main"
            forget = f'echo "{sources}" > "$1/etc/apt/sources.list"'
            command = [
                "mmdebstrap",
                "--variant=minbase",
                "--components=main",
                f"--customize-hook={forget}",
            ]
            run_logged(
                [*_CONTAINED, *command, DEBIAN_RELEASE, archive, mirror],
                log,
                "making a Debian base image",
            )
            container = self._output("from", "scratch")
            try:
                self._output("add", container, str(archive), "/")
                self._output(
                    "config",
                    "--cmd",
                    "/bin/bash",
                    "--env",
                    "PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                    container,
                )
                self._output("commit", container, _OWN_BASE_IMAGE)
            finally:
                self._output("rm", container)
        return _OWN_BASE_IMAGE

    def _build_command(self) -> list[str]:
        return [*self._buildah, "bud", "--pull-never", "--layers", *_present_limits()]

    def command_to_run(self, image: str, what: Mounted) -> list[str]:
        if image not in self._containers:
            self._containers[image] = self._new_container(image)
        command = [*self._buildah, "run", "--workingdir", what.directory]
        command += ["--terminal"] if what.terminal else []
        for host, inside in what.mounts.items():
            command += ["--volume", f"{host}:{inside}"]
        for name, value in what.environment.items():
            command += ["--env", f"{name}={value}"]
        return [*command, self._containers[image], "--", *what.command]

    def _new_container(self, image: str) -> str:
        """A container for this process only: buildah fails if two processes run commands in one."""
        for name in self._output("containers", "--format", "{{.ContainerName}}").split():
            owner = name.removeprefix("run-").partition("-")[0]
            if name.startswith("run-") and not Path("/proc", owner).exists():
                self._output("rm", name)
        container = f"run-{os.getpid()}-{len(self._containers)}"
        self._output("from", "--pull-never", *_present_limits(), "--name", container, image)
        atexit.register(self._output, "rm", container)
        return container

    def save(self, image: str, archive: Path, log: Path) -> None:
        archive.unlink(missing_ok=True)
        run_logged(
            [*self._buildah, "push", image, f"docker-archive:{archive}:{image}"],
            log,
            f"saving {image}",
        )

    def unpack(self, image: str, directory: Path, log: Path) -> None:
        container = self._output("from", "--pull-never", image)
        # Mounted and copied in one command: the mount ends with the shell's namespace.
        script = 'source=$(buildah $1 mount "$2") && cp -a "$source/." "$3"'
        store = " ".join(self._store)
        try:
            run_logged(
                [*_CONTAINED, "sh", "-ec", script, "sh", store, container, directory],
                log,
                f"unpacking {image}",
            )
        finally:
            self._output("rm", container)

    def remove_others(self, image: str) -> None:
        repository = image.rpartition(":")[0]
        names = self._output(
            "images", "--format", "{{.Name}}:{{.Tag}}", "--filter", f"reference={repository}"
        ).split()
        for name in names:
            if name != image:
                subprocess.run([*self._buildah, "rmi", name], capture_output=True, check=False)


class Docker(Engine):
    """docker, or podman, which accepts the same commands."""

    def __init__(self, program: str):
        self._program = program

    def prepare(self) -> str:
        return BASE_IMAGE  # the program fetches it from its registry

    def has(self, image: str) -> bool:
        command = [self._program, "image", "inspect", image]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0

    def _build_command(self) -> list[str]:
        return [self._program, "build"]

    def command_to_run(self, image: str, what: Mounted) -> list[str]:
        # Leak detection needs ptrace.
        command = [
            self._program,
            "run",
            "--rm",
            "--network=host",
            "--cap-add=SYS_PTRACE",
            "--workdir",
            what.directory,
        ]
        command += ["--interactive", "--tty"] if what.terminal else []
        for host, inside in what.mounts.items():
            command += ["--volume", f"{host}:{inside}"]
        for name, value in what.environment.items():
            command += ["--env", f"{name}={value}"]
        return [*command, "--entrypoint", what.command[0], image, *what.command[1:]]

    def save(self, image: str, archive: Path, log: Path) -> None:
        run_logged([self._program, "save", "--output", archive, image], log, f"saving {image}")

    def unpack(self, image: str, directory: Path, log: Path) -> None:
        name = f"pliant-unpack-{os.getpid()}"
        run_logged(
            [self._program, "create", "--name", name, image, "true"], log, f"unpacking {image}"
        )
        try:
            archive = directory.with_suffix(".tar")
            run_logged(
                [self._program, "export", "--output", archive, name],
                log,
                f"unpacking {image}",
                append=True,
            )
            run_logged(
                ["tar", "-xf", archive, "-C", directory], log, f"unpacking {image}", append=True
            )
            archive.unlink()
        finally:
            subprocess.run([self._program, "rm", name], capture_output=True, check=False)

    def remove_others(self, image: str) -> None:
        repository = image.rpartition(":")[0]
        command = [self._program, "image", "ls", "--format", "{{.Repository}}:{{.Tag}}", repository]
        for name in subprocess.run(
            command, capture_output=True, text=True, check=False
        ).stdout.split():
            if name != image:
                subprocess.run(
                    [self._program, "image", "rm", name], capture_output=True, check=False
                )


def running_engine() -> str | None:
    """docker or podman, if one is installed and answers."""
    for program in ("docker", "podman"):
        if shutil.which(program):
            with contextlib.suppress(subprocess.TimeoutExpired):
                if (
                    subprocess.run(
                        [program, "info"], capture_output=True, timeout=5, check=False
                    ).returncode
                    == 0
                ):
                    return program
    return None


@functools.cache
def engine() -> Engine:
    program = running_engine()
    return Docker(program) if program else Buildah()
