"""Kinds of asynchronous operations, and how many of each may be in flight."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class Kind(IntEnum):
    """What an instruction is to a budget and to the timeline's lanes."""

    COMPUTE = 0
    PERMUTE = 1
    ALL_GATHER = 2
    REDUCE_SCATTER = 3
    ALL_REDUCE = 4
    ALL_TO_ALL = 5
    COPY = 6
    """Asynchronous copies and slices between memories."""
    OTHER = 7
    """Sends, receives and other asynchronous operations."""


@dataclass(frozen=True, slots=True)
class Budget:
    """How many asynchronous operations may be in flight at any moment; callees count while they run.

    The text form is ``4``, or by kind ``permute=4,gather=1,total=5``.
    """

    total: int | None = None
    """Of all kinds together; None is unlimited."""
    by_kind: tuple[tuple[Kind, int], ...] = ()
    """Limits of single kinds, ascending by kind; a kind that is missing is limited by `total` only."""
