"""The bar under the plan line: what went wrong or wants a decision, until it is dismissed or dealt with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from PySide6.QtCore import QEvent, QObject, QSize, Qt
from PySide6.QtGui import QPalette, QResizeEvent
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QScrollArea,
    QSizePolicy,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from views.icons import icon
from views.ports import Host
from views.theme import GRID, code_font

MOST = 3
"""Notices that are shown at once; the oldest goes for one more. Failed jobs stay in the Log."""
_LINES = 6
"""Lines of an explanation that are shown; the rest is in its tooltip."""

_LOWEST = 30 * GRID
"""Height that the bar may have in any window."""
_PART = 6
"""Of a higher window it may have so much more: what has no room in that is scrolled to."""

Way = tuple[str, Callable[[], object]]
"""A button's text, and what it does besides dismissing the notice."""


class Notices(QScrollArea):
    """Notices one below the other, newest first. One about the same thing takes the place of the one before."""

    def __init__(self, host: Host, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._host = host
        self._rows: dict[str, _Row] = {}
        self._all = QWidget()
        self._column = QVBoxLayout(self._all)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(0)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setWidgetResizable(True)  # Qt's signature
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setWidget(self._all)
        self.setAccessibleName("Notices")
        self.hide()

    def sizeHint(self) -> QSize:
        most = max(_LOWEST, self.window().height() // _PART)
        return QSize(40 * GRID, min(most, self._column.totalMinimumSize().height()))

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        passed = super().eventFilter(watched, event)
        if watched is self.widget() and event.type() == QEvent.Type.LayoutRequest:
            self.updateGeometry()
        return passed

    def say(self, about: str, text: str, ways: Sequence[Way] = ()) -> None:
        """Show `text` until it is dismissed: a paragraph, and after a blank line the place it is about."""
        self.dismiss(about)
        for oldest in list(self._rows)[: len(self._rows) - MOST + 1]:
            self.dismiss(oldest)
        row = _Row(self._host, text, ways, partial(self.dismiss, about))
        self._rows[about] = row
        self._column.insertWidget(0, row)
        self.verticalScrollBar().setValue(0)
        self.show()

    def dismiss(self, about: str) -> None:
        """Take away what was said about something, if anything was."""
        row = self._rows.pop(about, None)
        if row is not None:
            self._column.removeWidget(row)
            row.hide()
            row.deleteLater()
        self.setVisible(bool(self._rows))

    def clear(self) -> None:
        for about in list(self._rows):
            self.dismiss(about)

    def texts(self) -> tuple[str, ...]:
        """What is shown, newest first."""
        return tuple(row.said for row in reversed(self._rows.values()))

    def take(self, title: str) -> None:
        """Press the first button of that text."""
        next(b for row in self._rows.values() for b in row.findChildren(QPushButton) if b.text() == title).click()


class _Row(QFrame):
    """One notice: its text, the place it is about, buttons, and a cross."""

    def __init__(self, host: Host, text: str, ways: Sequence[Way], dismiss: Callable[[], None]) -> None:
        super().__init__()
        self.said = text
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setAutoFillBackground(True)  # Qt's signature
        self.setBackgroundRole(QPalette.ColorRole.Midlight)
        line = QHBoxLayout(self)
        line.setContentsMargins(3 * GRID, GRID, 2 * GRID, GRID)
        line.setSpacing(2 * GRID)
        sign = QLabel("▲")
        sign.setForegroundRole(QPalette.ColorRole.BrightText)
        line.addWidget(sign)
        words = QVBoxLayout()
        words.setSpacing(0)
        sentence, _, place = text.partition("\n\n")
        words.addStretch(1)
        words.addWidget(_Text(sentence))
        if place:
            shown = _Text("\n".join(place.splitlines()[:_LINES]))
            shown.setFont(code_font())
            shown.setToolTip(place)
            words.addWidget(shown)
        words.addStretch(1)
        line.addLayout(words, 1)
        for title, act in ways:
            button = QPushButton(title)
            button.clicked.connect(partial(_do, act, dismiss))
            line.addWidget(button, 0, Qt.AlignmentFlag.AlignTop)
        cross = QToolButton()
        cross.setAutoRaise(True)  # Qt's signature
        cross.setIcon(icon("x", host.theme.text))
        cross.setToolTip("Dismiss")
        cross.setAccessibleName("dismiss")
        cross.clicked.connect(dismiss)
        line.addWidget(cross, 0, Qt.AlignmentFlag.AlignTop)


def _do(act: Callable[[], object], dismiss: Callable[[], None]) -> None:
    dismiss()
    act()


class _Text(QLabel):
    """As high as its lines are: the bar stands where Qt does not ask for a height by the width."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.setWordWrap(True)  # Qt's signature
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.setFixedHeight(self.heightForWidth(self.width()))
