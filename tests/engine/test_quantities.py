from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import UsageError
from engine.quantities import (
    bytes_text,
    count_text,
    exact_time_text,
    gain_text,
    parse_bytes,
    parse_cap,
    signed_time_text,
    time_text,
)


@pytest.mark.parametrize(
    ("picoseconds", "text"),
    [
        (0, "0 µs"),
        (500, "0.50 ns"),
        (412_000_000, "412 µs"),
        (13_310_000_000, "13.3 ms"),
        (6_921_000_000, "6.92 ms"),
        (-412_000_000, "−412 µs"),
        (155_383_899_014_385, "155 s"),
    ],
)
def test_times(picoseconds: int, text: str) -> None:
    assert time_text(picoseconds) == text


def test_exact_times_keep_every_digit() -> None:
    assert exact_time_text(1_234_567_891) == "1,234.567891 µs"
    assert exact_time_text(2_000_000) == "2 µs"


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [(100, 52, "−48 %"), (100, 104, "+4.0 %"), (1000, 1000, "±0 %"), (0, 5, ""), (100_000, 99_999, "±0 %")],
)
def test_gains(before: int, after: int, text: str) -> None:
    assert gain_text(before, after) == text


def test_differences_and_counts() -> None:
    assert signed_time_text(412_000_000) == "+412 µs"
    assert count_text(1.37e12) == "1.37 T"
    assert count_text(12) == "12"


@pytest.mark.parametrize(
    "text", ["", "much", "28 parsecs", "-3GiB", "1e9", "100000000000000000000TiB", "4194305TiB", "9" * 400]
)
def test_amounts_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="28GiB"):
        parse_bytes(text)


@pytest.mark.parametrize("text", ["0", "0.4B", "a lot", "5000000TiB"])
def test_caps_that_nothing_keeps_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="28GiB"):
        parse_cap(text)


def test_amounts() -> None:
    assert parse_bytes("4194304TiB") == 1 << 62
    assert parse_cap("1") == 1
    assert parse_bytes("28GiB") == 28 << 30
    assert parse_bytes("1.5 MB") == 1_500_000
    assert parse_bytes("4096") == 4096


@given(st.integers(0, 2**45))
def test_amounts_read_back_within_their_digits(size: int) -> None:
    assert abs(parse_bytes(bytes_text(size)) - size) <= max(1, size * 0.006)
