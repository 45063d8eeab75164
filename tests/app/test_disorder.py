"""Everything at random: no order of actions, clicks and changes may raise, hang or leave the window unusable."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication, QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QComboBox, QFileDialog, QInputDialog, QMessageBox
from pytestqt.qtbot import QtBot

from app.actions.table import ACTIONS
from app.explorer import Explorer
from tests.patience import LONG
from tests.places import SAMPLES

FILES = (
    "mlp_fig3.hlo",
    "mlp_fig2_train_8_bf16.hlo",
    "decoder_fig2_scan_4_f32.hlo",
    "recommender_2_bf16.hlo",
    "nothing",
)
LEFT_OUT = {"quit", "about", "verify"}
"""Ends the test, is modal on some platforms, takes minutes at random."""


class Disorder:
    """Does things at random."""

    def __init__(self, explorer: Explorer, seed: int) -> None:
        self.explorer = explorer
        self.random = random.Random(seed)
        self._ids = [action.id for action in ACTIONS if action.id not in LEFT_OUT]

    def step(self) -> None:
        act = self.random.choices((self._act, self._click, self._change, self._pane, self._pick), (5, 3, 3, 1, 1))[0]
        act()
        for _ in range(self.random.randrange(1, 6)):
            QCoreApplication.processEvents()

    def _act(self) -> None:
        self.explorer.actions[self.random.choice(self._ids)].trigger()

    def _click(self) -> None:
        area = self.explorer.window.timelines.view.viewport()
        at = QPoint(self.random.randrange(max(1, area.width())), self.random.randrange(max(1, area.height())))
        keys = self.random.choice([Qt.KeyboardModifier.NoModifier, Qt.KeyboardModifier.ControlModifier])
        click = QTest.mouseClick if self.random.random() < 0.8 else QTest.mouseDClick
        click(area, Qt.MouseButton.LeftButton, keys, at)
        QTest.mouseMove(area, at)

    def _change(self) -> None:
        line = self.explorer.window.plan_line
        boxes = [line.chip, line.scheduler, *line.choices.values()]
        if self.random.random() < 0.4:
            line.budget.setValue(self.random.randrange(1, 17))
            return
        box: QComboBox = self.random.choice(boxes)
        box.setCurrentIndex(self.random.randrange(box.count()))
        box.activated.emit(box.currentIndex())

    def _pane(self) -> None:
        self.explorer.window.show_pane(self.random.choice(list(self.explorer.window.docks)))

    def _pick(self) -> None:
        listed = self.explorer.window.collectives
        if listed.model.rowCount():
            listed.view.setCurrentIndex(listed.model.index(self.random.randrange(listed.model.rowCount()), 0))


@pytest.mark.parametrize(
    ("seed", "seconds"), [(0, 3), *(pytest.param(n, 30, marks=pytest.mark.full) for n in range(1, 4))]
)
def test_nothing_breaks(
    qtbot: QtBot, explorer: Explorer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, seconds: int
) -> None:
    disorder = Disorder(explorer, seed)
    pick = disorder.random.choice
    monkeypatch.setattr(QInputDialog, "getText", lambda *_, **__: (pick(["x", "", "a long name of a variant"]), True))
    monkeypatch.setattr(QInputDialog, "getInt", lambda *given, **_: (pick([given[4], given[5]]), True))
    names = ["a.png", "b.svg", "c.lapstrake", "nowhere/d.png"]
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(tmp_path / pick(names)), ""))
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (str(SAMPLES / pick(FILES)), ""))
    monkeypatch.setattr(
        QFileDialog, "getOpenFileNames", lambda *_: ([str(SAMPLES / pick(FILES)) for _ in range(pick([1, 2]))], "")
    )
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_: str(SAMPLES))
    answers = [QMessageBox.StandardButton.Save, QMessageBox.StandardButton.Discard, QMessageBox.StandardButton.Cancel]
    monkeypatch.setattr(QMessageBox, "question", lambda *_: pick(answers))
    explorer.open(str(SAMPLES / FILES[0]))
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        disorder.step()  # pytest-qt fails the test for what a slot raises
    monkeypatch.setattr(QMessageBox, "question", lambda *_: QMessageBox.StandardButton.Discard)
    explorer.open(str(SAMPLES / FILES[0]))
    qtbot.waitUntil(lambda: any(e.variant for e in explorer.store.state.entries), timeout=LONG)
