"""Numbers as people read them, always with their unit."""

from __future__ import annotations

_PS_PER_US = 1_000_000


def microseconds(picoseconds: int) -> float:
    """For JSON and tables: integer picoseconds as microseconds."""
    return picoseconds / _PS_PER_US


def duration(picoseconds: int) -> str:
    """``412 µs``, ``13.31 ms``: three or four digits."""
    us = picoseconds / _PS_PER_US
    for limit, factor, unit in ((1.0, 1e3, "ns"), (1e3, 1.0, "µs"), (1e6, 1e-3, "ms")):
        if abs(us) < limit:
            return f"{_digits(us * factor)} {unit}"
    return f"{_digits(us * 1e-6)} s"


def size(count: int) -> str:
    """``1.8 GB``: powers of 1000."""
    value = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000:
            return f"{_digits(value)} {unit}" if unit != "B" else f"{count} B"
        value /= 1000
    return f"{_digits(value)} TB"


def _digits(value: float) -> str:
    magnitude = abs(value)
    if magnitude >= 100 or value == 0:
        return f"{value:.0f}"
    return f"{value:.1f}" if magnitude >= 10 else f"{value:.2f}"


def change(value: float, base: float) -> str:
    """``−48 %`` of `value` against `base`; empty where there is nothing to compare with."""
    if not base:
        return ""
    percent = (value / base - 1) * 100
    sign = "+" if percent > 0 else "−" if percent < 0 else "±"
    return f"{sign}{abs(percent):.1f} %"
