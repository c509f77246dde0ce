"""What a bench found: one row a figure, for people and as JSON."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from quantiles import Quantile


@dataclass(frozen=True)
class Row:
    name: str
    value: float
    unit: str
    rival: float | None = None  # its value of the same figure
    ratio: float | None = None  # how much better than the rival: 2 is twice as good
    aim: float | None = None  # of the ratio; none: reported only
    met: bool | None = None
    interval: tuple[float, float] | None = None  # of the value, 95 %
    rival_interval: tuple[float, float] | None = None
    p90: float | None = None
    rival_p90: float | None = None
    repeats: int | None = None


def time_row(
    name: str,
    ours: tuple[Quantile, Quantile],
    rival: tuple[Quantile, Quantile],
    repeats: int,
    aim: float | None,
) -> Row:
    """Of the median and the 90th percentile, in milliseconds; less is better."""
    ratio = rival[0].value / ours[0].value
    return Row(
        name=name,
        value=round(ours[0].value, 4),
        unit="ms",
        rival=round(rival[0].value, 4),
        ratio=round(ratio, 2),
        aim=aim,
        met=None if aim is None else ratio >= aim,
        interval=(round(ours[0].low, 4), round(ours[0].high, 4)),
        rival_interval=(round(rival[0].low, 4), round(rival[0].high, 4)),
        p90=round(ours[1].value, 4),
        rival_p90=round(rival[1].value, 4),
        repeats=repeats,
    )


def line(row: Row) -> str:
    text = f"{row.name:34} p50 {row.value:9.3f} {row.unit}"
    if row.interval:
        text += f" [{row.interval[0]:.3f}, {row.interval[1]:.3f}]"
    if row.p90 is not None:
        text += f"  p90 {row.p90:9.3f}"
    if row.rival is not None:
        text += f"   rival {row.rival:9.3f}   {row.ratio:5.2f} x"
    if row.aim is not None:
        text += f"  (aim {row.aim}: {'met' if row.met else 'missed'})"
    return text


def write(rows: Iterable[Row], path: Path) -> None:
    present = [
        {key: value for key, value in asdict(row).items() if value is not None} for row in rows
    ]
    path.write_text("[\n" + ",\n".join(json.dumps(row) for row in present) + "\n]\n")
