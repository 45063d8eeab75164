"""From difference to difference of two texts side by side: two buttons, and which one of how many is looked at."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from PySide6.QtCore import QEvent, Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QToolButton, QWidget

from views.hlo_text.lines import MOST_DIFFED, Printed
from views.icons import icon
from views.ports import Host
from views.theme import GRID


class DifferenceSteps(QWidget):
    """Steps start from the row that was looked at last: a difference, or the selected instruction's."""

    went = Signal(object)
    """Rows of the difference that is looked at now, a range."""

    def __init__(self, host: Host, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._host = host
        self._differences: Sequence[range] = ()
        self._row = -1
        """Row from which the next step is looked for; -1 before the first."""
        self._at = -1
        """The difference that is looked at, -1 while it is none."""
        self.count = QLabel()
        self.count.setAccessibleName("differences")
        self.previous, self.next = QToolButton(), QToolButton()
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 2 * GRID, 0)
        layout.setSpacing(GRID)
        layout.addWidget(self.count)
        for button, tip, action, by in (
            (self.previous, "Previous difference", "previous-difference", -1),
            (self.next, "Next difference", "next-difference", 1),
        ):
            button.setAutoRaise(True)
            button.setObjectName(action)
            button.setAccessibleName(tip)
            button.clicked.connect(lambda _=False, by=by: self.step(by))
            layout.addWidget(button)
        self._tint()

    @property
    def current(self) -> range:
        """Rows of the difference that is looked at, empty while it is none."""
        return self._differences[self._at] if self._at >= 0 else range(0)

    def show_of(self, text: Printed) -> None:
        """Step through the differences of other texts, from their beginning."""
        self._differences, self._row, self._at = text.differences, -1, -1
        for button in (self.previous, self.next):
            keys, tip = self._host.keys_of(button.objectName()), button.accessibleName()
            button.setEnabled(bool(self._differences))
            button.setToolTip(f"{tip} ({keys})" if keys else tip)
        self.count.setToolTip("" if text.compared else f"Texts of more than {MOST_DIFFED:,} lines together")
        if not text.compared:
            self.count.setText("too long to be compared")
        else:
            self._say()

    def start_from(self, row: int) -> None:
        """Go on from a row."""
        at = bisect_right(self._differences, row, key=lambda rows: rows.start) - 1
        self._row, self._at = row, at if at >= 0 and row in self._differences[at] else -1
        if self._differences:
            self._say()

    def step(self, by: int) -> None:
        """Look at the next difference, or the one before; past the last comes the first."""
        if not self._differences:
            return
        if self._at >= 0:
            self._at += by
        elif by > 0:
            self._at = bisect_right(self._differences, self._row, key=lambda rows: rows.start)
        else:
            self._at = bisect_left(self._differences, self._row, key=lambda rows: rows.start) - 1
        self._at %= len(self._differences)
        self._row = self._differences[self._at].start
        self._say()
        self.went.emit(self.current)

    def _say(self) -> None:
        count = len(self._differences)
        if not count:
            self.count.setText("no difference")
        elif self._at >= 0:
            self.count.setText(f"{self._at + 1:,} of {count:,}")
        else:
            self.count.setText(f"{count:,} differences" if count > 1 else "1 difference")

    def changeEvent(self, event: QEvent) -> None:
        if event.type() == QEvent.Type.PaletteChange:
            self._tint()
        super().changeEvent(event)

    def _tint(self) -> None:
        for button, name in ((self.previous, "arrow-left"), (self.next, "arrow-right")):
            button.setIcon(icon(name, self._host.theme.text))
