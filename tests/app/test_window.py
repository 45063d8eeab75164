"""The window as a whole, with real workers: a file is opened, compared, changed, saved and opened again."""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication, QMimeData, QPointF, QSize, Qt, QUrl
from PySide6.QtGui import QDropEvent, QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QDialog
from pytestqt.qtbot import QtBot

from app.actions.action import Scope
from app.actions.table import ACTIONS, MENUS
from app.explorer import Explorer
from app.recovery import Recovery
from engine.session import edits, files
from engine.session.commands import report_command
from engine.session.plan import MachineSpec, Plan
from engine.session.session import Check, Session
from engine.session.store import Store
from tests.app.waiting import LONG, drawn
from tests.places import SAMPLES
from views.palette import CommandPalette
from views.theme import DARK

SAMPLE = SAMPLES / "mlp_fig2_forward_4_f32.hlo"


def open_sample(qtbot: QtBot, explorer: Explorer) -> Session:
    explorer.open(str(SAMPLE))
    qtbot.waitUntil(lambda: drawn(explorer), timeout=LONG)
    return explorer.store.state


def test_a_file_becomes_variants_that_can_be_changed_saved_and_opened_again(
    qtbot: QtBot, explorer: Explorer, tmp_path: Path
) -> None:
    session = open_sample(qtbot, explorer)
    assert not session.problem
    assert [e.error for e in session.entries] == [""] * len(session.entries)
    assert len(session.entries) >= 3
    assert session.facts is not None
    assert session.facts.partitions == 4
    base, active = session.base_entry, session.active_variant
    assert base is not None
    assert active is not None
    assert active.candidates
    explorer.window.plan_line.budget.setValue(1)
    qtbot.waitUntil(lambda: drawn(explorer), timeout=LONG)
    changed = explorer.store.state.active_variant
    assert changed is not None
    assert changed.schedule.budget.total == 1
    explorer.perform("undo")
    QCoreApplication.processEvents()
    again = explorer.store.state.active_variant
    assert again is active
    place = tmp_path / "session.lapstrake"
    assert explorer.documents.save(str(place)) == ""
    assert json.loads(place.read_text("utf-8"))["lapstrake_session"] == files.VERSION
    explorer.open(str(place))
    qtbot.waitUntil(lambda: drawn(explorer), timeout=LONG)
    reopened = explorer.store.state
    assert [(e.key, e.plan, e.machine) for e in reopened.entries] == [
        (e.key, e.plan, e.machine) for e in session.entries
    ]
    assert explorer.recent()[0] == str(place)


def test_a_bad_file_says_what_is_wrong_where_its_timelines_would_be(
    qtbot: QtBot, explorer: Explorer, tmp_path: Path
) -> None:
    bad = tmp_path / "bad.hlo"
    bad.write_text("HloModule m\nENTRY e {\n  ROOT r = f32[] negate(nobody)\n}\n", "utf-8")
    for path in (bad, tmp_path, tmp_path / "missing.hlo"):
        explorer.open(str(path))
        qtbot.waitUntil(lambda: drawn(explorer), timeout=LONG)
        assert explorer.store.state.problem
        assert explorer.window.timelines.problem.isVisible()
    bad.write_bytes(SAMPLE.read_bytes())
    explorer.open(str(bad))
    qtbot.waitUntil(lambda: drawn(explorer), timeout=LONG)
    assert not explorer.store.state.problem


def test_a_plan_that_cannot_be_made_fails_in_its_place(qtbot: QtBot, explorer: Explorer) -> None:
    session = open_sample(qtbot, explorer)
    entry = session.active_entry
    assert entry is not None
    broken = edits.with_options(entry.plan, "decompose", {"ring": "sideways"})
    explorer.store.become("Break", edits.planned(session, entry.key, broken))
    qtbot.waitUntil(lambda: drawn(explorer), timeout=LONG)
    failed = explorer.store.state.active_entry
    assert failed is not None
    assert "sideways" in failed.error
    explorer.perform("undo")
    mended = explorer.store.state.active_entry
    assert mended is not None
    assert not mended.error


def test_the_numbers_of_a_variant_can_be_verified(qtbot: QtBot, explorer: Explorer) -> None:
    open_sample(qtbot, explorer)
    explorer.perform("verify")

    def check() -> Check | None:
        entry = explorer.store.state.active_entry
        return entry.check if entry is not None else None

    qtbot.waitUntil(lambda: check() is not None, timeout=LONG)
    found = check()
    assert found is not None
    assert found.equal, found.text
    assert any("4 cpu devices" in job.message for job in explorer.jobs())
    assert "Numbers" in explorer.window.inspector.above.text()


def test_dropping_a_file_opens_it(qtbot: QtBot, explorer: Explorer) -> None:
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(SAMPLE))])
    event = QDropEvent(
        QPointF(10, 10),
        Qt.DropAction.CopyAction,
        data,
        Qt.MouseButton.LeftButton,
        Qt.KeyboardModifier.NoModifier,
    )
    explorer.window.dropEvent(event)
    assert explorer.store.state.path == str(SAMPLE)
    explorer.job_list.cancel_all()
    qtbot.waitUntil(lambda: explorer.store.state.path == "", timeout=LONG)


def test_the_palette_runs_what_was_typed(qtbot: QtBot, explorer: Explorer) -> None:
    explorer.perform("palette")
    palette = explorer.window.findChild(CommandPalette)
    assert isinstance(palette, CommandPalette)
    QTest.keyClicks(palette.line, "light or d")
    QTest.keyClick(palette.line, Qt.Key.Key_Return)
    assert explorer.theme is DARK
    assert explorer.settings.theme == "dark"


def test_help_opens_beside_the_window(explorer: Explorer) -> None:
    for action in ("keys", "guide"):
        explorer.perform(action)
    shown = [w for w in explorer.window.findChildren(QDialog) if w.isVisible()]
    assert len(shown) == 2
    assert not any(w.isModal() for w in shown)
    for dialog in shown:
        dialog.close()


def test_the_layout_is_remembered_and_can_be_reset(explorer: Explorer, qtbot: QtBot) -> None:
    dock = explorer.window.docks["Inspector"]
    dock.hide()
    kept = explorer.window.layout_state()
    explorer.perform("reset-layout")
    assert dock.isVisible()
    explorer.window.open_with(None, kept)
    assert not dock.isVisible()


def test_copy_as_command_line_quotes_what_the_shell_would_eat(explorer: Explorer, qtbot: QtBot) -> None:
    open_sample(qtbot, explorer)
    entry = explorer.store.state.active_entry
    assert entry is not None
    text = report_command("my model.hlo", entry)
    assert text.startswith("lapstrake report 'my model.hlo' --chip tpu-v4 --passes ")
    explorer.perform("copy-command")
    assert QGuiApplication.clipboard().text().startswith("lapstrake report ")


def test_every_action_has_a_place_and_keys_of_its_own() -> None:
    ids = [action.id for action in ACTIONS]
    assert len(set(ids)) == len(ids)
    assert {action.menu for action in ACTIONS} <= {*MENUS, ""}
    for scope in Scope:
        keys = [key for action in ACTIONS if action.scope == scope for key in action.keys]
        assert len(set(keys)) == len(keys)
    for action in ACTIONS:
        for key in action.keys:
            plain = len(key) == 1
            assert not plain or action.scope != Scope.WINDOW, f"{key} would act while someone types"


class TestRecovery:
    @staticmethod
    def recovery(folder: Path) -> Recovery:
        store: Store[Session] = Store(edits.opened("step.hlo", [("", Plan())], MachineSpec()))
        return Recovery(store, folder)

    def test_what_a_crash_left_is_found(self, qtbot: QtBot, tmp_path: Path) -> None:
        recovery = self.recovery(tmp_path)
        recovery.write()
        assert recovery.left_behind() == ()
        mine = next(tmp_path.glob("autosave-*"))
        crashed = tmp_path / "autosave-999999999.lapstrake"
        crashed.write_bytes(mine.read_bytes())
        assert recovery.left_behind() == (crashed,)
        assert recovery.last() == crashed
        recovery.discard()
        assert recovery.last() is None
        recovery.close()

    @pytest.mark.skipif(os.name == "nt", reason="Windows lets few users make links")
    def test_a_file_that_goes_while_it_is_looked_at_is_passed_over(self, qtbot: QtBot, tmp_path: Path) -> None:
        (tmp_path / "autosave-999999998.lapstrake").symlink_to("gone")
        crashed = tmp_path / "autosave-999999999.lapstrake"
        crashed.touch()
        recovery = self.recovery(tmp_path)
        assert recovery.last() == crashed
        recovery.close()

    def test_what_was_open_at_the_end_can_be_gone_on_with(self, qtbot: QtBot, tmp_path: Path) -> None:
        recovery = self.recovery(tmp_path)
        recovery.close()
        assert [path.name for path in tmp_path.iterdir()] == ["last.lapstrake"]
        last = self.recovery(tmp_path).last()
        assert last is not None
        assert files.load(last).session.entries[0].plan == Plan()

    def test_the_last_edit_is_kept_at_once_and_with_its_file(self, qtbot: QtBot, tmp_path: Path) -> None:
        store: Store[Session] = Store(edits.opened("step.hlo", [("", Plan())], MachineSpec()))
        recovery = Recovery(store, tmp_path, place_of=lambda: str(tmp_path / "mine.lapstrake"))
        store.become("Mark", edits.marked(store.state, 5))
        for _ in range(8):
            qtbot.wait(60)
            store.settle(reading=not store.state.reading)
            store.settle(entries=(replace(store.state.entries[0], error=f"{time.monotonic()}"),))
        (place,) = tmp_path.glob("autosave-*")
        saved = files.load(place)
        assert [mark.time for mark in saved.session.marks] == [5]
        assert saved.home == str(tmp_path / "mine.lapstrake")
        recovery.close()

    def test_an_empty_window_leaves_the_last_session_alone(self, qtbot: QtBot, tmp_path: Path) -> None:
        self.recovery(tmp_path).close()
        before = (tmp_path / "last.lapstrake").read_bytes()
        Recovery(Store(Session()), tmp_path).close()
        assert (tmp_path / "last.lapstrake").read_bytes() == before


def test_the_module_as_loaded_is_shown_before_others_are_begun(qtbot: QtBot, explorer: Explorer) -> None:
    shown: list[list[str]] = []
    planned: list[str] = []

    def session_changed(session: Session, changed: frozenset[str]) -> None:
        shown.append([entry.key for entry in session.entries if entry.variant is not None])

    def jobs_changed() -> None:
        if not any(shown):
            planned.extend(job.title for job in explorer.jobs() if job.state == "running")

    stops = explorer.store.subscribe(session_changed), explorer.watch_jobs(jobs_changed)
    explorer.open(str(SAMPLE))
    qtbot.waitUntil(lambda: drawn(explorer), timeout=LONG)
    for stop in stops:
        stop()
    base = explorer.store.state.base
    assert next(keys for keys in shown if keys) == [base]
    assert {title for title in planned if title.startswith("planning")} <= {f"planning {base}"}


def test_a_mesh_that_does_not_fit_is_refused_where_it_was_typed(qtbot: QtBot, explorer: Explorer) -> None:
    entries, line = open_sample(qtbot, explorer).entries, explorer.window.plan_line
    line.mesh.setText("x=3")
    line.mesh.editingFinished.emit()
    assert "x=3" in line.machine_trouble.text()
    assert explorer.store.state.entries == entries


def test_links_that_cannot_be_read_stay_refused_until_they_are_others(
    qtbot: QtBot, explorer: Explorer, tmp_path: Path
) -> None:
    """Leaving the field says the same once more, undo takes it back, and coming again to it is refused at once."""
    open_sample(qtbot, explorer)
    topology = explorer.window.plan_line.topology
    missing = str(tmp_path / "x3.toml")

    def refused() -> bool:
        return all("x3.toml" in entry.error for entry in explorer.store.state.entries)

    topology.setText(missing)
    topology.editingFinished.emit()
    qtbot.waitUntil(refused, timeout=LONG)
    topology.editingFinished.emit()
    QCoreApplication.processEvents()
    assert refused()
    explorer.perform("undo")
    qtbot.waitUntil(lambda: drawn(explorer), timeout=LONG)
    assert not any(entry.error for entry in explorer.store.state.entries)
    topology.setText(missing)
    topology.editingFinished.emit()
    qtbot.waitUntil(refused, timeout=LONG)


def test_resetting_the_layout_keeps_the_windows_size(qtbot: QtBot, explorer: Explorer) -> None:
    explorer.window.resize(1280, 800)
    QCoreApplication.processEvents()
    size = explorer.window.size()
    explorer.perform("reset-layout")
    for _ in range(5):
        QCoreApplication.processEvents()
    assert explorer.window.size() == size
    assert all(dock.isVisibleTo(explorer.window) for dock in explorer.window.docks.values())


def test_panes_take_their_share_of_a_large_window_until_the_user_moves_them(qtbot: QtBot, explorer: Explorer) -> None:
    window = explorer.window
    window.resize(1280, 800)
    explorer.perform("reset-layout")
    bottom, side = window.docks["Compare"], window.docks["Inspector"]
    QCoreApplication.processEvents()
    assert bottom.height() < 300
    assert side.width() < 300
    window.resize(2560, 1440)
    QCoreApplication.processEvents()
    assert bottom.height() >= 500
    assert side.width() >= 360
    window.resizeDocks([side], [300], Qt.Orientation.Horizontal)
    QCoreApplication.processEvents()
    moved = side.width()
    window.resize(2500, 1400)
    window.resize(2560, 1440)
    QCoreApplication.processEvents()
    assert side.width() == moved


def test_a_window_made_small_in_one_step_has_the_layout_of_its_size(qtbot: QtBot, explorer: Explorer) -> None:
    window = explorer.window

    def sizes() -> list[QSize]:
        QCoreApplication.processEvents()
        return [window.timelines.size(), *(window.docks[title].size() for title in ("Collectives", "Inspector"))]

    window.resize(1280, 800)
    explorer.perform("reset-layout")
    small = sizes()
    window.resize(2560, 1440)
    large = sizes()
    assert large != small
    for _ in range(2):
        window.resize(1280, 800)
        assert sizes() == small
        window.resize(2560, 1440)
        assert sizes() == large
    window.resizeDocks([window.docks["Inspector"]], [300], Qt.Orientation.Horizontal)
    QCoreApplication.processEvents()
    window.resize(1280, 800)
    window.resize(2560, 1440)
    assert sizes()[2].width() < large[2].width()


def test_panes_and_notices_leave_the_timelines_their_height(qtbot: QtBot, explorer: Explorer) -> None:
    window = explorer.window
    window.resize(1280, 800)
    window.show_pane("Compare")
    qtbot.wait(50)
    window.grab()
    before = window.timelines.height()
    for show in (explorer.show_graph, lambda: explorer.show_export("bundle"), lambda: window.show_pane("Fusion")):
        show()  # with the room that it needs to be read
        qtbot.waitUntil(lambda: window.timelines.height() < before, timeout=LONG)
        for title in ("HLO", "Runs", "Table", "Log"):
            window.show_pane(title)
            qtbot.waitUntil(lambda: window.timelines.height() == before, timeout=LONG)
            qtbot.wait(5)
            assert window.timelines.height() == before, title
    text = "what is wrong with it, in many words " * 20 + "\n\n" + "\n".join(f"line {n}" for n in range(9))
    for about in "abc":
        window.notices.say(about, text, (("Try again", lambda: None),))
    qtbot.wait(10)
    window.grab()
    assert window.size() == QSize(1280, 800)
    assert window.notices.verticalScrollBar().maximum() > 0
    assert window.notices.height() < 160
    window.notices.clear()
    qtbot.waitUntil(lambda: window.timelines.height() == before, timeout=LONG)
