"""One view, or two beside each other with what they are over them, and the table."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QSizePolicy, QSplitter, QVBoxLayout, QWidget

from views.graph.table import NodeTable
from views.graph.view import GraphView
from views.theme import GRID, axis_font


class Sides(QSplitter):
    """Before, after, table; those that are not needed take no room."""

    def __init__(self, before: GraphView, after: GraphView, table: NodeTable, parent: QWidget | None = None) -> None:
        super().__init__(Qt.Orientation.Horizontal, parent)
        self.setChildrenCollapsible(False)
        self.setHandleWidth(GRID)
        self._titles = (QLabel(), QLabel())
        self._columns = []
        for title, view in zip(self._titles, (before, after), strict=True):
            title.setFont(axis_font())
            title.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
            title.setContentsMargins(2 * GRID, 0, 2 * GRID, GRID)
            column = QWidget()
            layout = QVBoxLayout(column)
            layout.setContentsMargins(0, 0, 0, 0)
            layout.setSpacing(0)
            layout.addWidget(title)
            layout.addWidget(view, 1)
            self._columns.append(column)
            self.addWidget(column)
        self.addWidget(table)
        for number, stretch in enumerate((2, 2, 1)):
            self.setStretchFactor(number, stretch)
        self.set_titles("", "", double=False)

    def set_titles(self, before: str, after: str, *, double: bool) -> None:
        for title, text in zip(self._titles, (before, after), strict=True):
            title.setText(text)
            title.setVisible(double)
        if self._columns[0].isHidden() is double:
            self._columns[0].setVisible(double)
            self.share()

    def share(self) -> None:
        """Divide the room anew: views alike, the table a third."""
        self.setSizes([2000, 2000, 2000] if not self._columns[0].isHidden() else [0, 4000, 2000])
