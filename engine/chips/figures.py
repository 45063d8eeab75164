"""Figures out of TOML tables, with errors that name the key and say what was expected."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from math import inf
from typing import Any

from engine.errors import InputError


class Figures:
    """A TOML table whose every key must be asked for once; errors name the key."""

    def __init__(self, values: dict[str, Any], where: str) -> None:
        self._values = values
        self.where = where
        self._asked: set[str] = set()

    def number(self, key: str, default: float | None = None) -> float:
        value = self._get(key, default)
        given = key in self._values
        if given and (isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < inf):
            raise InputError(f"{self.where}{key}: a number that is not negative was expected, but {value!r} came")
        return float(value)

    def positive(self, key: str, default: float | None = None) -> float:
        value = self.number(key, default)
        if value == 0:
            raise InputError(f"{self.where}{key}: a number above 0 was expected, but 0 came")
        return value

    def whole(self, key: str, default: int | None = None, *, least: int = 1) -> int:
        value = self.number(key, default)
        if value != int(value) or value < least:
            raise InputError(f"{self.where}{key}: a whole number from {least} on was expected, but {value:g} came")
        return int(value)

    def text(self, key: str, default: str | None = None) -> str:
        value = self._get(key, default)
        if not isinstance(value, str):
            raise InputError(f"{self.where}{key}: text was expected, but {value!r} came")
        return value

    def integers(self, key: str, count: int) -> tuple[int, ...]:
        value = self._get(key, None)
        if not isinstance(value, list) or len(value) != count or not all(type(v) is int and v > 0 for v in value):
            raise InputError(f"{self.where}{key}: a list of {count} integers above 0 was expected, but {value!r} came")
        return tuple(value)

    def texts(self, key: str, default: tuple[str, ...] = ()) -> tuple[str, ...]:
        value = self._get(key, list(default))
        if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
            raise InputError(f"{self.where}{key}: a list of texts was expected, but {value!r} came")
        return tuple(value)

    def table(self, key: str, needed: bool = True) -> Figures:
        value = self._get(key, None if needed else {})
        if not isinstance(value, dict):
            raise InputError(f"{self.where}{key}: a table was expected, but {value!r} came")
        return Figures(value, f"{self.where}{key}.")

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def boolean(self, key: str, default: bool) -> bool:
        value = self._get(key, default)
        if not isinstance(value, bool):
            raise InputError(f"{self.where}{key}: true or false was expected, but {value!r} came")
        return value

    def finish(self) -> None:
        """Raise InputError for a key that nobody asked for: a slip of the pen must not pass as a default."""
        for key in self._values:
            if key not in self._asked:
                close = difflib.get_close_matches(key, self._asked, n=1)
                hint = f" (did you mean '{close[0]}'?)" if close else ""
                raise InputError(f"{self.where}{key}: no figure has this name{hint}")

    def _get(self, key: str, default: Any) -> Any:
        self._asked.add(key)
        value = self._values.get(key, default)
        if value is None:
            raise InputError(f"{self.where}{key} is missing")
        return value
