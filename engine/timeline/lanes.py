"""Puts intervals that overlap on rows of their own."""

from __future__ import annotations

import heapq

import numpy as np

from engine.ir.graph import Ints


def rows(start: Ints, end: Ints) -> Ints:
    """Row of each interval [start, end), the lowest that is free; `start` ascends. Shape as given."""
    if not len(start) or bool(np.all(start[1:] >= np.maximum.accumulate(end)[:-1])):
        return np.zeros(len(start), dtype=np.int64)
    taken: list[tuple[int, int]] = []
    free: list[int] = []
    made = 0
    result: list[int] = []
    for begin, finish in zip(start.tolist(), end.tolist(), strict=True):
        while taken and taken[0][0] <= begin:
            heapq.heappush(free, heapq.heappop(taken)[1])
        if free:
            row = heapq.heappop(free)
        else:
            row, made = made, made + 1
        heapq.heappush(taken, (finish, row))
        result.append(row)
    return np.array(result, dtype=np.int64)
