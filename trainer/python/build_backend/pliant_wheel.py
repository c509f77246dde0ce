"""Builds the wheel with scikit-build-core, then names the glibc it needs in its platform tag.

With the tag `linux` pip would install it on any machine, also where glibc is too old to load it.
`manylinux_2_38` (PEP 600) means glibc 2.38 or later.
"""

import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from scikit_build_core import build as _base

get_requires_for_build_sdist = _base.get_requires_for_build_sdist
get_requires_for_build_wheel = _base.get_requires_for_build_wheel
build_sdist = _base.build_sdist


def build_wheel(
    wheel_directory: str,
    config_settings: dict[str, Any] | None = None,
    metadata_directory: str | None = None,
) -> str:
    made = _base.build_wheel(wheel_directory, config_settings, metadata_directory)
    wheel = Path(wheel_directory, made)
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
        libraries = sorted(path for path in Path(folder).rglob("*.so*") if path.is_file())
        level = max(map(_glibc_needed, libraries))
    architecture = made.removesuffix(".whl").rpartition("-linux_")[2]
    tag = f"manylinux_{level[0]}_{level[1]}_{architecture}"
    renamed = subprocess.run(
        [sys.executable, "-m", "wheel", "tags", "--remove", "--platform-tag", tag, str(wheel)],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return renamed.stdout.split()[-1]


def _glibc_needed(library: Path) -> tuple[int, int]:
    """The newest glibc symbol version that the library was linked with."""
    said = subprocess.run(
        ["objdump", "--private-headers", str(library)],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    found = re.findall(r"\bGLIBC_(\d+)\.(\d+)", said.stdout)
    return max(((int(major), int(minor)) for major, minor in found), default=(2, 17))
