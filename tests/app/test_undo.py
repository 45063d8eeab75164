"""Everything that was done can be undone to the last step, and done again to the same end."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtWidgets import QInputDialog
from pytestqt.qtbot import QtBot

from app.explorer import Explorer
from engine.session import edits
from tests.app.test_replacing import FORWARD, TRAIN
from tests.app.waiting import LONG, opened, settled


def work(explorer: Explorer) -> tuple[object, ...]:
    session = explorer.store.state
    entries = tuple((e.asked, e.key, e.name, e.recording, e.collapsed) for e in session.entries)
    modules = tuple((m.key, m.path, m.name) for m in session.modules)
    return entries, modules, session.marks, session.lanes, session.base


def test_all_of_it_goes_back_and_comes_again(
    qtbot: QtBot, explorer: Explorer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened(qtbot, explorer, FORWARD)
    first = work(explorer)
    table = tmp_path / "costs.csv"
    table.write_text("name,us\nall-gather,5\n", "utf-8")
    monkeypatch.setattr(QInputDialog, "getText", lambda *_, **__: ("named", True))

    def done() -> None:
        qtbot.waitUntil(lambda: settled(explorer), timeout=LONG)

    line = explorer.window.plan_line
    line.budget.setValue(2)
    for box in (*line.choices.values(), line.scheduler, line.chip):
        box.setCurrentIndex(box.count() - 1)
        box.activated.emit(box.currentIndex())
    done()
    for action in ("duplicate", "rename", "mark", "next-variant", "fold", "base", "move-up", "remove"):
        if action in explorer.actions:
            explorer.perform(action)
    explorer.imports.add_costs(str(table))
    done()
    explorer.opening.add(str(TRAIN))
    done()
    explorer.perform("name-module")
    explorer.store.become("Base", edits.based(explorer.store.state, explorer.store.state.active))
    explorer.perform("remove-module")
    done()
    last, steps = work(explorer), 0
    assert explorer.window.isWindowModified()
    while explorer.store.undo_label is not None:
        explorer.perform("undo")
        steps += 1
        assert explorer.store.state.active_entry is not None
    assert steps > 10
    assert work(explorer) == first
    assert not explorer.window.isWindowModified()
    done()
    assert all(not entry.error and not entry.stale for entry in explorer.store.state.entries)
    while explorer.store.redo_label is not None:
        explorer.perform("redo")
    done()
    assert work(explorer) == last
    assert explorer.window.isWindowModified()
