"""The shown nodes as a table: the graph's twin for the keyboard and for screen readers, sorted by any figure."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHeaderView, QTableView, QWidget

from engine.ir.graph import Ints
from engine.layout.figures import Figure
from engine.layout.outline import Outline
from engine.quantities import bytes_text, time_text
from views.plain import make_plain
from views.sorted_rows import SortedRows
from views.theme import GRID

FIGURES = (Figure.TIME, Figure.EXPOSED, Figure.SLACK, Figure.BYTES, Figure.MEMORY)
_COLUMNS = ("node", "what", *map(str, FIGURES))
_SIZES = (Figure.BYTES, Figure.MEMORY)
Floats = npt.NDArray[np.float64]


class NodeModel(SortedRows):
    """Things are items of an outline."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(_COLUMNS, range(2, len(_COLUMNS)), (2, Qt.SortOrder.DescendingOrder), parent)
        self._outline: Outline | None = None
        self._items: Ints = np.empty(0, np.int64)
        self._values: dict[Figure, Floats] = {}

    def set_nodes(self, outline: Outline | None, items: Ints, values: dict[Figure, Floats]) -> None:
        self._outline, self._items, self._values = outline, np.sort(items), values
        self.things_changed()

    def text(self, thing: int, column: int) -> str:
        outline = self._outline
        if outline is None:
            return ""
        if column < 2:
            return outline.names[thing] if column == 0 else outline.details[thing]
        figure = FIGURES[column - 2]
        value = float(self._values[figure][thing]) if figure in self._values else float("nan")
        if np.isnan(value):
            return "–"
        return bytes_text(round(value)) if figure in _SIZES else time_text(round(value))

    def ascending(self, column: int) -> Ints:
        outline, items = self._outline, self._items
        if outline is None:
            return items
        if column < 2:
            words = outline.names if column == 0 else outline.details
            return items[np.array(sorted(range(len(items)), key=lambda n: words[int(items[n])]), np.int64)]
        if FIGURES[column - 2] not in self._values:
            return items
        keys = np.nan_to_num(self._values[FIGURES[column - 2]][items], nan=-1.0)
        return items[np.argsort(keys, kind="stable")]


class NodeTable(QTableView):
    """The table itself."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.nodes = NodeModel(self)
        self.setModel(self.nodes)
        self.setSortingEnabled(True)
        self.sortByColumn(2, Qt.SortOrder.DescendingOrder)
        make_plain(self)
        for column, width in enumerate((44, 44, 20, 20, 20, 20, 20)):
            self.horizontalHeader().resizeSection(column, width * GRID)
        self.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Interactive)
        self.setAccessibleName("nodes of the graph")
