"""What a frame is painted from, gathered once; painters read it and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from PySide6.QtCore import QRect
from PySide6.QtGui import QFont, QFontMetrics

from engine.ir.graph import Ints
from engine.session.lookup import lookup
from engine.session.session import Entry, Session
from engine.session.variant import Variant
from engine.timeline.timeline import Timeline
from views.theme import GRID, Theme
from views.timeline.axis import Window
from views.timeline.rectangles import Rectangles
from views.timeline.stack import Row, Stack

GUTTER = 33 * GRID
"""Width of the column with the lanes' names."""
AXIS = 6 * GRID
"""Height of the time axis at the top."""

Positions = Callable[[Ints], tuple[Ints, Ints]]
"""Rows of a timeline → where they start and how long they last, while the picture glides."""


@dataclass(frozen=True)
class Scene:
    """One frame's inputs."""

    session: Session
    stack: Stack
    window: Window
    theme: Theme
    width: int
    height: int
    scroll: int
    font: QFont
    small: QFont
    metrics: QFontMetrics
    small_metrics: QFontMetrics
    rectangles: Rectangles
    gliding: Mapping[str, Positions] = field(default_factory=dict)
    """Entry key → positions, while its picture moves."""
    running: Mapping[str, str] = field(default_factory=dict)
    """Entry key → what its job is doing."""

    @property
    def lanes(self) -> QRect:
        """Where slices are drawn."""
        return QRect(GUTTER, AXIS, self.width - GUTTER, self.height - AXIS)

    def y(self, top: float) -> float:
        """A height of the content as a height of the widget."""
        return top - self.scroll + AXIS

    def rows(self, number: int) -> tuple[Row, ...]:
        """Rows of an entry where they are seen."""
        return self.stack.placed(number, self.scroll)

    def entry(self, number: int) -> Entry:
        return self.session.entries[number]


def positions_of(timeline: Timeline) -> Positions:
    """Where slices lie when nothing moves."""
    return lambda rows: (timeline.start[rows], timeline.duration[rows])


def instruction_name(variant: Variant, instruction: int) -> str:
    """Name of an instruction, empty where the slice stands for none."""
    return lookup(variant).name(instruction)


@lru_cache(maxsize=64)
def _by_instruction(timeline: Timeline) -> tuple[Ints, Ints]:
    order = np.argsort(timeline.instruction, kind="stable")
    return order, timeline.instruction[order]


def rows_of(timeline: Timeline, instructions: frozenset[int] | tuple[int, ...]) -> Ints:
    """Rows of all slices of some instructions, ascending."""
    if not instructions:
        return np.empty(0, np.int64)
    order, sorted_ids = _by_instruction(timeline)
    wanted = np.fromiter(instructions, np.int64, len(instructions))
    first = np.searchsorted(sorted_ids, wanted, side="left")
    last = np.searchsorted(sorted_ids, wanted, side="right")
    return np.sort(np.concatenate([order[a:b] for a, b in zip(first, last, strict=True)]))
