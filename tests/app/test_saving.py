"""Work that is in no file: the title says so, closing asks, saving and undoing settle it."""

from __future__ import annotations

import os
import shutil
import sys
import time
from functools import partial
from pathlib import Path

import pytest
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFileDialog, QMessageBox
from pytestqt.qtbot import QtBot

from app.endings import ended
from app.explorer import Explorer
from engine.session import edits, files
from tests.app.test_replacing import FORWARD
from tests.app.waiting import LONG, drawn, opened, settled

_Button = QMessageBox.StandardButton


def test_the_title_says_whether_there_is_unsaved_work(qtbot: QtBot, explorer: Explorer, tmp_path: Path) -> None:
    window = explorer.window
    assert not window.isWindowModified()
    opened(qtbot, explorer, FORWARD)
    assert not window.isWindowModified()
    assert window.windowTitle().startswith(f"{FORWARD.name}[*]")
    explorer.perform("next-variant")
    assert not window.isWindowModified(), "looking at another variant is no edit"
    explorer.window.plan_line.budget.setValue(1)
    assert window.isWindowModified()
    explorer.perform("undo")
    assert not window.isWindowModified()
    explorer.perform("redo")
    place = tmp_path / "a.lapstrake"
    explorer.saving.save_to(str(place))
    assert not window.isWindowModified()
    assert window.windowTitle() == f"{FORWARD.name}[*] — a.lapstrake — Lapstrake"
    explorer.perform("undo")
    assert window.isWindowModified()
    explorer.perform("redo")
    qtbot.waitUntil(lambda: settled(explorer), timeout=LONG)
    assert not window.isWindowModified()
    session = explorer.store.state
    explorer.store.become("Fold", edits.folded(session, session.active))
    assert window.isWindowModified(), "a session in a file keeps how it is arranged"


def test_closing_asks_about_unsaved_work(
    qtbot: QtBot, explorer: Explorer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened(qtbot, explorer, FORWARD)
    explorer.perform("duplicate")
    answers = [_Button.Cancel, _Button.Save, _Button.Save]
    monkeypatch.setattr(QMessageBox, "question", lambda *_: answers.pop(0))
    explorer.perform("quit")
    assert explorer.window.isVisible()
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: ("", ""))
    explorer.perform("quit")
    assert explorer.window.isVisible(), "no name was given: nothing is saved, and nothing goes"
    place = tmp_path / "a.lapstrake"
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(place), ""))
    explorer.perform("quit")
    assert not explorer.window.isVisible()
    assert not answers
    assert len(files.load(place).session.entries) == 4


def test_a_session_that_cannot_be_saved_says_so_until_it_is(
    qtbot: QtBot, explorer: Explorer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened(qtbot, explorer, FORWARD)
    explorer.perform("duplicate")
    names = [str(tmp_path / "nowhere" / "a.lapstrake"), str(tmp_path / "a.lapstrake")]
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (names.pop(0), ""))
    explorer.perform("save")
    assert explorer.documents.unsaved
    (said,) = explorer.window.notices.texts()
    assert said.startswith("The session was not saved.")
    assert "nowhere" in said
    explorer.window.notices.take("Save elsewhere …")
    assert not explorer.documents.unsaved
    assert explorer.window.notices.texts() == ()


def test_activating_is_no_step(qtbot: QtBot, explorer: Explorer) -> None:
    session = opened(qtbot, explorer, FORWARD)
    explorer.perform("duplicate")
    made = explorer.store.state.active
    for _ in range(2):
        explorer.perform("next-variant")
    assert explorer.store.undo_label == f"Add a variant like {session.active}"
    explorer.perform("undo")
    assert explorer.store.state.entry(made) is None
    assert explorer.store.state.active_entry is not None


def test_what_another_window_saved_is_not_overwritten_unasked(
    qtbot: QtBot, explorer: Explorer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened(qtbot, explorer, FORWARD)
    place = tmp_path / "a.lapstrake"
    explorer.saving.save_to(str(place))
    other = explorer.store.state
    explorer.perform("duplicate")
    explorer.perform("save")
    assert not explorer.documents.unsaved
    files.save(other, place)
    explorer.perform("duplicate")
    answers = [_Button.Cancel, _Button.Save]
    monkeypatch.setattr(QMessageBox, "question", lambda *_: answers.pop(0))
    explorer.perform("save")
    assert explorer.documents.unsaved
    assert len(files.load(place).session.entries) == len(other.entries)
    explorer.perform("save")
    assert not explorer.documents.unsaved
    assert len(files.load(place).session.entries) == len(other.entries) + 2


def test_the_window_closes_in_the_middle_of_work(qtbot: QtBot, explorer: Explorer) -> None:
    explorer.open(str(FORWARD))
    explorer.job_list.start("long", "tests.app.slow:sleep", 60.0, done=lambda _: None)
    begun = time.monotonic()
    explorer.window.close()
    assert time.monotonic() - begun < 5
    assert not explorer.window.isVisible()
    assert not any(job.state == "running" for job in explorer.jobs())


@pytest.mark.parametrize(
    ("action", "typed", "name"),
    [
        ("export-picture", "a.png", "a.png"),
        ("export-picture", "a.svg", "a.svg"),
        ("export-picture", "a", "a.png"),
        ("export-graph", "g.dot", "g.dot"),
        ("export-graph", "g", "g.png"),
    ],
)
def test_pictures_are_written_beside_the_window(
    qtbot: QtBot,
    explorer: Explorer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    action: str,
    typed: str,
    name: str,
) -> None:
    opened(qtbot, explorer, FORWARD)
    explorer.show_graph()
    qtbot.waitUntil(lambda: explorer.graph.view.shown is not None, timeout=LONG)
    place = tmp_path / name
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(tmp_path / typed), ""))
    explorer.perform(action)
    said = explorer.window.statusBar()
    qtbot.waitUntil(lambda: said.currentMessage() == f"saved {name}", timeout=LONG)
    assert place.stat().st_size > 500


def is_told(explorer: Explorer, words: str) -> bool:
    return words in " ".join(explorer.window.notices.texts())


def test_a_picture_that_is_not_saved_says_why(
    qtbot: QtBot, explorer: Explorer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened(qtbot, explorer, FORWARD)
    places = [tmp_path / "none" / "a.png", tmp_path / "a.nothing"]
    for place in places:
        monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_, place=place: (str(place), ""))
        explorer.perform("export-picture")
        explorer.picturing.close()
        qtbot.waitUntil(partial(is_told, explorer, str(place)), timeout=LONG)
        explorer.window.notices.clear()
    assert not any(place.exists() for place in places)


def test_an_ending_that_is_added_overwrites_nothing_unasked(
    explorer: Explorer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.png").write_bytes(b"theirs")
    asked: list[str] = []

    def answer(*given: object) -> QMessageBox.StandardButton:
        asked.append(str(given[2]))
        return answers.pop()

    answers = [_Button.Save, _Button.Cancel]
    monkeypatch.setattr(QMessageBox, "question", answer)
    assert ended(explorer.window, str(tmp_path / "a"), ".png") == ""
    assert ended(explorer.window, str(tmp_path / "a"), ".png") == str(tmp_path / "a.png")
    assert asked == ["a.png exists already. Overwrite it?"] * 2
    assert ended(explorer.window, str(tmp_path / "a.svg"), ".png") == str(tmp_path / "a.svg")
    assert len(asked) == 2


@pytest.mark.skipif(sys.platform != "linux", reason="file names that are no text")
def test_a_module_whose_name_is_no_text_is_kept_like_others(qtbot: QtBot, explorer: Explorer, tmp_path: Path) -> None:
    module = os.fsdecode(os.path.join(os.fsencode(tmp_path), b"bad\xff.hlo"))
    shutil.copyfile(FORWARD, module)
    explorer.open(module)
    qtbot.waitUntil(lambda: drawn(explorer), timeout=LONG)
    explorer.recovery.write()
    autosaved = next(iter(tmp_path.glob("autosave-*")))
    assert files.load(autosaved).session.path == module
    assert explorer.recent() == (module,)
    explorer.perform("copy-command")
    assert rf"{tmp_path}/bad\377.hlo" in QGuiApplication.clipboard().text()
    explorer.saving.save_to(str(tmp_path / "s.lapstrake"))
    assert not explorer.documents.unsaved
    assert files.load(tmp_path / "s.lapstrake").session.path == module
