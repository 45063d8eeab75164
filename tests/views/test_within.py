"""A pane keeps within its height, and the bottom of the window within what the user gave it."""

from __future__ import annotations

from PySide6.QtCore import QSize
from PySide6.QtWidgets import QLabel, QPushButton, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from tests.patience import LONG
from views.within import Within


def pane(rows: int) -> QWidget:
    made = QWidget()
    column = QVBoxLayout(made)
    for _ in range(rows):
        button = QPushButton("a button")
        button.setMinimumSize(120, 40)
        column.addWidget(button)
    return made


def test_a_pane_that_needs_more_scrolls_and_one_that_does_not_fills(qtbot: QtBot) -> None:
    inner = pane(2)
    within = Within(inner)
    qtbot.addWidget(within)
    least = within.minimumSizeHint()
    within.resize(400, 300)
    within.show()
    assert inner.size() == QSize(400, 300)
    assert not within.verticalScrollBar().isVisible()
    within.resize(400, 60)
    assert inner.height() >= 80
    assert inner.width() < 400, "nothing is under the scroll bar"
    assert within.verticalScrollBar().maximum() > 0
    assert within.horizontalScrollBar().maximum() == 0
    within.resize(100, 300)
    assert within.horizontalScrollBar().maximum() > 0
    assert within.minimumSizeHint() == least


def test_what_comes_later_makes_nothing_larger(qtbot: QtBot) -> None:
    inner = pane(1)
    within = Within(inner)
    qtbot.addWidget(within)
    within.resize(300, 100)
    within.show()
    least = within.minimumSizeHint()
    label = QLabel("a long banner with many words " * 12)
    label.setWordWrap(True)
    layout = inner.layout()
    assert layout is not None
    layout.addWidget(label)
    qtbot.waitUntil(lambda: within.verticalScrollBar().maximum() > 0, timeout=LONG)
    assert within.minimumSizeHint() == least
