"""The image in which everything is compiled and tested, and commands in it with the source mounted.

Inside, the source is always /src and the build directory /src/build, for every checkout, so that
all checkouts on the machine share the objects in ccache. """

import hashlib
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from .content_hash import content_hash
from .images import Mounted, engine
from .progress import run_logged
from .settings import CACHE, DEBIAN_RELEASE, REPO

_DOCKERFILE = REPO / "Dockerfile"


def stage(target: str, expect: str) -> str:
    """The image of a stage of the product's Dockerfile that does not depend on the source. Builds
    it if needed."""
    image = f"localhost/pliant/{target}:{content_hash(_DOCKERFILE, DEBIAN_RELEASE)}"
    engine().ensure(_DOCKERFILE, REPO, image, target, expect)
    return image


def build_directory(source: Path = REPO) -> Path:
    """The checkout's build directory on the host; inside the image it is /src/build."""
    key = hashlib.sha256(str(source).encode()).hexdigest()[:8]
    return CACHE / "build" / f"{source.name}-{key}"


def command(
    inside: Sequence[str],
    *,
    source: Path = REPO,
    environment: Mapping[str, str] | None = None,
    mounts: Mapping[Path, str] | None = None,
    terminal: bool = False,
) -> list[str]:
    """The host's command line for a command in the build image, in the source's root."""
    image = stage("build", "about 5 min")
    ccache = CACHE / "ccache"
    ccache.mkdir(parents=True, exist_ok=True)
    build_directory(source).mkdir(parents=True, exist_ok=True)
    (source / "build").mkdir(exist_ok=True)  # where the build directory is mounted
    everywhere = {
        "CCACHE_DIR": "/ccache",
        "CCACHE_BASEDIR": "/src",
        "CCACHE_MAXSIZE": "10G",
        "CCACHE_SLOPPINESS": "pch_defines,time_macros",  # for precompiled headers
        "CMAKE_CXX_COMPILER_LAUNCHER": "ccache",
        "CMAKE_CUDA_COMPILER_LAUNCHER": "ccache",
        "CMAKE_COLOR_DIAGNOSTICS": "OFF",
        "HOME": "/root",
        "LANG": "C.UTF-8",
        "TERM": os.environ.get("TERM", "dumb"),
    }
    return engine().command_to_run(
        image,
        Mounted(
            command=inside,
            mounts={
                source: "/src",
                build_directory(source): "/src/build",
                ccache: "/ccache",
                **(mounts or {}),
            },
            environment={**everywhere, **(environment or {})},
            directory="/src",
            terminal=terminal,
        ),
    )


def run(inside: Sequence[str], log: Path, what: str, **options) -> None:
    run_logged(command(inside, **options), log, what)


def shell(inside: Sequence[str]) -> int:
    return subprocess.run(
        command(inside or ["bash"], terminal=os.isatty(0)), check=False
    ).returncode
