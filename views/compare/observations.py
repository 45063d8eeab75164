"""Measured against predicted, instruction by instruction, and what of a profile matched no instruction."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QHeaderView, QTableWidget, QTableWidgetItem

from engine.quantities import MINUS, signed_time_text, time_text
from engine.session.attribution import Unmatched
from engine.session.measured import Measured, Observation
from engine.session.session import Entry
from views.filling import filling
from views.plain import make_plain
from views.theme import Theme

MOST = 1000
"""Instructions listed, and names that matched none; of what comes after, only the number is said."""
_COLUMNS = ("instruction", "part", "runs", "predicted", "measured", "difference", "error")
_TIPS = {
    "part": "Whether it is the compute stream's time, or a transfer's from start to done",
    "runs": "In one step on one device",
    "predicted": "Of all its runs in one step",
    "measured": "Of all its runs in one step, mean over the profile's devices and steps",
    "difference": "Predicted less measured",
    "error": "Of the prediction, against what was measured",
}
_KEYS: tuple[Callable[[Observation], object], ...] = (
    lambda o: o.name,
    lambda o: (not o.transfer, o.name),
    lambda o: -o.executions,
    lambda o: -o.predicted,
    lambda o: -o.measured,
    lambda o: -abs(o.predicted - o.measured),
    lambda o: -abs(o.error) if o.error is not None else 1.0,
)
_DIFFERENCE = _COLUMNS.index("difference")


class ObservationTable(QTableWidget):
    """Largest difference first; a click on a heading sorts by that column. What matched nothing comes at the end."""

    def __init__(self, picked: Callable[[int], None]) -> None:
        """`picked` gets the id of the instruction whose row becomes the current one."""
        super().__init__(0, len(_COLUMNS))
        self._picked = picked
        self._measured: Measured | None = None
        self._theme: Theme | None = None
        self.sorted_by = _DIFFERENCE
        self.observations: tuple[Observation, ...] = ()
        self.setHorizontalHeaderLabels(_COLUMNS)
        for column, title in enumerate(_COLUMNS):
            header = self.horizontalHeaderItem(column)
            if header is not None:
                header.setToolTip(_TIPS.get(title, ""))
        make_plain(self, range(2, len(_COLUMNS)))
        self.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        self.horizontalHeader().setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        self.horizontalHeader().setSectionsClickable(True)  # Qt's signature
        self.horizontalHeader().setSortIndicatorShown(True)  # Qt's signature
        self.horizontalHeader().sectionClicked.connect(self.sort_by)
        self.setAccessibleName("measured against predicted, by instruction")
        self.currentCellChanged.connect(lambda row, *_: self._pick(row))

    def show_measured(self, measured: Measured, theme: Theme) -> None:
        """Show a profile's observations, unless they are shown already."""
        if (measured, theme) == (self._measured, self._theme):
            return
        self._measured, self._theme = measured, theme
        self.sort_by(self.sorted_by)

    def sort_by(self, column: int) -> None:
        """Sort by a column, what matters most first."""
        measured, theme = self._measured, self._theme
        if measured is None or theme is None:
            return
        self.sorted_by = column
        order = Qt.SortOrder.AscendingOrder if column == 0 else Qt.SortOrder.DescendingOrder
        self.horizontalHeader().setSortIndicator(column, order)
        ranked = sorted(measured.observations, key=_KEYS[column])  # type: ignore[arg-type] # one column's keys compare
        self.observations = tuple(ranked[:MOST])
        self.setCurrentCell(-1, -1)
        unmatched = [_left(one) for one in measured.unmatched[:MOST]]
        if len(measured.unmatched) > MOST:
            unmatched.append((f"… and {len(measured.unmatched) - MOST:,} more names", *("",) * (len(_COLUMNS) - 1)))
        with filling(self):
            self.setRowCount(len(self.observations) + len(unmatched))
            for row, observation in enumerate(self.observations):
                self._fill(row, _cells(observation), theme.text)
                _tint(self.item(row, _DIFFERENCE), observation, theme)
            for row, texts in enumerate(unmatched, start=len(self.observations)):
                self._fill(row, texts, theme.muted)

    def _fill(self, row: int, texts: tuple[str, ...], role: str) -> None:
        for column, text in enumerate(texts):
            item = QTableWidgetItem(text)
            item.setForeground(QColor(role))
            if column > 1:
                item.setTextAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
            self.setItem(row, column, item)

    def _pick(self, row: int) -> None:
        if 0 <= row < len(self.observations):
            self._picked(self.observations[row].instruction)


def _cells(observation: Observation) -> tuple[str, ...]:
    difference = observation.predicted - observation.measured
    return (
        observation.name,
        "transfer" if observation.transfer else "compute",
        f"{observation.executions:,}",
        time_text(observation.predicted) if observation.predicted else "–",
        time_text(observation.measured) if observation.measured else "not seen",
        signed_time_text(difference) if observation.measured else "–",
        _percent(observation.error),
    )


def _left(unmatched: Unmatched) -> tuple[str, ...]:
    return f"{unmatched.name}: no such instruction", "", f"{unmatched.count:,}", "–", time_text(unmatched.time), "", ""


def _percent(error: float | None) -> str:
    if error is None:
        return "–"
    text = f"{abs(error):.0%}" if abs(error) >= 0.0995 else f"{abs(error):.1%}"
    return f"{MINUS if error < 0 else '+'}{text}"


def _tint(item: QTableWidgetItem | None, observation: Observation, theme: Theme) -> None:
    """Too fast a prediction in the colour of loss: it is the one that disappoints."""
    if item is not None and observation.measured and observation.predicted != observation.measured:
        item.setForeground(QColor(theme.loss if observation.predicted < observation.measured else theme.gain))


def said(entry: Entry, measured: Measured) -> str:
    """What the table compares, how much of the profile it covers, and what the comparison cannot say."""
    parts = [
        f"{entry.key}, measured, against the prediction of the same plan, by instruction.",
        f"{measured.matched:,} of {measured.events:,} events of the profile belong to an instruction"
        + (", the others are listed last." if measured.unmatched else "."),
    ]
    chip = measured.predicted.program.machine.chip
    if measured.platform and measured.platform != chip.family:
        parts.append(
            f"It ran on {measured.platform.upper()} devices, the prediction is for {chip.title}: these errors are "
            "between two machines, not of the model."
        )
    if not measured.overlaps:
        parts.append("On CPU devices starts and dones run synchronously: nothing here shows overlap.")
    return " ".join(parts)
