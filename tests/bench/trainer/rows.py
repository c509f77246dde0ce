"""Results of a bench: one row per measured value, for people and as JSON."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from quantiles import Quantile, quantile


@dataclass(frozen=True)
class Measured:
    """One repeatedly measured value."""

    p50: Quantile
    p90: Quantile
    count: int

    @staticmethod
    def of(values: Sequence[float]) -> "Measured":
        return Measured(quantile(values, 0.5), quantile(values, 0.9), len(values))


@dataclass(frozen=True)
class Aim:
    """A lower bound for the ratio to the rival, or an upper bound for the value."""

    of: Literal["ratio", "value"]
    bound: float

    def met(self, value: float, ratio: float | None) -> bool:
        if self.of == "value":
            return value <= self.bound
        return ratio is not None and ratio >= self.bound


@dataclass(frozen=True)
class Row:
    name: str
    value: float
    unit: str
    rival: float | None = None  # its value
    ratio: float | None = None  # how much better than the rival: 2 is twice as good
    aim: float | None = None  # None: the row is only reported
    aim_of: str | None = None
    met: bool | None = None
    interval: tuple[float, float] | None = None  # 95 % confidence interval of the value
    rival_interval: tuple[float, float] | None = None
    p90: float | None = None
    rival_p90: float | None = None
    repeats: int | None = None
    rival_repeats: int | None = None
    note: str | None = None


def measured_row(
    name: str,
    unit: str,
    ours: Measured,
    rival: Measured | None = None,
    *,
    aim: Aim | None = None,
    more_is_better: bool = False,
    note: str | None = None,
) -> Row:
    """Makes a row from the median and the 90th percentile."""
    ratio = None
    if rival and ours.p50.value > 0 and rival.p50.value > 0:
        ratio = rival.p50.value / ours.p50.value
        ratio = 1 / ratio if more_is_better else ratio
    return Row(
        name=name,
        value=_short(ours.p50.value),
        unit=unit,
        rival=_short(rival.p50.value) if rival else None,
        ratio=None if ratio is None else round(ratio, 3),
        aim=aim.bound if aim else None,
        aim_of=aim.of if aim else None,
        met=aim.met(ours.p50.value, ratio) if aim else None,
        interval=_interval(ours.p50),
        rival_interval=_interval(rival.p50) if rival else None,
        p90=_short(ours.p90.value),
        rival_p90=_short(rival.p90.value) if rival else None,
        repeats=ours.count,
        rival_repeats=rival.count if rival else None,
        note=note,
    )


def _interval(quantile: Quantile) -> tuple[float, float]:
    return _short(quantile.low), _short(quantile.high)


def _short(value: float) -> float:
    return round(value, 4)


def line(row: Row) -> str:
    text = f"{row.name:40} p50 {row.value:10.3f} {row.unit}"
    if row.interval:
        text += f" [{row.interval[0]:.3f}, {row.interval[1]:.3f}]"
    if row.p90 is not None:
        text += f"  p90 {row.p90:10.3f}"
    if row.rival is not None:
        text += f"   rival {row.rival:10.3f}"
    if row.ratio is not None:
        text += f"   {row.ratio:6.2f} x"
    if row.aim is not None:
        what = f"≤ {row.aim:g} {row.unit}" if row.aim_of == "value" else f"≥ {row.aim:g} x"
        text += f"  (aim {what}: {'met' if row.met else 'missed'})"
    if row.note:
        text += f"  {row.note}"
    return text


def write(rows: Iterable[Row], path: Path) -> None:
    present = [
        {key: value for key, value in asdict(row).items() if value is not None} for row in rows
    ]
    path.write_text("[\n" + ",\n".join(json.dumps(row) for row in present) + "\n]\n")
