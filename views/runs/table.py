"""The look of the tables of runs: whole rows, no grid, a tooltip on each heading."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from PySide6.QtWidgets import QHeaderView, QTableWidget

from views.plain import make_plain
from views.theme import GRID

_WIDEST = 70 * GRID


def plain_table(columns: Sequence[str], tips: Mapping[str, str], name: str, figures: Iterable[int]) -> QTableWidget:
    """An empty table with headings; `name` is its accessible name, `figures` its columns of numbers."""
    made = QTableWidget(0, len(columns))
    made.setHorizontalHeaderLabels(list(columns))
    for column, title in enumerate(columns):
        header = made.horizontalHeaderItem(column)
        if header is not None and title in tips:
            header.setToolTip(tips[title])
    make_plain(made, figures)
    made.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
    made.horizontalHeader().setMaximumSectionSize(_WIDEST)
    made.horizontalHeader().setStretchLastSection(True)  # Qt's signature
    made.setAccessibleName(name)
    return made
