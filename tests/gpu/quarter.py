"""The most important proofs and measurements in ten minutes of a GPU, in the order of their worth.

Each part has a limit, after which it is ended. What it said lies in OUT/NAME.log while it runs, and how it ended in
OUT/summary.json before the next one begins: what is cut off has left what it had.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

PACK = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Part:
    name: str
    seconds: float  # its limit
    command: Sequence[str | Path]


@dataclass(frozen=True)
class Ended:
    name: str
    result: str  # passed, failed or cut off
    seconds: float


def parts(out: Path) -> list[Part]:
    """Together they have ten minutes."""
    run = PACK / "run"
    python = (sys.executable, "-B", PACK / "tests/gpu")
    story = (*python[:2], python[2] / "test_story.py")
    return [
        Part("facts", 20, (run, "facts")),
        Part("device-training", 60, (run, "test", "unit", "device_training_test")),
        Part("nccl-rounds", 90, (run, "test", "unit", "nccl_rounds_test")),
        Part("steps", 190, (run, "bench", "steps", "--json", out / "steps.json", "--profiles", out)),
        Part("learners-over-nccl", 110, (*story, "GpuStory.test_over_nccl")),
        Part("learners-over-frames", 80, (*story, "GpuStory.test_vision")),
        Part("checkpoint", 50, (*story, "GpuStory.test_from_a_checkpoint")),
    ]


def play(part: Part, out: Path) -> Ended:
    began = time.monotonic()
    with (out / f"{part.name}.log").open("wb") as log:
        process = subprocess.Popen(
            [str(word) for word in part.command], stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            result = "passed" if process.wait(part.seconds) == 0 else "failed"
        except subprocess.TimeoutExpired:
            result = "cut off"
        finally:
            # Its learners, too, which would hold memory of the GPU.
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
    return Ended(part.name, result, round(time.monotonic() - began, 1))


def play_all(given: Sequence[Part], out: Path) -> list[Ended]:
    out.mkdir(parents=True, exist_ok=True)
    ended: list[Ended] = []
    for part in given:
        print(f"{part.name}: at most {part.seconds:.0f} s", flush=True)
        ended.append(play(part, out))
        print(f"{part.name}: {ended[-1].result} after {ended[-1].seconds:.1f} s", flush=True)
        new = out / "summary.json.new"
        new.write_text(json.dumps([asdict(each) for each in ended], indent=1) + "\n")
        new.replace(out / "summary.json")
    return ended


def main() -> int:
    parser = argparse.ArgumentParser(prog="run quarter", description=__doc__)
    parser.add_argument("out", type=Path, help="the folder of the results")
    out = parser.parse_args().out.resolve()
    return 0 if all(each.result == "passed" for each in play_all(parts(out), out)) else 1


if __name__ == "__main__":
    sys.exit(main())
