"""Several modules in one window: opened together, added, dropped, removed, read again, saved and recovered."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication, QMimeData, QPointF, Qt, QUrl
from PySide6.QtGui import QDropEvent
from PySide6.QtWidgets import QFileDialog, QInputDialog, QMenu, QMessageBox
from pytestqt.qtbot import QtBot

from app.explorer import Explorer
from engine.session import edits, files
from engine.session.lookup import lookup
from engine.session.matching import shown_in
from engine.session.session import Session
from tests.app import waiting
from tests.app.waiting import LONG
from tests.places import SAMPLES
from views.budget.budget import BudgetPane
from views.compare.differences import DifferencePane
from views.dump import DumpDialog
from views.graph.comparison import comparisons_of
from views.hlo_text.pane import HloPane

FORWARD = SAMPLES / "mlp_fig2_forward_4_f32.hlo"
TRAIN = SAMPLES / "mlp_fig2_train_4_f32.hlo"
CHAIN = SAMPLES / "mlp_chain_forward_4_f32.hlo"


def settled(explorer: Explorer, modules: int) -> bool:
    """Whether so many modules are there, with all their variants and what they have in common."""
    session = explorer.store.state
    read = [module for module in session.modules if module.facts is not None]
    matched = modules < 2 or len(session.matches) > 0
    there = not session.reading and not explorer.documents.replacing and len(read) == len(session.modules) == modules
    return there and matched and not any(entry.pending for entry in session.entries)


def wait(qtbot: QtBot, explorer: Explorer, modules: int) -> Session:
    qtbot.waitUntil(lambda: settled(explorer, modules), timeout=LONG)
    return explorer.store.state


def shown(session: Session) -> list[tuple[str, str]]:
    return [(entry.key, session.label(entry.module)) for entry in session.entries]


def drop(explorer: Explorer, *paths: Path) -> None:
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path)) for path in paths])
    copy, left = Qt.DropAction.CopyAction, Qt.MouseButton.LeftButton
    event = QDropEvent(QPointF(10, 10), copy, data, left, Qt.KeyboardModifier.NoModifier)
    explorer.window.dropEvent(event)


def choice(explorer: Explorer, begins: str) -> Callable[[], None]:
    """What the menu after a drop offers under a text."""
    menu = explorer.window.findChild(QMenu, "dropped")
    assert isinstance(menu, QMenu)
    found = next(action for action in menu.actions() if action.text().startswith(begins))

    def choose() -> None:
        found.trigger()
        menu.close()

    return choose


def test_files_opened_together_are_compared_in_one_session(qtbot: QtBot, explorer: Explorer) -> None:
    explorer.open(str(FORWARD), str(TRAIN))
    session = wait(qtbot, explorer, 2)
    names = (FORWARD.stem, TRAIN.stem)
    assert [m.key for m in session.modules] == ["1", "2"]
    assert shown(session) == [("A", names[0]), ("B", names[0]), ("C", names[0]), ("D", names[1]), ("E", names[1])]
    assert (session.base, session.active) == ("A", "B")
    assert not explorer.documents.unsaved
    assert explorer.window.windowTitle() == f"{names[0]} + {names[1]}[*] — Lapstrake"
    base = session.base_entry
    assert base is not None
    assert base.variant is not None
    gather = lookup(base.variant).by_name("all-gather")
    assert gather is not None
    explorer.store.become("Select", edits.selected(session, "A", (gather,)))
    assert shown_in(explorer.store.state, "D")
    listed = explorer.window.modules
    assert listed.isVisible()
    listed.itemActivated.emit(listed.item(1))
    session = explorer.store.state
    assert session.active == "E"
    assert session.path == str(TRAIN)
    assert explorer.window.statusBar().facts.text().endswith("instructions as loaded · 2 modules")  # type: ignore[attr-defined] # ours
    listed.itemActivated.emit(listed.item(0))
    assert explorer.store.state.active == "B"
    explorer.store.become("Activate E", edits.activated(explorer.store.state, "E"))
    explorer.window.show_pane("Differences")
    pane = explorer.window.findChild(DifferencePane)
    assert isinstance(pane, DifferencePane)
    pane.refresh()
    assert "8 of 8" in pane.text.text()
    table = explorer.compare.table
    assert not table.isColumnHidden(1)
    assert {line.module for line in explorer.compare.lines()} == set(names)


def test_an_added_module_is_one_step_that_undo_takes_back(qtbot: QtBot, explorer: Explorer) -> None:
    explorer.open(str(FORWARD))
    wait(qtbot, explorer, 1)
    assert explorer.window.modules.isHidden()
    explorer.opening.add(str(TRAIN))
    session = wait(qtbot, explorer, 2)
    entry = session.active_entry
    assert entry is not None
    assert (entry.key, entry.module) == ("E", "2")
    assert entry.plan == session.entries[1].plan
    assert explorer.documents.unsaved
    explorer.opening.add(str(TRAIN))
    assert "open already" in explorer.window.statusBar().currentMessage()
    explorer.perform("undo")
    assert [m.key for m in explorer.store.state.modules] == ["1"]
    explorer.perform("redo")
    wait(qtbot, explorer, 2)
    explorer.perform("remove-module")
    session = explorer.store.state
    assert [m.key for m in session.modules] == ["1"]
    assert session.active in ("A", "B", "C")
    explorer.perform("undo")
    QCoreApplication.processEvents()
    session = wait(qtbot, explorer, 2)
    assert "2" in explorer.documents.modules
    explorer.documents.open(str(CHAIN))
    wait(qtbot, explorer, 1)
    assert list(explorer.documents.modules) == ["3"]  # none that another module had
    assert explorer.store.state.matches == {}


def test_a_drop_beside_an_open_module_asks_whether_it_stays(qtbot: QtBot, explorer: Explorer) -> None:
    drop(explorer, FORWARD)
    wait(qtbot, explorer, 1)
    drop(explorer, TRAIN)
    choice(explorer, "Add mlp_fig2_train_4_f32.hlo beside mlp_fig2_forward_4_f32")()
    wait(qtbot, explorer, 2)
    drop(explorer, CHAIN)
    choice(explorer, "Open mlp_chain_forward_4_f32.hlo instead")()
    session = wait(qtbot, explorer, 1)
    assert session.path == str(CHAIN)


def test_what_was_not_saved_is_asked_about(
    qtbot: QtBot, explorer: Explorer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    explorer.open(str(FORWARD))
    wait(qtbot, explorer, 1)
    explorer.perform("duplicate")
    answers = [QMessageBox.StandardButton.Cancel, QMessageBox.StandardButton.Save]
    monkeypatch.setattr(QMessageBox, "question", lambda *_: answers.pop(0))
    explorer.open(str(TRAIN))
    qtbot.waitUntil(lambda: len(answers) == 1 and not explorer.documents.replacing, timeout=LONG)
    assert len(explorer.store.state.entries) == 4
    place = tmp_path / "a.lapstrake"
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(place), ""))
    explorer.open(str(TRAIN))
    session = wait(qtbot, explorer, 1)
    assert session.path == str(TRAIN)
    assert len(files.load(place).session.entries) == 4
    explorer.open(str(FORWARD))
    assert not answers


def test_a_file_that_cannot_be_added_leaves_the_session_as_it_is(
    qtbot: QtBot, explorer: Explorer, tmp_path: Path
) -> None:
    explorer.open(str(FORWARD))
    wait(qtbot, explorer, 1)
    # Default plans give way to better ones behind the first pictures.
    qtbot.waitUntil(lambda: waiting.settled(explorer), timeout=LONG)
    before = explorer.store.state
    bad = tmp_path / "bad.hlo"
    bad.write_text("HloModule m\nENTRY e {\n  ROOT r = f32[] negate(nobody)\n}\n", "utf-8")
    said = explorer.window.notices.texts
    explorer.opening.add(str(tmp_path / "missing.hlo"))
    qtbot.waitUntil(lambda: said()[:1] != () and said()[0].startswith("missing.hlo was not added"), timeout=LONG)
    explorer.opening.add(str(bad))
    qtbot.waitUntil(lambda: said()[0].startswith("bad.hlo was not added"), timeout=LONG)
    assert explorer.store.state == before
    explorer.open(str(bad), str(TRAIN))
    session = wait(qtbot, explorer, 1)
    assert session.path == str(TRAIN)
    assert not session.problem


def test_a_session_of_several_modules_is_saved_and_opened_even_when_one_is_gone(
    qtbot: QtBot, explorer: Explorer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other.hlo"
    shutil.copy(TRAIN, other)
    explorer.open(str(FORWARD), str(other))
    session = wait(qtbot, explorer, 2)
    monkeypatch.setattr(QInputDialog, "getText", lambda *_, **__: ("after", True))
    explorer.store.become("Activate D", edits.activated(session, "D"))
    explorer.perform("name-module")
    assert explorer.store.state.label("2") == "after"
    place = tmp_path / "both.lapstrake"
    assert explorer.documents.save(str(place)) == ""
    explorer.open(str(place))
    reopened = wait(qtbot, explorer, 2)
    assert shown(reopened) == [*shown(session)[:3], ("D", "after"), ("E", "after")]
    assert reopened.active == "D"
    other.unlink()
    explorer.open(str(place))
    qtbot.waitUntil(lambda: not explorer.documents.replacing, timeout=LONG)
    qtbot.waitUntil(lambda: not any(e.pending for e in explorer.store.state.entries), timeout=LONG)
    session = explorer.store.state
    assert not session.problem
    assert [bool(e.error) for e in session.entries] == [False, False, False, True, True]
    assert "other.hlo was not read" in session.entries[3].error
    shutil.copy(TRAIN, other)
    explorer.perform("rerun")
    wait(qtbot, explorer, 2)
    assert [e.error for e in explorer.store.state.entries] == [""] * 5


def test_a_module_that_changed_on_disk_is_read_again_alone(qtbot: QtBot, explorer: Explorer, tmp_path: Path) -> None:
    other = tmp_path / "other.hlo"
    shutil.copy(FORWARD, other)
    explorer.open(str(FORWARD), str(other))
    qtbot.waitUntil(lambda: settled(explorer, 2) or _same(explorer), timeout=LONG)
    first = explorer.documents.modules["1"]
    shutil.copy(TRAIN, other)
    notices = explorer.window.notices
    qtbot.waitUntil(lambda: any("other.hlo has changed" in text for text in notices.texts()), timeout=LONG)
    notices.take("Read again")
    session = wait(qtbot, explorer, 2)
    assert notices.texts() == ()
    assert explorer.documents.modules["1"] is first
    counts = [m.facts.instructions for m in session.modules if m.facts is not None]
    assert counts[1] > counts[0]


def _same(explorer: Explorer) -> bool:
    """Two files of one content need no matching."""
    session = explorer.store.state
    return (
        len({m.sha256 for m in session.modules}) == 1 and len(session.entries) > 3 and not session.entries[-1].pending
    )


def test_a_dump_lists_its_modules_and_opens_those_picked(qtbot: QtBot, explorer: Explorer, tmp_path: Path) -> None:
    names = (
        "module_0001.jit_f.before_optimizations.txt",
        "module_0001.jit_f.0001.spmd.after_spmd-partitioning.before_x.txt",
        "module_0002.jit_g.0001.spmd.after_spmd-partitioning.before_x.txt",
    )
    for name, sample in zip(names, (FORWARD, FORWARD, TRAIN), strict=True):
        shutil.copy(sample, tmp_path / name)
    explorer.open(str(tmp_path))
    dialog = explorer.window.findChild(DumpDialog)
    assert isinstance(dialog, DumpDialog)
    assert [path.name for path in dialog.picked()] == [names[1]]
    item = dialog.list.topLevelItem(2)
    assert item is not None
    item.setSelected(True)
    dialog.search.setText("before_opt")
    dialog.search.setText("")
    dialog.accept()
    session = wait(qtbot, explorer, 2)
    assert [session.label(m.key) for m in session.modules] == [
        "jit_f after spmd-partitioning",
        "jit_g after spmd-partitioning",
    ]
    assert len(session.entries) == 5


def test_recovery_brings_every_module_back(qtbot: QtBot, explorer: Explorer) -> None:
    explorer.open(str(FORWARD), str(TRAIN))
    wait(qtbot, explorer, 2)
    explorer.recovery.write()
    left = explorer.settings.folder / "autosave-999999999.lapstrake"
    shutil.copy(next(explorer.settings.folder.glob("autosave-*")), left)
    explorer.perform("recover")
    session = wait(qtbot, explorer, 2)
    assert len(session.entries) == 5
    assert explorer.documents.session_path == ""
    assert explorer.documents.unsaved


def test_what_a_crash_left_keeps_its_file_and_shows_what_was_active(
    qtbot: QtBot, explorer: Explorer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    explorer.open(str(FORWARD), str(TRAIN))
    wait(qtbot, explorer, 2)
    mine = tmp_path / "mine.lapstrake"
    explorer.saving.save_to(str(mine))
    explorer.store.become("Activate E", edits.activated(explorer.store.state, "E"))
    explorer.store.become("Mark", edits.marked(explorer.store.state, 7))
    explorer.recovery.write()
    left = explorer.settings.folder / "autosave-999999999.lapstrake"
    shutil.copy(next(explorer.settings.folder.glob("autosave-*")), left)
    view = explorer.window.timelines.view
    view.verticalScrollBar().setValue(0)
    explorer.perform("recover")
    session = wait(qtbot, explorer, 2)
    assert session.active == "E"
    top, _ = view.stack.span_of(4)
    assert view.verticalScrollBar().value() + view.verticalScrollBar().pageStep() > top
    assert explorer.documents.unsaved
    assert explorer.documents.session_path == str(mine)
    explorer.perform("save")
    assert [mark.time for mark in files.load(mine).session.marks] == [7]
    assert not explorer.documents.unsaved


def test_every_pane_follows_the_active_module(qtbot: QtBot, explorer: Explorer) -> None:
    explorer.open(str(FORWARD), str(TRAIN))
    wait(qtbot, explorer, 2)
    budget = explorer.window.findChild(BudgetPane)
    hlo = explorer.window.findChild(HloPane)
    assert isinstance(budget, BudgetPane)
    assert isinstance(hlo, HloPane)
    for key in ("E", "B", "E"):
        explorer.store.become("Activate", edits.activated(explorer.store.state, key))
        session = explorer.store.state
        entry, variant = session.active_entry, session.active_variant
        assert entry is not None
        assert variant is not None
        for title in explorer.window.docks:
            explorer.window.show_pane(title)
            QCoreApplication.processEvents()
        listed = explorer.window.collectives
        assert listed.count == len(variant.candidates)
        assert explorer.window.plan_line.scheduler.currentText() == entry.plan.scheduler
        assert session.label(entry.module) in hlo.title.text()
        comparisons = [choice.variant for choice in comparisons_of(session)]
        assert {made.program.module.source for made in comparisons} == {variant.program.module.source}
    qtbot.waitUntil(lambda: not any(job.state == "running" for job in explorer.jobs()), timeout=LONG)
    assert not [job.error for job in explorer.jobs() if job.error]
