"""Runs sets of the C++ tests inside the build image and counts their cases."""

import contextlib
import os
import random
import shutil
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from . import build_image, control_plane, go_programs
from .counts import Counts
from .errors import last_lines
from .product import compile_preset
from .progress import log_file, phase, run_to_log, say
from .settings import STATE

# Each set is a label of ctest, and a target that builds its programs.
SETS = ("unit", "scenario", "property", "simulation", "fuzz", "fidelity", "integration", "python")
# Tests whose output is shown, even if they pass.
PRINTING = ("fidelity_test",)
# The output of a test that failed may be long. A sanitizer's report comes before the failure that
# it leads to.
SHOWN_LINES = 150
SERVED = "integration"  # its tests need a real API server
# The first seed of the tests that draw new ones. Only long runs have such tests: all others are the
# same each time.
NEW_SEED = "PLIANT_NEW_SEED"


def compile_sets(sets: Sequence[str], preset: str) -> None:
    compile_preset(preset, *(f"{name}_tests" for name in sets))


def together(sets: Sequence[str]) -> list[list[str]]:
    """Groups of sets, one for each run of ctest. Tests with a real API server share it, and the
    machine's two cores with it, so they have their own run."""
    groups = [name for name in sets if name != SERVED], [name for name in sets if name == SERVED]
    return [group for group in groups if group]


def run_sets(sets: Sequence[str], *, preset: str = "release", long: bool = False) -> Counts:
    """Runs the named sets of one preset, which must be compiled. The default preset is that of the
    images, so that the tested programs are those that run. `long` also runs tests with this label.
    """
    title = f"{', '.join(sets)} tests ({preset})"
    which = ["--label-regex", f"^({'|'.join(sets)})$"]
    which += [] if long else ["--label-exclude", "^long$"]
    seed = _new_seed() if long else None
    return _run(title, which, preset, log_name=sets[0], served=SERVED in sets, new_seed=seed)


def _new_seed() -> str:
    seed = os.environ.get(NEW_SEED) or str(random.SystemRandom().randrange(1 << 20, 1 << 31))
    say(f"new seeds begin at {seed}: {NEW_SEED}={seed} before the same command draws them again")
    return seed


def run_named(
    names: Sequence[str], *, preset: str, served: bool = False, fail_fast: bool = False
) -> Counts:
    """Runs tests by their names. `served`: they need an API server."""
    many = f"{len(names)} test{'s' if len(names) > 1 else ''}"
    title = f"{many}{' of a real API server' if served else ''} ({preset})"
    which = ["--tests-regex", f"^({'|'.join(names)})$"]
    which += ["--stop-on-failure"] if fail_fast else []
    log_name = "changed-served" if served else "changed"
    return _run(title, which, preset, log_name=log_name, served=served, fail_fast=fail_fast)


def _run(
    title: str,
    which: Sequence[str],
    preset: str,
    *,
    log_name: str,
    served: bool,
    fail_fast: bool = False,
    new_seed: str | None = None,
) -> Counts:
    log = log_file(f"test-{preset}-{log_name}")
    results = build_image.build_directory() / preset / "results"
    shutil.rmtree(results, ignore_errors=True)
    results.mkdir(parents=True)
    inside = f"/src/build/{preset}"
    # fmt: off
    command = ["ctest", "--test-dir", inside, f"-j{1 if served else 2}", *which,
               "--no-tests=error", "--output-on-failure",
               "--output-junit", f"{inside}/results/ctest.junit"]
    # fmt: on
    environment = {"GTEST_OUTPUT": f"xml:{inside}/results/", **_SANITIZERS}
    environment |= {"GTEST_FAIL_FAST": "1"} if fail_fast else {}
    environment |= {NEW_SEED: new_seed} if new_seed else {}
    with phase(f"Running the {title}"), contextlib.ExitStack() as resources:
        mounts: dict[Path, str] = {}
        if served:
            kubeconfig, mounts = resources.enter_context(api_server())
            environment |= {
                "PLIANT_TEST_KUBECONFIG": str(kubeconfig),
                "PLIANT_TEST_KUBECTL": str(go_programs.folder() / "kubectl"),
            }
        log.write_bytes(b"")
        line = build_image.command(command, environment=environment, mounts=mounts)
        status = run_to_log(line, log)
    counts = count_results(results)
    if status != 0 and not counts.failed:
        counts += Counts(failed=1)  # ctest itself failed
    for name, output in printed(results):
        say(f"{name}:\n{output}")
    say(f"{title}: {counts}")
    if counts.failed:
        say(f"last lines of {log}:\n{last_lines(log, 60)}")
    return counts


_SANITIZERS = {
    "ASAN_OPTIONS": "detect_stack_use_after_return=1:strict_string_checks=1",
    "UBSAN_OPTIONS": "print_stacktrace=1",
    "TSAN_OPTIONS": "second_deadlock_stack=1",
}


@contextlib.contextmanager
def api_server() -> Iterator[tuple[Path, dict[Path, str]]]:
    """A control plane while the tests run: its kubeconfig, and the mounts of host folders that they
    need."""
    programs = go_programs.build()
    STATE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=STATE, prefix="integration-") as scratch:
        directory = Path(scratch)
        try:
            kubeconfig = control_plane.loopback_up(directory, programs)
            yield kubeconfig, {directory: str(directory), programs: str(programs)}
        finally:
            control_plane.loopback_down(directory)


def count_results(results: Path) -> Counts:
    """Adds up the cases of the GoogleTest programs. A program without a report counts as one
    case."""
    counts = Counts()
    report = results / "ctest.junit"
    if not report.exists():
        return Counts(failed=1)
    for test in ElementTree.parse(report).getroot().iter("testcase"):
        skipped = test.find("skipped")
        if skipped is not None and skipped.get("message", "").startswith("SKIP_"):
            counts += Counts(skipped=1)
            continue
        passed = test.find("failure") is None and test.get("status") in (None, "run")
        cases = _google_test_counts(results / f"{test.get('name')}.xml")
        if cases is None or (not passed and not cases.failed):
            cases = (cases or Counts()) + (Counts(passed=1) if passed else Counts(failed=1))
        counts += replace(cases, failures=(test.get("name", "?"),)) if cases.failed else cases
    return counts


def printed(results: Path) -> list[tuple[str, str]]:
    """The names and outputs of the tests whose output is shown: a CI's log is often all that one
    has of a failure that is rare."""
    report = results / "ctest.junit"
    if not report.exists():
        return []
    tests = ElementTree.parse(report).getroot().iter("testcase")
    shown = []
    for test in tests:
        name, output = test.get("name", "?"), test.findtext("system-out", "").strip()
        if name in PRINTING:
            shown.append((name, output))
        elif test.get("status") == "fail":
            shown.append((name, _beginning_and_end(output.splitlines())))
    return shown


def _beginning_and_end(lines: Sequence[str]) -> str:
    if len(lines) > SHOWN_LINES:
        half = SHOWN_LINES // 2
        cut = f"... {len(lines) - 2 * half} lines ..."
        lines = [*lines[:half], cut, *lines[-half:]]
    return "\n".join(lines)


def _google_test_counts(report: Path) -> Counts | None:
    if not report.exists():
        return None
    try:
        suites = ElementTree.parse(report).getroot()
    except ElementTree.ParseError:  # the program crashed while it wrote the report
        return None
    total, failed, disabled = (
        int(suites.get(name, "0")) for name in ("tests", "failures", "disabled")
    )
    skipped = sum(1 for case in suites.iter("testcase") if case.get("result") == "skipped")
    return Counts(passed=total - failed - disabled - skipped, failed=failed, skipped=skipped)
