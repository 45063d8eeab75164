"""The table of fusion decisions, the most harmful first."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QHeaderView, QTableWidget, QTableWidgetItem, QWidget

from engine.quantities import bytes_text, time_text
from views.filling import filling
from views.fitting import Fitting
from views.fusion.harm import FusionRow
from views.plain import make_plain
from views.theme import Theme

_COLUMNS = ("fusion", "kind", "time", "traffic saved", "exposes", "waits")
_TIPS = (
    "The fusion instruction, or the einsum that was left apart",
    "As XLA calls it",
    "Compute time of one run",
    "Memory traffic that stays inside",
    "Compute waits this long for transfers that the einsum inside does not need, and that nothing needs earlier",
    "Compute waits this long for transfers that the fusion needs",
)
_EXPOSES = _COLUMNS.index("exposes")
_FIRST_TO_GO = tuple(map(_COLUMNS.index, ("traffic saved", "kind", "time")))
"""Columns that are hidden where the table is narrow, least missed first."""
MOST = 300
"""Decisions listed."""


class DecisionTable(QTableWidget):
    """A row a decision, as `engine.passes.fusion` takes them."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(0, len(_COLUMNS), parent)
        self.setHorizontalHeaderLabels(_COLUMNS)
        for column, tip in enumerate(_TIPS):
            heading = self.horizontalHeaderItem(column)
            if heading is not None:
                heading.setToolTip(tip)
        make_plain(self, range(2, len(_COLUMNS)))
        self.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        self.horizontalHeader().setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        self.setAccessibleName("fusion decisions")
        self._fitting = Fitting(self, 0, lambda: _FIRST_TO_GO)

    def show_rows(self, rows: Sequence[FusionRow], theme: Theme) -> None:
        """List decisions and pick the one of that name that was picked before, else the first."""
        picked = self.item(self.currentRow(), 0)
        names = [row.fusion.name for row in rows[:MOST]]
        at = names.index(picked.text()) if picked is not None and picked.text() in names else 0
        with filling(self):
            self._fill_rows(rows)
        self._fitting.fit()
        self.paint_harm(theme)
        self.setCurrentCell(-1, -1)
        self.setCurrentCell(at if rows else -1, 0)

    def _fill_rows(self, rows: Sequence[FusionRow]) -> None:
        self.setRowCount(min(len(rows), MOST))
        for number, row in enumerate(rows[:MOST]):
            fusion = row.fusion
            texts = (
                fusion.name,
                fusion.kind or "left apart",
                time_text(row.time) if row.time else "",
                bytes_text(fusion.saved_bytes) if fusion.saved_bytes else "",
                time_text(row.exposed) if row.exposed else "",
                time_text(row.waits) if row.waits else "",
            )
            for column, text in enumerate(texts):
                item = QTableWidgetItem(text)
                item.setToolTip(text)
                if column >= 2:
                    item.setTextAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
                self.setItem(number, column, item)

    def paint_harm(self, theme: Theme) -> None:
        """What exposes transfers, in the colour of losses."""
        for number in range(self.rowCount()):
            item = self.item(number, _EXPOSES)
            if item is not None:
                item.setForeground(QColor(theme.loss))
