"""Times, sizes and counts as text: one way of writing each, in every output."""

from __future__ import annotations

import re

from engine.errors import UsageError

MINUS = "−"
MOST_BYTES = 1 << 62
"""Sums of two still fit into 64 bits."""
PICOSECONDS = {"ps": 1, "ns": 10**3, "µs": 10**6, "ms": 10**9, "s": 10**12}


def microseconds(picoseconds: int) -> float:
    """For JSON and tables of numbers."""
    return picoseconds / PICOSECONDS["µs"]


def time_text(picoseconds: int) -> str:
    """Three or four significant digits in the unit that fits: ``13.31 ms``, ``412 µs``, ``0``."""
    if picoseconds == 0:
        return "0 µs"
    sign = MINUS if picoseconds < 0 else ""
    size = abs(picoseconds)
    unit = "ns"
    for candidate in ("µs", "ms", "s"):
        if size >= PICOSECONDS[candidate]:
            unit = candidate
    return f"{sign}{_significant(size / PICOSECONDS[unit])} {unit}"


def exact_time_text(picoseconds: int) -> str:
    """Microseconds with every digit that is there: ``1,234.567891 µs``."""
    sign = MINUS if picoseconds < 0 else ""
    whole, rest = divmod(abs(picoseconds), PICOSECONDS["µs"])
    fraction = f".{rest:06d}".rstrip("0").rstrip(".")
    return f"{sign}{whole:,}{fraction} µs"


def gain_text(before: int, after: int) -> str:
    """Change of a time as a percentage: ``−48 %`` is faster; ``±0 %`` where it rounds to nothing."""
    if before <= 0:
        return ""
    change = 100.0 * (after - before) / before
    text = f"{abs(change):.1f}" if abs(change) < 9.95 else f"{abs(change):.0f}"
    if float(text) == 0.0:
        return "±0 %"
    return f"{MINUS if change < 0 else '+'}{text} %"


def signed_time_text(picoseconds: int) -> str:
    """A difference: ``+412 µs``."""
    return time_text(picoseconds) if picoseconds <= 0 else f"+{time_text(picoseconds)}"


def bytes_text(size: int) -> str:
    """Binary units as accelerators' memories are sold: ``1.83 GiB``."""
    value = float(abs(size))
    sign = MINUS if size < 0 else ""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024.0:
            return f"{sign}{_significant(value) if unit != 'B' else int(value)} {unit}"
        value /= 1024.0
    return f"{sign}{_significant(value)} TiB"


def counted_text(count: int, name: str) -> str:
    """``1 collective``, ``1,200 collectives``."""
    return f"{count:,} {name}{'' if count == 1 else 's'}"


def count_text(count: float) -> str:
    """Decimal prefixes for operations: ``1.37 T``."""
    value = float(count)
    for unit in ("", "k", "M", "G", "T"):
        if abs(value) < 1000.0:
            return f"{_significant(value)} {unit}".rstrip() if unit else f"{value:.0f}"
        value /= 1000.0
    return f"{_significant(value)} P"


def _significant(value: float) -> str:
    if value >= 999.5:
        return f"{value:,.0f}"
    if value >= 99.95:
        return f"{value:.0f}"
    if value >= 9.995:
        return f"{value:.1f}"
    return f"{value:.2f}"


def parse_bytes(text: str) -> int:
    """``28GiB``, ``1.5 MB`` or a plain number of bytes, up to 2^62 of them. Raises UsageError."""
    found = _BYTES.fullmatch(text.replace(",", ""))
    factor = _FACTORS.get(found[2].upper()) if found is not None else None
    if found is None or factor is None:
        raise UsageError(f"an amount of memory such as 28GiB was expected, but '{text}' came")
    size = float(found[1]) * factor
    if size > MOST_BYTES:
        raise UsageError(
            f"an amount of memory such as 28GiB, at most {MOST_BYTES >> 40:,} TiB, was expected, but '{text}' came"
        )
    return int(size)


def parse_cap(text: str) -> int:
    """An amount of memory that something could keep within. Raises UsageError."""
    cap = parse_bytes(text)
    if cap < 1:
        raise UsageError(f"a memory cap such as 28GiB was expected, 1 byte or more, but '{text}' came")
    return cap


_BYTES = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*")
_FACTORS = {"": 1, "B": 1} | {
    f"{prefix}{unit}": scale ** (power + 1)
    for unit, scale in (("B", 1000), ("IB", 1024))
    for power, prefix in enumerate("KMGT")
}
