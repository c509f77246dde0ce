"""Times of the API and how people read them. A time is seconds since 1970. No I/O."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone

_RFC3339 = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(\.\d{1,12})?(?:[Zz]|([+-])(\d\d):(\d\d))",
    re.ASCII,
)


def parse(text: str) -> float | None:
    """The time of an RFC 3339 text; None: it is none."""
    time = parse_exactly(text)
    return None if time is None else time[0] + time[1] / 1e9


def parse_exactly(text: str) -> tuple[int, int] | None:
    """The same as whole seconds and nanoseconds."""
    match = _RFC3339.fullmatch(text)
    if not match:
        return None
    try:
        zone = timezone.utc
        if match[8]:
            offset = timedelta(hours=int(match[9]), minutes=int(match[10]))
            zone = timezone(offset if match[8] == "+" else -offset)
        year, month, day, hour, minute, second = (int(match[part]) for part in range(1, 7))
        seconds = int(datetime(year, month, day, hour, minute, second, tzinfo=zone).timestamp())
    except (ValueError, OverflowError):
        return None
    return seconds, int((match[7] or ".").removeprefix(".").ljust(9, "0")[:9])


def shown(time: float) -> str:
    """The time as text, in UTC."""
    return datetime.fromtimestamp(time, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def span(seconds: float) -> str:
    """A duration in its two largest units: 45s, 12m, 3h05m, 4d03h. A negative one is 0s."""
    whole = max(0, int(seconds))
    if whole < 60:
        return f"{whole}s"
    minutes = whole // 60
    if minutes < 60:
        return f"{minutes}m"
    hours = minutes // 60
    if hours < 24:
        return f"{hours}h{minutes % 60:02}m"
    return f"{hours // 24}d{hours % 24:02}h"


def until(time: float | None, now: float) -> str:
    """How long until an estimate: a duration, "due" if the time has passed, empty without one."""
    if time is None:
        return ""
    return span(time - now) if time > now else "due"


def since(time: float | None, now: float) -> str:
    return "" if time is None else span(now - time)
