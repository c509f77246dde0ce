"""The GPU pack: one folder for a machine that has a GPU and its driver, but no network and nothing of ours.

It has compiled programs, the libraries that they need apart from glibc, the Python package, and the tests. """

import ctypes
import re
import shutil
from pathlib import Path

from . import build_image, product
from .counts import Counts
from .errors import DevError
from .progress import log_file, phase, run_to_log
from .settings import REPO

FOLDER = REPO / "build" / "gpu-pack"
MAX_BYTES = 45 << 20
MAX_GLIBC = (2, 39)
_TESTS = ("device_memory_test", "device_training_test", "kernels_test", "nccl_rounds_test")  # run by tests/gpu/run
_PROGRAMS = ("pliant-coordinator", *_TESTS, "kernel-rates")
# Relative to the repository; copied as they are, with the same names in the pack.
_SOURCES = (
    "tests/gpu",
    "tests/scenario/harness.py",
    "examples/resnet18",
    "examples/char_transformer",
)

_COLLECT = r"""
cd /src/build/gpu-pack
rm -rf pack
mkdir -p pack/bin pack/programs pack/lib
cmake --install . --component python --prefix pack/python --strip > /dev/null
for name in "$@"; do
  strip -o "pack/programs/$name" "bin/$name"
  cat > "pack/bin/$name" <<END
#!/bin/sh
pack=\$(cd "\$(dirname "\$0")/.." && pwd -P)
LD_LIBRARY_PATH="\$pack/lib\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}" exec "\$pack/programs/$name" "\$@"
END
  chmod +x "pack/bin/$name"
  ldd "bin/$name" | sed -n 's/.* => \(\/[^ ]*\) .*/\1/p'
done | sort -u | grep -vE '/(libc|libm|libdl|libpthread|librt|ld-linux[^/]*)\.so' > needed
while read -r library; do cp -L "$library" pack/lib/; done < needed
find pack/programs pack/lib pack/python -type f \( -name '*.so*' -o -perm -u+x \) -exec objdump -T {} + \
  | grep -oE 'GLIBC_[0-9]+\.[0-9]+' | sort -uV > glibc-versions
"""


def newest_glibc(versions: str) -> tuple[int, int]:
    """The newest of `GLIBC_2.17`, one a line; (0, 0): there is none."""
    found = re.findall(r"GLIBC_(\d+)\.(\d+)", versions)
    return max(((int(major), int(minor)) for major, minor in found), default=(0, 0))


def check(versions: str, size: int) -> None:
    """Raises DevError if the pack would not run on, or not fit, the machines it is for."""
    newest = newest_glibc(versions)
    if newest > MAX_GLIBC:
        raise DevError(
            f"the pack needs glibc {newest[0]}.{newest[1]}, later than {MAX_GLIBC[0]}.{MAX_GLIBC[1]}",
            remedy="link the newer function statically, or do without it",
        )
    if size > MAX_BYTES:
        raise DevError(f"the pack has {size >> 20} MiB; the limit is {MAX_BYTES >> 20} MiB")


def gpu_at_hand() -> bool:
    """Whether this machine has an NVIDIA GPU with its driver."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    count = ctypes.c_int()
    return bool(
        driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0 and count.value
    )


def run_unit_tests() -> Counts:
    """Makes the pack, and runs its tests on this machine."""
    make(FOLDER)
    log = log_file("gpu-unit")
    with phase("Running the GPU pack's tests"):
        log.write_bytes(b"")
        status = run_to_log([str(FOLDER / "run"), "test", "unit"], log)
    return Counts(failed=1) if status else Counts(passed=1)


def make(folder: Path) -> None:
    """Builds the pack and copies it to `folder`, which it replaces."""
    product.compile_preset("gpu-pack", "pliant", *_PROGRAMS)
    with phase("Making the GPU pack"):
        inside = ["sh", "-euc", _COLLECT, "sh", *_PROGRAMS]
        build_image.run(inside, log_file("gpu-pack"), "collecting the pack")
        built = build_image.build_directory() / "gpu-pack"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(built / "pack", folder)
        for name in _SOURCES:
            source, target = REPO / name, folder / name
            if source.is_dir():
                shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, target)
        (folder / "tests" / "gpu" / "run").rename(folder / "run")
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    check((built / "glibc-versions").read_text(), size)
    print(f"{folder}: {size / (1 << 20):.1f} MiB; on the machine with a GPU: {folder.name}/run")
