"""Computations that are folded to their first line, and which rows of a text are left to be shown."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from engine.ir.graph import Ints

_BEGINS = re.compile(r"^(?!HloModule\b)\S.*\{\s*$")


@dataclass(frozen=True, eq=False)
class Folds:
    """Blocks of a text and those that are folded."""

    count: int = 0
    """Rows of the text."""
    blocks: Mapping[int, int] = field(default_factory=dict)
    """First row of each computation → its last."""
    folded: frozenset[int] = frozenset()
    """First rows of those that are folded."""

    @staticmethod
    def of(lines: Sequence[str]) -> Folds:
        """The computations of a text, none folded."""
        blocks: dict[int, int] = {}
        begun = -1
        for number, line in enumerate(lines):
            if line.startswith("}") and begun >= 0:
                blocks[begun], begun = number, -1
            elif _BEGINS.match(line):
                begun = number
        return Folds(len(lines), blocks)

    def toggled(self, row: int) -> Folds:
        """Fold the block that begins in a row, or open it again; the same where none does."""
        return replace(self, folded=self.folded ^ {row}) if row in self.blocks else self

    def all_folded(self) -> Folds:
        return replace(self, folded=frozenset(self.blocks))

    def none_folded(self) -> Folds:
        return replace(self, folded=frozenset())

    def opened_to(self, rows: frozenset[int]) -> Folds:
        """With every block open that holds one of some rows."""
        holding = {first for first in self.folded if any(first < row <= self.blocks[first] for row in rows)}
        return replace(self, folded=self.folded - holding) if holding else self

    def shown(self) -> Ints:
        """Rows that are left, ascending."""
        there = np.ones(self.count, np.bool_)
        for first in self.folded:
            there[first + 1 : self.blocks[first] + 1] = False
        return np.flatnonzero(there)
