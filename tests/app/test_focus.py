"""Keys act on what is seen, and it is seen on what."""

from __future__ import annotations

from functools import partial

import pytest
from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractScrollArea, QApplication, QLabel, QWidget
from pytestqt.qtbot import QtBot

from app.explorer import Explorer
from tests.app.test_replacing import FORWARD
from tests.app.waiting import opened
from tests.patience import LONG

_MOST = 200


def is_in(pane: QWidget) -> bool:
    focused = QApplication.focusWidget()
    return focused is not None and pane.isAncestorOf(focused)


def is_out(pane: QWidget) -> bool:
    return not is_in(pane)


def within_window(widget: QWidget, window: QWidget) -> bool:
    return window.rect().intersects(widget.rect().translated(widget.mapTo(window, widget.rect().topLeft())))


@pytest.mark.parametrize("key", [Qt.Key.Key_Tab, Qt.Key.Key_Backtab])
@pytest.mark.parametrize("pane", ["Compare", "Runs"])
def test_tab_visits_what_is_shown_and_comes_back(qtbot: QtBot, explorer: Explorer, key: Qt.Key, pane: str) -> None:
    opened(qtbot, explorer, FORWARD)
    window = explorer.window
    window.resize(1280, 800)
    window.show_pane(pane)
    window.activateWindow()
    window.timelines.view.setFocus()
    QCoreApplication.processEvents()
    visited: list[QWidget] = []
    for _ in range(_MOST):
        focused = QApplication.focusWidget()
        assert focused is not None
        if visited and focused is window.timelines.view:
            break
        visited.append(focused)
        QTest.keyClick(focused, key)
    assert len(visited) < _MOST
    assert window.plan_line.chip in visited
    assert [each for each in visited if not within_window(each, window)] == []
    front = window.docks[pane]
    assert any(front.isAncestorOf(each) for each in visited)
    hidden = [dock for dock in window.docks.values() if dock.visibleRegion().isEmpty()]
    assert hidden
    assert not any(dock.isAncestorOf(each) for dock in hidden for each in visited)


def test_focus_leaves_a_pane_that_another_covers(qtbot: QtBot, explorer: Explorer) -> None:
    window = explorer.window
    for left, taken in (("Runs", "Compare"), ("Export", "Log")):
        window.show_pane(left)
        pane = window.docks[left]
        inside = [each for each in pane.findChildren(QWidget) if each.focusPolicy() & Qt.FocusPolicy.TabFocus]
        next(each for each in inside if each.isVisible() and each.isEnabled()).setFocus()
        assert is_in(pane)
        window.docks[taken].raise_()
        qtbot.waitUntil(partial(is_out, pane), timeout=LONG)
        assert is_in(window.docks[taken]), taken


def test_a_ring_shows_which_view_the_keys_go_to(qtbot: QtBot, explorer: Explorer) -> None:
    opened(qtbot, explorer, FORWARD)
    window, view = explorer.window, explorer.window.timelines.view
    view.setFocus()
    seen = 0
    for _ in range(_MOST):
        focused = QApplication.focusWidget()
        assert focused is not None
        QTest.keyClick(focused, Qt.Key.Key_Tab)
        focused = QApplication.focusWidget()
        if isinstance(focused, QAbstractScrollArea | QLabel):
            accent, seen = focused.palette().accent().color(), seen + 1
            picture = focused.grab().toImage()
            edge = focused.viewport().geometry() if isinstance(focused, QAbstractScrollArea) else focused.rect()
            for x, y in (
                (edge.center().x(), edge.top()),
                (edge.center().x(), edge.bottom()),
                (edge.left(), edge.center().y()),
                (edge.right(), edge.center().y()),
            ):
                assert picture.pixelColor(x, y) == accent, focused
        if focused is view:
            break
    assert seen >= 2
    window.plan_line.mesh.setFocus()
    picture = view.grab().toImage()
    assert picture.pixelColor(picture.width() // 2, 0) != view.palette().accent().color()
