"""A layout that puts its items in rows and wraps them where the width ends."""

from __future__ import annotations

from PySide6.QtCore import QPoint, QRect, QSize, Qt
from PySide6.QtWidgets import QLayout, QLayoutItem, QWidget

from views.theme import GRID


class FlowLayout(QLayout):
    """Left to right, then down; every item has its preferred size and stands in the middle of its row."""

    def __init__(self, parent: QWidget | None = None, gap: int = 3 * GRID, margin: int = 2 * GRID) -> None:
        super().__init__(parent)
        self._items: list[QLayoutItem] = []
        self._gap = gap
        self.setContentsMargins(margin, GRID, margin, GRID)

    def addItem(self, item: QLayoutItem) -> None:
        self._items.append(item)

    def count(self) -> int:
        return len(self._items)

    def itemAt(self, index: int) -> QLayoutItem | None:  # Qt asks beyond the end
        return self._items[index] if 0 <= index < len(self._items) else None

    def takeAt(self, index: int) -> QLayoutItem | None:
        return self._items.pop(index) if 0 <= index < len(self._items) else None

    def expandingDirections(self) -> Qt.Orientation:
        return Qt.Orientation(0)

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        return self._arrange(QRect(0, 0, width, 0), move=False)

    def setGeometry(self, rect: QRect) -> None:
        super().setGeometry(rect)
        self._arrange(rect, move=True)

    def sizeHint(self) -> QSize:
        return self.minimumSize()

    def minimumSize(self) -> QSize:
        size = QSize()
        for item in self._items:
            size = size.expandedTo(item.minimumSize())
        margins = self.contentsMargins()
        return size + QSize(margins.left() + margins.right(), margins.top() + margins.bottom())

    def _arrange(self, rect: QRect, *, move: bool) -> int:
        margins = self.contentsMargins()
        area = rect.marginsRemoved(margins)
        rows: list[list[QLayoutItem]] = [[]]
        x = area.x()
        for item in self._items:
            if item.isEmpty():
                continue
            width = item.sizeHint().width()
            if rows[-1] and x + width > area.right() + 1:
                rows.append([])
                x = area.x()
            rows[-1].append(item)
            x += width + self._gap
        y = area.y()
        for row in rows:
            height = max((item.sizeHint().height() for item in row), default=0)
            if move:
                self._place(row, area.x(), y, height)
            y += height + GRID
        return y - GRID - rect.y() + margins.bottom()

    def _place(self, row: list[QLayoutItem], x: int, y: int, height: int) -> None:
        for item in row:
            size = item.sizeHint()
            item.setGeometry(QRect(QPoint(x, y + (height - size.height()) // 2), size))
            x += size.width() + self._gap
