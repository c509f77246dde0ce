"""The files from which the cluster starts, built once and kept in the cache: programs, the nodes'
file system, the pause image."""

import shutil
from dataclasses import dataclass
from pathlib import Path

from . import cluster, go_programs
from .content_hash import content_hash
from .images import engine
from .node import PAUSE_IMAGE, NodeFiles
from .progress import log_file, phase
from .settings import CACHE, CLUSTER_SOURCES

_DOCKERFILE = CLUSTER_SOURCES / "Dockerfile"


@dataclass(frozen=True)
class Assets:
    node_files: NodeFiles
    pause_archive: Path


def build() -> Assets:
    programs = go_programs.build()
    files = NodeFiles(
        image=_node_file_system(),
        programs=programs,
        checkpoints=cluster.CHECKPOINTS,
        small_volume=cluster.SMALL_VOLUME,
    )
    return Assets(files, _pause_archive(programs))


def _node_file_system() -> Path:
    key = content_hash(_DOCKERFILE)
    directory = CACHE / f"node-{key}"
    if not directory.exists():
        image = f"localhost/pliant/node:{key}"
        engine().ensure(_DOCKERFILE, CLUSTER_SOURCES, image, "node", "about 1 min")
        unfinished = directory.with_suffix(".new")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir()
        with phase("Unpacking the nodes' file system"):
            engine().unpack(image, unfinished, log_file("node-unpack"))
        unfinished.rename(directory)
    return directory


def _pause_archive(programs: Path) -> Path:
    archive = CACHE / f"pause-{content_hash(_DOCKERFILE, programs / 'pause')}.tar"
    if not archive.exists():
        log = log_file("image-pause")
        unfinished = archive.with_suffix(".new")
        engine().build(_DOCKERFILE, programs, PAUSE_IMAGE, log, target="pause")
        engine().save(PAUSE_IMAGE, unfinished, log)
        unfinished.rename(archive)
    return archive
