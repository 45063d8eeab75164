"""Columns of a table that give way where it is narrow, so that nobody scrolls sideways for what matters."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QEvent, QObject
from PySide6.QtWidgets import QTableWidget

from views.theme import GRID

NOTHING = ("", "–")
"""What cells hold that have nothing to say."""
_WIDEST = tuple(n * GRID for n in (50, 40, 30, 22))
"""Pixels that the widest column may have, one after the other until all that must not go fit."""


class Fitting(QObject):
    """Hides columns until the others fit; what those said is told by the tip of a row's `named` column."""

    def __init__(self, table: QTableWidget, named: int, order: Callable[[], Sequence[int]]) -> None:
        """`order`: the columns that may go, the first to go first; columns of nothing but dashes go before them."""
        super().__init__(table)
        self._table = table
        self._named = named
        self._order = order
        table.viewport().installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Resize and watched is self._table.viewport():
            self.fit()
        return super().eventFilter(watched, event)

    def fit(self) -> None:
        """Show what there is room for."""
        table, order = self._table, list(self._order())
        order.sort(key=self._says_something)
        for column in order:
            table.setColumnHidden(column, False)  # Qt's signature
        table.horizontalHeader().setMaximumSectionSize(_WIDEST[0])
        room, gone = table.viewport().width(), list[int]()
        width = self._wanted()
        for column in order:
            if width <= room:
                break
            width -= self._width(column)
            gone.append(column)
            table.setColumnHidden(column, True)  # Qt's signature
        for widest in _WIDEST[1:]:
            if self._wanted() <= room:
                break
            table.horizontalHeader().setMaximumSectionSize(widest)
        for row in range(table.rowCount()):
            self._tell(row, gone)

    def _wanted(self) -> int:
        """Pixels that all columns take together."""
        return sum(self._width(column) for column in range(self._table.columnCount()))

    def _says_something(self, column: int) -> bool:
        return any(self._text(row, column) not in NOTHING for row in range(self._table.rowCount()))

    def _width(self, column: int) -> int:
        """Pixels that a column takes when it is as wide as what it holds."""
        header = self._table.horizontalHeader()
        if self._table.isColumnHidden(column):
            return 0
        if header.sectionResizeMode(column) != header.ResizeMode.ResizeToContents:
            return header.sectionSize(column) if column != self._last() else header.sectionSizeHint(column)
        wanted = max(header.sectionSizeHint(column), self._table.sizeHintForColumn(column))
        return min(wanted, header.maximumSectionSize())

    def _last(self) -> int:
        """The column that is stretched."""
        header = self._table.horizontalHeader()
        return header.logicalIndex(header.count() - 1)

    def _tell(self, row: int, gone: Sequence[int]) -> None:
        named = self._table.item(row, self._named)
        if named is None:
            return
        lines = [named.text()]
        for column in gone:
            heading, text = self._table.horizontalHeaderItem(column), self._text(row, column)
            if heading is not None and text not in NOTHING:
                lines.append(f"{heading.text()}: {text}")
        named.setToolTip("\n".join(lines))

    def _text(self, row: int, column: int) -> str:
        item = self._table.item(row, column)
        return item.text() if item is not None else ""
