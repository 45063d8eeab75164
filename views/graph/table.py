"""The shown nodes as a table: the graph's twin for the keyboard and for screen readers, sorted by any figure."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, Qt
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableView, QWidget

from engine.layout.figures import Figure
from engine.layout.outline import Outline
from engine.quantities import bytes_text, time_text
from views.theme import GRID

FIGURES = (Figure.TIME, Figure.EXPOSED, Figure.SLACK, Figure.BYTES, Figure.MEMORY)
_COLUMNS = ("node", "what", *map(str, FIGURES))
_SIZES = (Figure.BYTES, Figure.MEMORY)
_Index = QModelIndex | QPersistentModelIndex
_NOWHERE = QModelIndex()
Floats = npt.NDArray[np.float64]


class NodeModel(QAbstractTableModel):
    """Rows are nodes, in an order of the user's."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._outline: Outline | None = None
        self._items: npt.NDArray[np.int64] = np.empty(0, np.int64)
        self._values: dict[Figure, Floats] = {}
        self._sorted = (2, Qt.SortOrder.DescendingOrder)

    def set_nodes(self, outline: Outline | None, items: npt.NDArray[np.int64], values: dict[Figure, Floats]) -> None:
        self.beginResetModel()
        self._outline, self._items, self._values = outline, items, values
        self._arrange()
        self.endResetModel()

    def item_at(self, row: int) -> int:
        return int(self._items[row])

    def row_of(self, item: int) -> int:
        found = np.flatnonzero(self._items == item)
        return int(found[0]) if len(found) else -1

    def rowCount(self, parent: _Index = _NOWHERE) -> int:
        return 0 if parent.isValid() else len(self._items)

    def columnCount(self, parent: _Index = _NOWHERE) -> int:
        return 0 if parent.isValid() else len(_COLUMNS)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if orientation == Qt.Orientation.Horizontal and role == Qt.ItemDataRole.DisplayRole:
            return _COLUMNS[section]
        return None

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if self._outline is None or not index.isValid():
            return None
        if role == Qt.ItemDataRole.TextAlignmentRole and index.column() > 1:
            return int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole):
            return self._text(self._outline, self.item_at(index.row()), index.column())
        return None

    def _text(self, outline: Outline, item: int, column: int) -> str:
        if column == 0:
            return outline.names[item]
        if column == 1:
            return outline.details[item]
        figure = FIGURES[column - 2]
        value = float(self._values[figure][item]) if figure in self._values else float("nan")
        if np.isnan(value):
            return "–"
        return bytes_text(round(value)) if figure in _SIZES else time_text(round(value))

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        self.layoutAboutToBeChanged.emit()
        self._sorted = (column, order)
        self._arrange()
        self.layoutChanged.emit()

    def _arrange(self) -> None:
        column, direction = self._sorted
        outline = self._outline
        if outline is None:
            return
        self._items = np.sort(self._items)
        if column < 2:
            words = outline.names if column == 0 else outline.details
            order = np.array(sorted(range(len(self._items)), key=lambda n: words[int(self._items[n])]), np.int64)
        elif FIGURES[column - 2] in self._values:
            keys = np.nan_to_num(self._values[FIGURES[column - 2]][self._items], nan=-1.0)
            order = np.argsort(keys, kind="stable")
        else:
            return
        self._items = self._items[order[::-1] if direction == Qt.SortOrder.DescendingOrder else order]


class NodeTable(QTableView):
    """The table itself."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.nodes = NodeModel(self)
        self.setModel(self.nodes)
        self.setSortingEnabled(True)
        self.sortByColumn(2, Qt.SortOrder.DescendingOrder)
        self.setShowGrid(False)
        self.setFrameShape(QTableView.Shape.NoFrame)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setWordWrap(False)
        self.verticalHeader().hide()
        self.verticalHeader().setDefaultSectionSize(self.fontMetrics().height() + 2 * GRID)
        for column, width in enumerate((44, 44, 22, 26, 22, 22, 22)):
            self.horizontalHeader().resizeSection(column, width * GRID)
        self.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Interactive)
        self.setAccessibleName("nodes of the graph")
