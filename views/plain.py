"""The one look of all tables: whole rows, no grid, headings that stand over what they head."""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QSize, Qt
from PySide6.QtWidgets import QAbstractItemView, QStyledItemDelegate, QStyleOptionViewItem, QTableView, QTableWidget

from views.theme import GRID

APART = "\N{EM SPACE}"
"""Before the texts of a column of words that follows one of figures: else both headings would read as one."""
LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter


def make_plain(table: QTableView, figures: Iterable[int] = ()) -> None:
    """Give a table the look; `figures` are the columns whose headings stand at the right, as their numbers do."""
    table.setItemDelegate(Spaced(table))
    table.verticalHeader().hide()
    table.verticalHeader().setDefaultSectionSize(table.fontMetrics().height() + 2 * GRID)
    table.setShowGrid(False)  # Qt's signature
    table.setWordWrap(False)  # Qt's signature
    table.setFrameShape(QTableView.Shape.NoFrame)
    table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
    table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
    table.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
    table.setTabKeyNavigation(False)  # Qt's signature; Tab leaves the table, arrows move in it
    table.horizontalHeader().setHighlightSections(False)  # Qt's signature
    table.horizontalHeader().setDefaultAlignment(LEFT)
    if isinstance(table, QTableWidget):
        for column in figures:
            heading = table.horizontalHeaderItem(column)
            if heading is not None:
                heading.setTextAlignment(RIGHT)


class Spaced(QStyledItemDelegate):
    """Leaves a little more room between columns than the style does: bold texts would nearly touch."""

    def sizeHint(self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex) -> QSize:
        return super().sizeHint(option, index) + QSize(GRID, 0)


class Apart(Spaced):
    """Draws a column of words apart from the figures at its left; the texts themselves stay as they are."""

    def initStyleOption(self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex) -> None:
        super().initStyleOption(option, index)
        option.text = f"{APART}{option.text}"


def set_apart(table: QTableWidget, column: int) -> None:
    """Leave room between the figures at the left of a column of words and these."""
    table.setItemDelegateForColumn(column, Apart(table))
    heading = table.horizontalHeaderItem(column)
    if heading is not None:
        heading.setText(f"{APART}{heading.text()}")
