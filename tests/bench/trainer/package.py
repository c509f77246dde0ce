"""Measures what the Python package costs before the first step, and in a script: the time to import
it and to attach a model, and the number of changed lines in the examples."""

import ast
import difflib
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import trainers
from rows import Measured, Row, line, measured_row

_HERE = Path(__file__).parent
_EXAMPLES = _HERE.parents[2] / "examples"


def measure(binaries: Path, *, quick: bool) -> Iterator[Row]:
    del binaries
    starts = [_start() for _ in range(1 if quick else 10)]
    milliseconds = {name: [1000 * start[name] for start in starts] for name in starts[0]}
    note = "with all that it needs of its own; torch was imported before"
    yield _shown(
        measured_row(
            "python/import", "ms", Measured.of(milliseconds["pliant"]),
            Measured.of(milliseconds["torch"]), note=f"{note} (the rival)",
        )
    )  # fmt: skip
    yield _shown(measured_row("python/attach", "ms", Measured.of(milliseconds["attach"])))
    for plain in sorted((_HERE / "plain").glob("*.py")):
        elastic = _EXAMPLES / plain.stem / "train.py"
        added, removed = changed_lines(plain.read_text(), elastic.read_text())
        yield _shown(
            measured_row(
                f"python/lines/{plain.stem}", "lines", Measured.of([added]),
                note=f"added or changed; they take the place of {removed}",
            )
        )  # fmt: skip


def _shown(row: Row) -> Row:
    print(line(row), flush=True)
    return row


def _start() -> dict[str, float]:
    """Seconds, measured in a new process."""
    with tempfile.TemporaryDirectory() as folder:
        started = subprocess.run(
            [sys.executable, str(_HERE / "startup.py")],
            env=trainers.environment(PLIANT_CHECKPOINT_DIR=folder),
            stdout=subprocess.PIPE,
            check=True,
        )
    return json.loads(started.stdout)


def changed_lines(plain: str, elastic: str) -> tuple[int, int]:
    """Number of added and removed lines in a script's `main` and in its imports of Pliant."""
    difference = difflib.ndiff(_own_lines(plain), _own_lines(elastic))
    signs = [each[0] for each in difference]
    return signs.count("+"), signs.count("-")


def _own_lines(script: str) -> list[str]:
    lines = script.splitlines()
    tree = ast.parse(script)
    found = []
    for node in tree.body:
        imports = isinstance(node, ast.Import) and any(a.name == "pliant" for a in node.names)
        if imports or (isinstance(node, ast.FunctionDef) and node.name == "main"):
            found += lines[node.lineno - 1 : node.end_lineno]
    return [each for each in found if each.strip() and not each.strip().startswith("#")]
