"""Reads values of JSON objects that anybody may have written. A value of a wrong type counts as absent, and its path is
noted, so that a table can show that it is malformed."""

from __future__ import annotations

from collections.abc import Iterator

from . import times

_MAX_INTEGER = 2**63 - 1
MAX_ITEMS = 4096  # longer lists are cut
WHOLE = "."  # path of an object that is none


class Fields:
    def __init__(self, value: object, path: str = "", malformed: set[str] | None = None) -> None:
        self.malformed: set[str] = set() if malformed is None else malformed
        self._path = path
        self._value = value if isinstance(value, dict) else {}
        # Below the root an object may be absent.
        if not isinstance(value, dict) and (value is not None or not path):
            self.malformed.add(path or WHOLE)

    def _at(self, name: str) -> str:
        return f"{self._path}.{name}" if self._path else name

    def _wrong(self, name: str) -> None:
        self.malformed.add(self._at(name))

    def below(self, name: str) -> Fields:
        return Fields(self._value.get(name), self._at(name), self.malformed)

    def has(self, name: str) -> bool:
        return self._value.get(name) is not None

    def text(self, name: str) -> str | None:
        value = self._value.get(name)
        if isinstance(value, str):
            return value
        if value is not None:
            self._wrong(name)
        return None

    def integer(self, name: str) -> int | None:
        """Not negative: no number of the API that is read here is."""
        value = self._value.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MAX_INTEGER:
            return value
        if value is not None:
            self._wrong(name)
        return None

    def number(self, name: str) -> float | None:
        value = self._value.get(name)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e300:
            return float(value)
        if value is not None:
            self._wrong(name)
        return None

    def boolean(self, name: str) -> bool | None:
        value = self._value.get(name)
        if isinstance(value, bool):
            return value
        if value is not None:
            self._wrong(name)
        return None

    def time(self, name: str) -> float | None:
        text = self.text(name)
        time = None if text is None else times.parse(text[:64])
        if text is not None and time is None:
            self._wrong(name)
        return time

    def items(self, name: str) -> Iterator[Fields]:
        value = self._value.get(name)
        if value is not None and not isinstance(value, list):
            self._wrong(name)
            return
        for index, each in enumerate((value or [])[:MAX_ITEMS]):
            yield Fields(each, f"{self._at(name)}[{index}]", self.malformed)
