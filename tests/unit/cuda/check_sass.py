"""Checks the machine code of the kernels: usage: check_sass.py NVDISASM FOLDER, where the folder has NUMBER.cubin and
NUMBER.resources, the assembler's report, for each generation of GPUs."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

MAX_REGISTERS = 128  # of 65,536: two blocks of 256 threads still fit twice
LARGE = {"pliant_tree_sum_16": MAX_REGISTERS}  # others have at most 80


def functions(nvdisasm: str, cubin: Path) -> Iterator[tuple[str, list[str]]]:
    """The names of the kernels, and the instructions of each: "LDG.E.128"."""
    listing = subprocess.run([nvdisasm, "-c", cubin], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                             text=True, check=True).stdout  # fmt: skip
    for part in re.split(r"^\.text\.", listing, flags=re.MULTILINE)[1:]:
        name, _, body = part.partition(":")
        # /*0040*/  @P0 LDG.E.128 R4, desc[UR4][R2.64] ;
        yield name, re.findall(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9.]*)", body)


def registers(report: str) -> dict[str, int]:
    found = re.findall(r"entry function '(\w+)'.*?Used (\d+) registers", report, flags=re.DOTALL)
    return {name: int(count) for name, count in found}


def stack_bytes(report: str) -> dict[str, int]:
    """The memory that a thread of each kernel takes besides its registers."""
    found = re.findall(r"properties for (\w+)\n\s*(\d+) bytes stack frame, (\d+) bytes spill", report)
    return {name: int(frame) + int(spilled) for name, frame, spilled in found}


def problems(name: str, instructions: list[str], used: int) -> Iterator[str]:
    if not instructions:
        yield "no instructions were found"
    local = sorted({each for each in instructions if each.startswith(("LDL", "STL"))})
    if local:
        yield f"uses local memory: {', '.join(local)}"
    if not any(word in name for word in ("unaligned", "checksum", "squares")):
        for operation in ("LDG", "STG"):
            if not any(each.startswith(operation) and each.endswith(".128") for each in instructions):
                yield f"has no {operation} of 128 bits"
    # Divisions have fused operations: their algorithm is exact. A product and a sum have none.
    if "gather" in name:
        fused = sorted({each for each in instructions if each.startswith("FFMA")})
        if fused:
            yield f"fuses products with sums: {', '.join(fused)}"
        if not any(each.startswith("FMUL") for each in instructions):
            yield "has no product"
    if "squares" in name and any(each.startswith("DFMA") for each in instructions):
        yield "fuses squares with sums"
    if "gather" in name and any(".FTZ" in each for each in instructions):
        yield "flushes denormals"
    if used > LARGE.get(name, 80):
        yield f"uses {used} registers"


def main() -> int:
    nvdisasm, folder = sys.argv[1], Path(sys.argv[2])
    failed = kernels = 0
    for cubin in sorted(folder.glob("*.cubin")):
        report = cubin.with_suffix(".resources").read_text()
        used, stack = registers(report), stack_bytes(report)
        for name, instructions in functions(nvdisasm, cubin):
            kernels += 1
            if stack[name] > 0:
                print(f"{cubin.name}: {name}: has {stack[name]} bytes of local memory")
                failed += 1
            for problem in problems(name, instructions, used[name]):
                print(f"{cubin.name}: {name}: {problem}")
                failed += 1
    print(f"{kernels} kernels were checked, {failed} problems")
    return 1 if failed or kernels < 3 * 12 else 0


if __name__ == "__main__":
    sys.exit(main())
