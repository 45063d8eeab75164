"""The look of the tables of runs: whole rows, no grid, a tooltip on each heading."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableWidget

from views.theme import GRID

_WIDEST = 70 * GRID


def plain_table(columns: Sequence[str], tips: Mapping[str, str], name: str) -> QTableWidget:
    """An empty table with headings; `name` is its accessible name."""
    made = QTableWidget(0, len(columns))
    made.setHorizontalHeaderLabels(list(columns))
    for column, title in enumerate(columns):
        header = made.horizontalHeaderItem(column)
        if header is not None and title in tips:
            header.setToolTip(tips[title])
    made.verticalHeader().hide()
    made.verticalHeader().setDefaultSectionSize(made.fontMetrics().height() + 2 * GRID)
    made.setShowGrid(False)  # Qt's signature
    made.setFrameShape(QTableWidget.Shape.NoFrame)
    made.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
    made.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
    made.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
    made.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
    made.horizontalHeader().setMaximumSectionSize(_WIDEST)
    made.horizontalHeader().setStretchLastSection(True)  # Qt's signature
    made.setAccessibleName(name)
    return made
