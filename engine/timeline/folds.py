"""Stretches of time in which iterations of a loop are not listed one by one, and the iteration that stands for them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from engine.ir.graph import Ints


@dataclass(frozen=True, eq=False)
class Folds:
    """Folded stretches of one timeline, ascending by start; columns of length f. Read-only.

    The iteration just before a stretch is listed, and stands for each of the stretch: its slices lie in
    [`start` - `sample`, `start`) and are at least as deep as `depth`.
    """

    instruction: Ints
    """Id of the loop."""
    start: Ints
    """Picoseconds, as all times here."""
    duration: Ints
    count: Ints
    """How many iterations are folded."""
    sample: Ints
    """How long the iteration before takes. `count` times that is `duration`, unless the loop changes its pace so often
    that not even one iteration of each pace is listed."""
    iteration: Ints
    """The first folded one, counted from 0."""
    depth: Ints
    """How many frames the loop's iterations lie in."""

    def __len__(self) -> int:
        return len(self.start)

    def at(self, time: int, slack: int = 0) -> int | None:
        """The innermost stretch at a time, or within `slack` of it."""
        found = np.flatnonzero((self.start <= time + slack) & (time - slack < self.start + self.duration))
        return int(found[np.argmax(self.depth[found])]) if len(found) else None


@cache
def no_folds() -> Folds:
    """Every iteration is listed."""
    nothing = np.empty(0, np.int64)
    nothing.flags.writeable = False
    return Folds(*[nothing] * 7)
