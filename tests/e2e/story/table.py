"""Tables as text. Pure."""

from collections.abc import Sequence

from .world import Training, World

TRAININGS_HEADER = (
    "training", "phase", "priority", "GPUs", "wants", "membership", "epoch", "step", "loss", "samples/s", "reason",
)  # fmt: skip


def layout(header: Sequence[str], rows: Sequence[Sequence[str]], width: int | None = None) -> list[str]:
    """Columns are as wide as their widest cell; numbers are right-aligned. Lines are cut at `width`."""
    table = [list(header), *map(list, rows)]
    widths = [max(len(row[column]) for row in table) for column in range(len(header))]
    lines = []
    for row in table:
        cells = [
            cell.rjust(size) if _is_number(cell) else cell.ljust(size) for cell, size in zip(row, widths, strict=True)
        ]
        line = "  ".join(cells).rstrip()
        lines.append(line if width is None or len(line) <= width else line[: width - 1] + "…")
    return lines


def trainings(world: World) -> list[list[str]]:
    """One row per training, in the order of their names."""
    return [_row(training) for _, training in sorted(world.trainings.items())]


def _row(training: Training) -> list[str]:
    job, progress = training.job, training.progress
    step = _text(progress and progress.step)
    if progress and progress.steps_total:
        step += f"/{progress.steps_total}"
    running = progress is not None and not job.finished
    return [
        job.name,
        job.phase or "-",
        str(job.priority),
        str(training.gpus_held),
        str(job.learners_desired),
        f"{progress.membership} ({len(progress.members)})" if running and progress.membership else "-",
        _text(progress and progress.epoch),
        step,
        _text(progress and progress.loss, ".4f"),
        _text(progress.samples_per_second, ".0f") if running else "-",
        job.reason,
    ]


def sentence(training: Training) -> str:
    """The content of a row as a sentence, for output that is not a terminal."""
    name, phase, priority, held, wanted, membership, epoch, step, loss, speed, reason = _row(training)
    parts = [f"{name} {phase}, priority {priority}, {held} of {wanted} GPUs"]
    if membership != "-":
        parts.append(f"membership {membership}, epoch {epoch}, step {step}, loss {loss}, {speed} samples/s")
    return "; ".join([*parts, *([reason] if reason else [])])


def _text(value: float | None, form: str = "") -> str:
    return "-" if value is None else format(value, form)


def _is_number(cell: str) -> bool:
    return cell.replace(".", "", 1).replace("/", "", 1).replace(" s", "", 1).isdigit()
