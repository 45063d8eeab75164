"""With mouse and keys alone: open, decompose otherwise, compare, change budget and fusion, save, draw, open again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QCoreApplication, QEvent, QPoint, QPointF, QRectF, Qt
from PySide6.QtGui import QImage, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QComboBox, QFileDialog, QTabBar
from pytestqt.qtbot import QtBot

from app.explorer import Explorer
from app.settings import Settings
from engine.session import edits
from engine.session.variant import Variant
from engine.timeline.timeline import Category
from views.timeline.overlay import Hit, slice_rect
from views.timeline.scene import AXIS, GUTTER

SAMPLE = Path(__file__).parents[2] / "samples" / "mlp_fig3_train_8x8_large.hlo"
BLOCK = 0.1
"""Seconds of CPU that the GUI's thread may take at a stretch."""


class Hands:
    """Moves mouse and keys over a window, and watches how long its event loop is busy."""

    def __init__(self, explorer: Explorer) -> None:
        self.explorer = explorer
        self.view = explorer.window.timelines.view
        self.longest = 0.0

    def wait(self, done: Callable[[], bool], limit: float = 120.0) -> None:
        until = time.monotonic() + limit
        while not done():
            assert time.monotonic() < until, "it took too long"
            begun = time.thread_time()
            QCoreApplication.processEvents()
            self.longest = max(self.longest, time.thread_time() - begun)
            time.sleep(0.005)

    def settle(self) -> None:
        store = self.explorer.store
        self.wait(lambda: store.state.facts is not None and not any(e.pending for e in store.state.entries))

    def key(self, key: Qt.Key, modifier: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier) -> None:
        begun = time.thread_time()
        QTest.keyClick(QApplication.focusWidget() or self.view, key, modifier)
        self.longest = max(self.longest, time.thread_time() - begun)

    def tab(self, title: str) -> None:
        """Click the tab of a pane."""
        for bar in self.explorer.window.findChildren(QTabBar):
            for at in range(bar.count()):
                if bar.tabText(at) == title and bar.isVisible():
                    QTest.mouseClick(bar, Qt.MouseButton.LeftButton, pos=bar.tabRect(at).center())
                    return
        raise AssertionError(f"no pane has the tab {title}")

    def click(self, at: QPoint) -> None:
        QTest.mouseClick(self.view.viewport(), Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, at)

    def choose(self, box: QComboBox, text: str) -> None:
        box.setFocus()
        for _ in range(box.count()):
            QTest.keyClick(box, Qt.Key.Key_Up)
        while box.currentText() != text:
            QTest.keyClick(box, Qt.Key.Key_Down)

    def wheel(self, at: QPointF, notches: int, modifier: Qt.KeyboardModifier) -> None:
        event = QWheelEvent(
            at,
            self.view.viewport().mapToGlobal(at),
            QPoint(),
            QPoint(0, 120 * notches),
            Qt.MouseButton.NoButton,
            modifier,
            Qt.ScrollPhase.NoScrollPhase,
            False,
        )
        QApplication.sendEvent(self.view.viewport(), event)

    def variant(self, number: int) -> Variant:
        found = self.explorer.store.state.entries[number].variant
        assert found is not None
        return found

    def longest_gap(self, number: int) -> QRectF:
        timeline = self.variant(number).timeline
        gaps = np.flatnonzero(timeline.category == Category.EXPOSED)
        place = slice_rect(self.view.scene(), Hit(number, int(gaps[np.argmax(timeline.duration[gaps])])))
        assert place is not None
        return place


@pytest.fixture
def hands(qtbot: QtBot, tmp_path: Path) -> Iterator[Hands]:
    explorer = Explorer(Settings(tmp_path / "window.ini"))
    explorer.show()
    explorer.window.resize(1440, 900)
    qtbot.waitExposed(explorer.window)
    yield Hands(explorer)
    explorer.window.close()
    explorer.window.deleteLater()
    explorer.deleteLater()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)


def test_a_whole_sitting(hands: Hands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    explorer, view, control = hands.explorer, hands.view, Qt.KeyboardModifier.ControlModifier
    store, line = explorer.store, explorer.window.plan_line

    monkeypatch.setattr(QFileDialog, "getOpenFileNames", lambda *_: ([str(SAMPLE)], ""))
    hands.key(Qt.Key.Key_O, control)
    hands.settle()
    assert [entry.error for entry in store.state.entries] == ["", "", ""]
    hands.longest = 0.0  # fonts and icons are loaded once

    hands.click(hands.longest_gap(0).center().toPoint())
    assert store.state.selection
    assert store.state.active == "A"
    assert "Why exposed" in explorer.window.inspector.below.text()
    hands.wheel(hands.longest_gap(0).center(), 4, control)
    assert view.range.span < view.range.limit
    view.setFocus()
    hands.key(Qt.Key.Key_0)
    assert view.range.start == 0

    top, _ = view.stack.span_of(1)
    hands.click(QPoint(GUTTER + 60, AXIS + top + 8))
    assert store.state.active == "B"
    before = hands.variant(1)
    hands.choose(line.choices["ring"], "one")
    hands.settle()
    assert hands.variant(1) is not before
    line.budget.setFocus()
    while line.budget.value() > 1:
        QTest.keyClick(line.budget, Qt.Key.Key_Left)
    hands.settle()
    assert hands.variant(1).timeline.in_flight.peak <= 1
    fused = hands.variant(1)
    hands.choose(line.choices["fusion"], "none")
    hands.settle()
    assert "policy=none" in hands.variant(1).plan.passes
    hands.key(Qt.Key.Key_Z, control)
    hands.wait(lambda: hands.variant(1).plan == fused.plan)

    hands.tab("Compare")
    hands.wait(explorer.compare.isVisible)
    assert [shown.key for shown in explorer.compare.lines()] == ["A", "B", "C"]
    assert explorer.compare.table.rowCount() == 3
    hands.tab("Budget")
    hands.wait(lambda: not any(job.state == "running" for job in explorer.jobs()))
    hands.tab("Graph")
    hands.key(Qt.Key.Key_D, control)
    hands.settle()
    assert [entry.key for entry in store.state.entries] == ["A", "B", "C", "D"]
    view.setFocus()
    hands.key(Qt.Key.Key_B)
    assert store.state.base == "D"
    hands.key(Qt.Key.Key_M)
    assert len(store.state.marks) == 1
    hands.key(Qt.Key.Key_F, control)
    QTest.keyClicks(explorer.window.timelines.search.line, "dot")
    hands.key(Qt.Key.Key_Return)
    assert store.state.selection.entry == "D"
    hands.key(Qt.Key.Key_Escape)

    picture, session = tmp_path / "timelines.png", tmp_path / "step.lapstrake"
    for path in (picture, tmp_path / "timelines.svg"):
        monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_, chosen=path: (str(chosen), ""))
        hands.key(Qt.Key.Key_E, control)
        assert path.stat().st_size > 1000
    assert QImage(str(picture)).width() == 2 * view.viewport().width()
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(session), ""))
    hands.key(Qt.Key.Key_S, control)
    saved = store.state
    monkeypatch.setattr(QFileDialog, "getOpenFileNames", lambda *_: ([str(session)], ""))
    hands.key(Qt.Key.Key_O, control)
    hands.settle()
    reopened = store.state
    assert [(e.key, e.plan) for e in reopened.entries] == [(e.key, e.plan) for e in saved.entries]
    assert (reopened.base, reopened.marks) == (saved.base, saved.marks)
    makespans = [e.variant.metrics.makespan if e.variant else 0 for e in reopened.entries]
    assert makespans == [e.variant.metrics.makespan if e.variant else 0 for e in saved.entries]
    assert edits.options_of(reopened.entries[1].plan, "decompose") == {"ring": "one"}
    assert hands.longest < BLOCK
