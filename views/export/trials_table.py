"""What a search has tried, fastest first; filled while it runs."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QHeaderView, QTableWidget, QTableWidgetItem

from engine.quantities import bytes_text, gain_text, time_text
from engine.session.plan import Plan
from engine.session.tuning import Trial
from engine.session.variant import UNLIKE, unlike_in_words
from views.filling import filling
from views.plain import make_plain, set_apart
from views.ports import Host

_COLUMNS = ("makespan", "change", "exposed", "peak memory", "scheduler", "budget", "plan")
_NUMBERS = 4
"""Columns at the left that hold numbers."""


class TrialsTable(QTableWidget):
    """One row for each plan; those that are not possible come last, with the reason."""

    picked = Signal()

    def __init__(self, host: Host) -> None:
        super().__init__(0, len(_COLUMNS))
        self._host = host
        self._shown: tuple[Trial, ...] = ()
        self._sorted: tuple[Trial, ...] = ()
        self._best: Plan | None = None
        self._base: int | None = None
        self.setHorizontalHeaderLabels(_COLUMNS)
        make_plain(self, range(_NUMBERS))
        set_apart(self, _NUMBERS)
        header = self.horizontalHeader()
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setSectionResizeMode(len(_COLUMNS) - 1, QHeaderView.ResizeMode.Stretch)
        self.setAccessibleName("plans that were tried")
        self.itemSelectionChanged.connect(self.picked)

    @property
    def plan(self) -> Plan | None:
        """Of the selected row, else of the first; None where there is nothing that is possible."""
        row = self.currentRow() if self.selectedItems() else 0
        if not 0 <= row < len(self._sorted) or self._sorted[row].metrics is None:
            return None
        return self._sorted[row].plan

    def show_trials(self, trials: tuple[Trial, ...], base: int | None, best: Plan | None) -> None:
        """Fill the table, where anything is new. `base` is what changes are of; `best` is marked.

        Rows that come above the picked one move it nowhere: it would go from under the mouse.
        """
        if (trials, base, best) == (self._shown, self._base, self._best):
            return
        chosen = self.plan if self.selectedItems() else None
        above = self.currentRow() - self.verticalScrollBar().value()
        self._shown, self._base, self._best = trials, base, best
        self._sorted = tuple(sorted(trials, key=lambda t: (t.makespan is None, t.makespan or 0)))
        with filling(self):
            self.setRowCount(len(self._sorted))
            for row, trial in enumerate(self._sorted):
                self._fill(row, trial)
        again = next((row for row, trial in enumerate(self._sorted) if trial.plan == chosen), None)
        if again is None:
            self.clearSelection()
        else:
            self.selectRow(again)
            self.verticalScrollBar().setValue(again - above)

    def repaint_roles(self) -> None:
        """The theme is another."""
        with filling(self):
            for row, trial in enumerate(self._sorted):
                self._fill(row, trial)

    def _fill(self, row: int, trial: Trial) -> None:
        theme, metrics, base = self._host.theme, trial.metrics, self._base
        texts: Sequence[str]
        if metrics is None:
            texts = ("not possible", "", "", "", *_plan_texts(trial.plan))
        else:
            change = gain_text(base, metrics.makespan) if base is not None else ""
            change += f" {UNLIKE}" if change and trial.unlike else ""
            figures = (time_text(metrics.makespan), change, time_text(metrics.exposed), bytes_text(metrics.peak_memory))
            texts = (*figures, *_plan_texts(trial.plan))
        best = trial.plan == self._best
        for column, text in enumerate(texts):
            item = self.item(row, column) or self._made(row, column)
            item.setText(f"✓ {text}" if best and column == 0 else text)
            item.setToolTip(trial.why_not or _about(trial, text))
            role = theme.muted if metrics is None else theme.gain if best and column < 2 else theme.text
            item.setForeground(QColor(role))

    def _made(self, row: int, column: int) -> QTableWidgetItem:
        item = QTableWidgetItem()
        side = Qt.AlignmentFlag.AlignRight if column < _NUMBERS else Qt.AlignmentFlag.AlignLeft
        item.setTextAlignment(side | Qt.AlignmentFlag.AlignVCenter)
        self.setItem(row, column, item)
        return item


def _about(trial: Trial, text: str) -> str:
    """What a cell is about: of a change that is no gain, why."""
    return f"{text}: {unlike_in_words(trial.unlike)}" if trial.unlike and text.endswith(UNLIKE) else text


def _plan_texts(plan: Plan) -> tuple[str, str, str]:
    return plan.scheduler, "chip's" if plan.budget is None else str(plan.budget), plan.passes or "–"
