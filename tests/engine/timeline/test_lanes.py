"""Intervals that overlap get rows of their own."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.timeline.lanes import rows


@pytest.mark.parametrize(
    ("intervals", "expected"),
    [
        ([], []),
        ([(0, 5), (5, 7), (9, 10)], [0, 0, 0]),
        ([(0, 5), (4, 7), (5, 10)], [0, 1, 0]),
        ([(0, 9), (1, 2), (3, 4), (3, 5)], [0, 1, 1, 2]),
    ],
)
def test_the_lowest_free_row_is_taken(intervals: list[tuple[int, int]], expected: list[int]) -> None:
    start, end = (np.array(column, dtype=np.int64) for column in (tuple(zip(*intervals, strict=True)) or ((), ())))
    assert rows(start, end).tolist() == expected


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(1, 20)), max_size=30))
def test_no_row_overlaps_and_none_is_wasted(drawn: list[tuple[int, int]]) -> None:
    intervals = sorted((start, start + length) for start, length in drawn)
    start = np.array([begin for begin, _ in intervals], dtype=np.int64)
    end = np.array([finish for _, finish in intervals], dtype=np.int64)
    found = rows(start, end)
    for row in set(found.tolist()):
        own = found == row
        assert (start[own][1:] >= end[own][:-1]).all()
    most = max((sum(a <= moment < b for a, b in intervals) for moment, _ in intervals), default=0)
    assert len(set(found.tolist())) == most
