"""Bytes live over time, and which buffers are live at the worst moment."""

from __future__ import annotations

import numpy as np

from engine.ir.buffers import Buffers
from engine.ir.graph import Ints


def lifetimes(buffers: Buffers, place: Ints) -> tuple[Ints, Ints]:
    """First and last position at which each buffer is live, both inclusive, shape [b].

    `place` gives the position of each node. What the caller owns lives throughout, results live to the end.
    """
    end = max(len(place) - 1, 0)
    born = np.where(buffers.live_in, 0, place[buffers.node])
    died = born.copy()
    starts, items = buffers.readers
    read = np.flatnonzero(np.diff(starts))
    if len(read):
        last = np.maximum.reduceat(place[items], starts[read])
        died[read] = np.maximum(died[read], last)
    died[buffers.live_in | buffers.live_out] = end
    return born, died


def live_bytes(buffers: Buffers, place: Ints) -> Ints:
    """Bytes live at each position of an order, what the caller owns included, shape [n]."""
    born, died = lifetimes(buffers, place)
    change = np.zeros(len(place) + 1, dtype=np.int64)
    np.add.at(change, born, buffers.size)
    np.add.at(change, died + 1, -buffers.size)
    return np.cumsum(change[:-1])
