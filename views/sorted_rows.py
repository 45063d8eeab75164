"""A table whose rows are numbers of things that lie elsewhere, in an order of the user's: the twins of pictures."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, Qt
from PySide6.QtWidgets import QWidget

from engine.ir.graph import Ints
from views.plain import LEFT, RIGHT

_Index = QModelIndex | QPersistentModelIndex
_NOWHERE = QModelIndex()
_ARROW = 4 * " "
"""Room for the arrow that says by what is sorted: styles draw it over headings that stand at the right."""


class SortedRows(QAbstractTableModel):
    """`text` says what stands in a cell, `ascending` in which order the things come by a column."""

    def __init__(
        self,
        columns: Sequence[str],
        figures: Collection[int],
        sorted_by: tuple[int, Qt.SortOrder],
        parent: QWidget | None = None,
    ) -> None:
        """`figures` are the columns that stand at the right."""
        super().__init__(parent)
        self._columns = columns
        self._figures = figures
        self._sorted = sorted_by
        self._order: Ints = np.empty(0, np.int64)

    def text(self, thing: int, column: int) -> str:
        raise NotImplementedError

    def tip(self, thing: int, column: int) -> str:
        """What the mouse is told over a cell: the whole text, where the column is too narrow for it."""
        return self.text(thing, column)

    def ascending(self, column: int) -> Ints:
        """Numbers of all things, ordered by a column."""
        raise NotImplementedError

    def things_changed(self) -> None:
        """Show what there is now."""
        self.beginResetModel()
        self._arrange()
        self.endResetModel()

    def thing_at(self, row: int) -> int:
        """What is shown in a row."""
        return int(self._order[row])

    def row_of(self, thing: int) -> int:
        """The row that shows something, -1 where none does."""
        found = np.flatnonzero(self._order == thing)
        return int(found[0]) if len(found) else -1

    def rowCount(self, parent: _Index = _NOWHERE) -> int:
        return 0 if parent.isValid() else len(self._order)

    def columnCount(self, parent: _Index = _NOWHERE) -> int:
        return 0 if parent.isValid() else len(self._columns)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if orientation == Qt.Orientation.Horizontal and role == Qt.ItemDataRole.DisplayRole:
            return self._columns[section] + (_ARROW if section == self._sorted[0] else "")
        if orientation == Qt.Orientation.Horizontal and role == Qt.ItemDataRole.TextAlignmentRole:
            return RIGHT if section in self._figures else LEFT
        return None

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid():
            return None
        if role == Qt.ItemDataRole.TextAlignmentRole and index.column() in self._figures:
            return RIGHT
        if role == Qt.ItemDataRole.DisplayRole:
            return self.text(self.thing_at(index.row()), index.column())
        if role == Qt.ItemDataRole.ToolTipRole:
            return self.tip(self.thing_at(index.row()), index.column())
        return None

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        self.layoutAboutToBeChanged.emit()
        self._sorted = (column, order)
        self._arrange()
        self.layoutChanged.emit()

    def _arrange(self) -> None:
        column, direction = self._sorted
        order = self.ascending(column)
        self._order = order[::-1] if direction == Qt.SortOrder.DescendingOrder else order
