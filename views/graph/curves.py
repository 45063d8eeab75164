"""The lines that edges are drawn with: smooth from one bend to the next, cut into short straight pieces."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from engine.ir.graph import Bools, Ints
from engine.layout.outline import Side
from engine.layout.picture import Picture

PIECES = 6
"""Straight pieces of one curve."""
_STRONG = 8
"""Wires from which an edge between groups is drawn thicker."""
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Segments:
    """Lines ``x0 y0 x1 y1`` of the edges of one side, upper end first, ordered by it. Shape of `lines` [s, 4]."""

    lines: Floats
    turned: Bools
    strong: Bools
    last: Bools
    """Where an edge ends: it gets a tip."""
    upwards: Bools
    """Where that end is the upper one."""

    def within(self, left: float, top: float, right: float, bottom: float) -> Ints:
        """Numbers of the lines that may touch a rectangle, ascending."""
        first, last = np.searchsorted(self._reach, top), np.searchsorted(self.lines[:, 1], bottom, side="right")
        lines = self.lines[first:last]
        low, high = np.minimum(lines[:, 0], lines[:, 2]), np.maximum(lines[:, 0], lines[:, 2])
        inside = (low <= right) & (high >= left) & (lines[:, 3] >= top)
        return np.flatnonzero(inside) + first

    @cached_property
    def _reach(self) -> Floats:
        """The lowest point of each line and those before it: ascending, as the upper ends are."""
        return np.maximum.accumulate(self.lines[:, 3]) if len(self.lines) else self.lines[:, 3]


def segments_of(picture: Picture, side: Side, *, smooth: bool) -> Segments:
    """The lines of every edge that a side has."""
    counts = np.diff(picture.starts)
    owner = np.repeat(np.arange(len(counts)), counts)
    point = np.arange(len(owner))
    ends = point == picture.starts[owner + 1] - 1
    here = ((picture.sides & int(side)) > 0)[owner] & ~ends
    first = np.flatnonzero(here)
    edge = owner[first]
    lines = np.stack([picture.x[first], picture.y[first], picture.x[first + 1], picture.y[first + 1]], axis=1)
    last = ends[first + 1]
    if smooth:
        lines, edge, last = _smoothed(lines, edge, last)
    turned = lines[:, 1] > lines[:, 3]
    lines[turned] = lines[turned][:, [2, 3, 0, 1]]
    order = np.argsort(lines[:, 1], kind="stable")
    edge = edge[order]
    return Segments(
        lines[order], picture.turned[edge], picture.wires[edge] >= _STRONG, last[order], turned[order] & last[order]
    )


def _smoothed(lines: Floats, edge: npt.NDArray[np.int64], last: Bools) -> tuple[Floats, npt.NDArray[np.int64], Bools]:
    """Slanted lines become S-curves that leave and arrive upright; upright ones stay."""
    slanted = np.abs(lines[:, 2] - lines[:, 0]) > 0.75
    upright = ~slanted
    t = np.linspace(0.0, 1.0, PIECES + 1)
    ease = t * t * (3.0 - 2.0 * t)
    bent = lines[slanted]
    x = bent[:, 0:1] + (bent[:, 2:3] - bent[:, 0:1]) * ease
    y = bent[:, 1:2] + (bent[:, 3:4] - bent[:, 1:2]) * t
    pieces = np.stack([x[:, :-1], y[:, :-1], x[:, 1:], y[:, 1:]], axis=2).reshape(-1, 4)
    ends = np.zeros((len(bent), PIECES), np.bool_)
    ends[:, -1] = last[slanted]
    return (
        np.concatenate([lines[upright], pieces]),
        np.concatenate([edge[upright], np.repeat(edge[slanted], PIECES)]),
        np.concatenate([last[upright], ends.reshape(-1)]),
    )
