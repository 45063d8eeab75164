"""Panes at the bottom share one area, and each has the height there that it needs or was given."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QTabBar, QWidget
from pytestqt.qtbot import QtBot

from app.explorer import Explorer
from tests.patience import LONG
from views.main_window import MainWindow


def tabs(explorer: Explorer) -> QTabBar:
    """Of the panes at the bottom."""
    bars = explorer.window.findChildren(QTabBar, options=Qt.FindChildOption.FindDirectChildrenOnly)
    return next(bar for bar in bars if bar.isVisible() and bar.count() > 3)


def test_a_pane_has_the_room_that_it_needs_or_was_given_while_it_is_in_front(qtbot: QtBot, explorer: Explorer) -> None:
    window = explorer.window
    window.resize(1280, 800)
    explorer.perform("reset-layout")
    qtbot.wait(20)
    assert window.panes.front() == "Compare", "the graph has not enough room to come first"
    bar = tabs(explorer)

    def choose(title: str) -> int:
        at = next(n for n in range(bar.count()) if bar.tabText(n) == title)
        QTest.mouseClick(bar, Qt.MouseButton.LeftButton, pos=bar.tabRect(at).center())
        qtbot.waitUntil(lambda: window.panes.front() == title, timeout=LONG)
        qtbot.wait(20)
        return window.docks[title].height()

    usual = choose("Runs")
    roomy = choose("Graph")
    assert roomy > usual + 100
    assert choose("HLO") == usual

    def drag(by: int) -> None:
        """What lies between the timelines and the panes."""
        place = window.timelines.geometry()
        at = QPoint(place.center().x(), place.bottom() + 3)
        QTest.mousePress(window, Qt.MouseButton.LeftButton, pos=at)
        for step in (1, 2):
            QTest.mouseMove(window, at + QPoint(0, by * step // 2), delay=5)
        qtbot.wait(20)
        QTest.mouseRelease(window, Qt.MouseButton.LeftButton, pos=at + QPoint(0, by))
        qtbot.wait(20)

    choose("Graph")
    drag(-40)
    given = window.docks["Graph"].height()
    assert given > roomy
    assert choose("HLO") == usual
    drag(30)
    lower = window.docks["HLO"].height()
    assert lower < usual
    assert choose("Graph") == given
    assert choose("Table") == lower


@pytest.mark.parametrize("front", ["HLO", "Graph"])
def test_heights_are_as_they_were_at_the_next_start(qtbot: QtBot, explorer: Explorer, front: str) -> None:
    window = explorer.window
    window.resize(1010, 760)  # within the screen of Qt's offscreen platform
    explorer.perform("reset-layout")
    window.show_pane(front)
    qtbot.wait(20)
    window.resizeDocks([window.docks[front]], [260], Qt.Orientation.Vertical)
    qtbot.wait(20)
    height, layout, geometry = window.docks[front].height(), window.layout_state(), window.saveGeometry()
    assert 220 < height < 280
    again = MainWindow(explorer)
    qtbot.addWidget(again)
    again.add_bottom([(title, QWidget()) for title in window.docks if title not in ("Collectives", "Inspector", "Log")])
    again.open_with(geometry, layout)
    qtbot.waitExposed(again)
    qtbot.wait(50)
    assert again.panes.front() == front
    assert abs(again.docks[front].height() - height) <= 1
    again.close()
