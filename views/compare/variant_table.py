"""The table of the comparison: a row a variant, the best of each figure marked, columns gone where it is narrow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QHeaderView, QTableWidget, QTableWidgetItem, QWidget

from engine.cost.costs import Origin
from engine.quantities import MINUS, bytes_text
from engine.session.variant import unlike_in_words
from views.compare.figures import COLUMNS, best_of, budget_title
from views.compare.lines import Failed, Line
from views.filling import filling
from views.fitting import Fitting
from views.plain import make_plain, set_apart
from views.ports import Host
from views.theme import GRID
from views.timeline.paint_header import OVER

_HEAD = ("", "module", "variant", "scheduler", "budget")
_MODULE = _HEAD.index("module")
"""Column that is shown where there are several modules."""
_BUDGET = _HEAD.index("budget")
_PLAN = ("scheduler", "budget")
"""Columns that stand right of the figures: variants are named after them, and figures are what is compared."""
_TAIL = ("change", "best order", "times from", "passes")
_NAME = _HEAD.index("variant")
_FIRST_TO_GO = ("passes", "budget", "in flight", "best order", "times from", "over bound", "scheduler", "overlapped")
"""Columns that are hidden where the table is narrow, least missed first. Peak memory goes last: the chart has it."""
_CHANGE = len(_HEAD) + len(COLUMNS)
"""Column of the makespan against the base's, shown beside the makespan."""
_TIPS = ("Makespan against that of the base", "How far from the best order of the same instructions, as proven")
"""Of the change and the column after it."""

Best = Mapping[Origin, Sequence[float | None]]
"""The best value of each of `COLUMNS` among lines whose times have one origin."""


class VariantTable(QTableWidget):
    """Lines first, then variants that have no result."""

    def __init__(self, host: Host, parent: QWidget | None = None) -> None:
        titles = (*_HEAD, *(c.title for c in COLUMNS), *_TAIL)
        super().__init__(0, len(titles), parent)
        self._host = host
        self._lines: Sequence[Line] = ()
        self.setHorizontalHeaderLabels(titles)
        self._first_to_go = tuple(map(titles.index, _FIRST_TO_GO))
        make_plain(self, (*range(len(_HEAD), _CHANGE + 1),))
        set_apart(self, _HEAD.index(_PLAN[0]))
        self._lay_columns()
        self.setAccessibleName("comparison of variants")
        self._fitting = Fitting(self, _NAME, self._order, late=(titles.index("peak memory"),))
        for number, column in enumerate(COLUMNS, len(_HEAD)):
            self._tip_heading(number, column.tip)
        for number, tip in enumerate(_TIPS, _CHANGE):
            self._tip_heading(number, tip)

    def _lay_columns(self) -> None:
        header = self.horizontalHeader()
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setSectionResizeMode(self.columnCount() - 1, QHeaderView.ResizeMode.Interactive)
        # Budgets by kind are long: the figures stay in sight.
        header.setSectionResizeMode(_BUDGET, QHeaderView.ResizeMode.Interactive)
        self.setColumnWidth(_BUDGET, 20 * GRID)
        for _ in _PLAN:
            header.moveSection(len(_HEAD) - len(_PLAN), _CHANGE - 1)
        header.moveSection(_CHANGE, len(_HEAD) - len(_PLAN) + 1)
        header.setStretchLastSection(True)  # Qt's signature

    def show_rows(
        self, lines: Sequence[Line], failed: Sequence[Failed], *, active: str, base: str, modules: int
    ) -> None:
        """`active` and `base` are keys of variants, empty for none; `modules` is how many are open."""
        self._lines = lines
        with filling(self):
            self.clearSpans()
            self.setRowCount(len(lines) + len(failed))
            compared = next((line for line in lines if line.key and line.key == base), None)
            alike = {o: [line.metrics for line in lines if line.origin == o] for o in Origin}
            best = {origin: [best_of(column, metrics) for column in COLUMNS] for origin, metrics in alike.items()}
            for row, line in enumerate(lines):
                self._fill_head(row, line, strong=line.key == active)
                self._fill_figures(row, line, best)
                self._fill_change(row, line, compared)
                for number, text in enumerate((line.proof or "–", line.source, line.plan.passes or "–"), _CHANGE + 1):
                    self._cell(row, number, text, self._host.theme.muted)
            for row, one in enumerate(failed, len(lines)):
                self._fill_failed(row, one, strong=one.key == active)
        self.setVisible(bool(lines or failed))
        self.setColumnHidden(_MODULE, modules < 2)  # Qt's signature
        self._fitting.fit()

    def _order(self) -> Sequence[int]:
        """Columns that may go; where times come from matters most where they come from several places."""
        source = self._first_to_go[_FIRST_TO_GO.index("times from")]
        mixed = len({line.source for line in self._lines}) > 1
        return sorted(self._first_to_go, key=lambda column: mixed and column == source)

    def _fill_head(self, row: int, line: Line, *, strong: bool) -> None:
        role = self._host.theme.text if line.key else self._host.theme.muted
        texts = (line.key, line.module, line.title, line.plan.scheduler, budget_title(line.plan))
        for column, text in enumerate(texts):
            self._cell(row, column, text, role, strong=strong)
        self._tip(row, _BUDGET, str(line.plan.budget or "the chip's"))

    def _fill_figures(self, row: int, line: Line, best: Best) -> None:
        theme = self._host.theme
        for number, metric in enumerate(COLUMNS):
            column, most = len(_HEAD) + number, best[line.origin][number]
            untold = metric.simulated and line.origin == Origin.MEASURED
            text = "–" if untold else metric.text(line.metrics)
            wins = not untold and most is not None and metric.value(line.metrics) == most
            over = metric.held and not untold and 0 < line.room < metric.value(line.metrics)
            role = theme.loss if over else theme.gain if wins else theme.text
            mark = OVER if over else "✓" if wins else ""
            self._cell(row, column, f"{mark} {text}".strip(), role, strong=wins or over, right=True)
            if over:
                self._tip(row, column, f"{text}, as simulated: the chip has {bytes_text(line.room)}")

    def _fill_change(self, row: int, line: Line, base: Line | None) -> None:
        theme, change = self._host.theme, line.change(base)
        role = theme.gain if change.startswith(MINUS) else theme.loss if change.startswith("+") else theme.muted
        self._cell(row, _CHANGE, change, theme.muted if line.unlike or line.unsure else role, right=True)
        if line.unsure and change:
            self._tip(row, _CHANGE, f"{change}: whether both are priced alike is told once it is a variant")
        if line.unlike and change:
            self._tip(row, _CHANGE, f"{change}: {unlike_in_words(line.unlike)}")

    def _fill_failed(self, row: int, failed: Failed, *, strong: bool) -> None:
        """What it is called, and over the columns of its figures why it has none."""
        theme = self._host.theme
        for column in range(self.columnCount()):
            self._cell(row, column, "", theme.text)
        texts = (failed.key, failed.module, failed.title, failed.plan.scheduler, budget_title(failed.plan))
        for column, text in enumerate(texts):
            self._cell(row, column, text, theme.text, strong=strong)
        role = theme.loss if failed.ending == "failed" else theme.muted
        self._cell(row, len(_HEAD), failed.ending or "planning …", role, right=True)
        why = f"as {failed.alike}" if failed.alike else failed.why.split("\n", 1)[0]
        self._cell(row, len(_HEAD) + 1, why, role)
        for column in (len(_HEAD), len(_HEAD) + 1):
            self._tip(row, column, failed.why)
        self.setSpan(row, len(_HEAD) + 1, 1, len(COLUMNS) - 1)
        self._cell(row, self.columnCount() - 1, failed.plan.passes or "–", theme.muted)

    def _cell(self, row: int, column: int, text: str, role: str, *, strong: bool = False, right: bool = False) -> None:
        item = self.item(row, column)
        if item is None:
            item = QTableWidgetItem()
            self.setItem(row, column, item)
        item.setText(text)
        item.setToolTip(text)  # a column may be too narrow for it
        item.setForeground(QColor(role))
        font = item.font()
        font.setBold(strong)
        item.setFont(font)
        side = Qt.AlignmentFlag.AlignRight if right else Qt.AlignmentFlag.AlignLeft
        item.setTextAlignment(side | Qt.AlignmentFlag.AlignVCenter)

    def _tip(self, row: int, column: int, text: str) -> None:
        item = self.item(row, column)
        if item is not None:
            item.setToolTip(text)

    def _tip_heading(self, column: int, text: str) -> None:
        heading = self.horizontalHeaderItem(column)
        if heading is not None:
            heading.setToolTip(text)
