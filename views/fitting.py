"""Columns of a table that give way where it is narrow, so that nobody scrolls sideways for what matters."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QEvent, QObject
from PySide6.QtWidgets import QTableWidget

from views.theme import GRID

NOTHING = ("", "–")
"""What cells hold that have nothing to say."""
_WIDEST = 50 * GRID
_NARROWER = (40 * GRID, 30 * GRID)
"""Pixels that the widest column may have, one after the other, before what should not go goes."""
_NARROWEST = 22 * GRID


class Fitting(QObject):
    """Hides columns until the others fit; what those said is told by the tip of a row's `named` column."""

    def __init__(
        self, table: QTableWidget, named: int, order: Callable[[], Sequence[int]], late: Sequence[int] = ()
    ) -> None:
        """`order`: columns that may go, the first to go first; columns of nothing but dashes go before them. Those of
        `late` go only when wide columns have been made narrower and all still does not fit. A `named` column that is
        stretched takes what the others leave, and is cut before they go."""
        super().__init__(table)
        self._table = table
        self._named = named
        self._order = order
        self._late = late
        header = table.horizontalHeader()
        self._stretched = header.sectionResizeMode(named) == header.ResizeMode.Stretch
        table.viewport().installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Resize and watched is self._table.viewport():
            self.fit()
        return super().eventFilter(watched, event)

    def fit(self) -> None:
        """Show what there is room for."""
        table, order = self._table, list(self._order())
        order.sort(key=self._says_something)
        for column in (*order, *self._late):
            table.setColumnHidden(column, False)  # Qt's signature
        self._limit(_WIDEST)
        gone = self._hide(order)
        for widest in _NARROWER:
            if self._wanted() > table.viewport().width():
                self._limit(widest)
        gone += self._hide(self._late)
        if self._wanted() > table.viewport().width():
            self._limit(_NARROWEST)
        for row in range(table.rowCount()):
            self._tell(row, gone)

    def _limit(self, widest: int) -> None:
        """Let no column be wider, where none is there to take what is left."""
        if not self._stretched:
            self._table.horizontalHeader().setMaximumSectionSize(widest)

    def _hide(self, order: Sequence[int]) -> list[int]:
        """Hide columns in their order until the others fit; those that are hidden now."""
        gone: list[int] = []
        width = self._wanted()
        for column in order:
            if width <= self._table.viewport().width():
                break
            width -= self._width(column)
            gone.append(column)
            self._table.setColumnHidden(column, True)  # Qt's signature
        return gone

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
        if self._stretched and column == self._named:
            return min(self._table.sizeHintForColumn(column), _NARROWER[-1])
        if header.sectionResizeMode(column) != header.ResizeMode.ResizeToContents:
            return header.sectionSize(column) if column != self._last() else header.sectionSizeHint(column)
        wanted = max(header.sectionSizeHint(column), self._table.sizeHintForColumn(column))
        return min(wanted, header.maximumSectionSize())

    def _last(self) -> int:
        """The column at the right end, which takes what is left."""
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
                lines.append(f"{heading.text().strip()}: {text}")
        named.setToolTip("\n".join(lines))

    def _text(self, row: int, column: int) -> str:
        item = self._table.item(row, column)
        return item.text() if item is not None else ""
