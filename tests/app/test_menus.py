"""Menus show the names of files as they are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtWidgets import QMenu
from pytestqt.qtbot import QtBot

from app.explorer import Explorer
from engine.session import edits
from engine.session.session import Session
from views.menu_text import as_shown, verbatim
from views.palette import CommandPalette


def test_a_recent_file_is_shown_by_its_name(qtbot: QtBot, explorer: Explorer) -> None:
    explorer.settings.remember("/data/ring&chain.hlo")
    menus = explorer.window.menus.findChildren(QMenu)
    recent = next(menu for menu in menus if menu.title() == "Open recent")
    recent.aboutToShow.emit()
    (entry,) = recent.actions()
    assert entry.iconText() == "ring&chain.hlo  —  data"
    assert entry.toolTip() == "/data/ring&chain.hlo"
    for job in ("morning", "evening"):
        explorer.settings.remember(f"/jobs/{job}/capture/partitioned.hlo")
    recent.aboutToShow.emit()
    assert [entry.iconText() for entry in recent.actions()[:2]] == [
        "partitioned.hlo  —  evening/capture",
        "partitioned.hlo  —  morning/capture",
    ]


def test_undo_says_what_it_takes_back_as_it_is_called(qtbot: QtBot, explorer: Explorer) -> None:
    name = "ring & chain… R&D"
    explorer.store.become(f"Remove {name}", edits.marked(explorer.store.state, 5))
    undo = explorer.actions["undo"]
    assert undo.text() == "Undo Remove ring && chain… R&&D"
    assert as_shown(undo.text()) == f"Undo Remove {name}"
    palette = CommandPalette([undo], explorer.window)
    qtbot.addWidget(palette)
    palette.line.setText("chain… r&d")
    assert [palette.list.item(n).text() for n in range(palette.list.count())] == [f"Undo Remove {name}"]


@given(st.text())
def test_what_is_written_verbatim_is_seen_as_it_is(name: str) -> None:
    assert as_shown(verbatim(name)) == name


@pytest.mark.parametrize(
    ("text", "seen"), [("&Open", "Open"), ("Save &as", "Save as"), ("a && b", "a & b"), ("x&", "x")]
)
def test_a_mark_is_not_seen(text: str, seen: str) -> None:
    assert as_shown(text) == seen


def test_the_title_shows_brackets_of_a_file_as_they_are(explorer: Explorer) -> None:
    explorer.store.reset(edits.begun("/data/run[*].hlo"))
    assert explorer.window.windowTitle() == "run[*][*].hlo[*] — Lapstrake"
    explorer.store.reset(Session())


def test_a_right_click_in_the_timelines_offers_what_the_table_has(explorer: Explorer) -> None:
    lanes = explorer.window.timelines.view.lanes
    assert [action.text() for action in lanes.of_slice][:2] == ["Copy names", "Measure the selection"]
    assert "Remove the variant" in [action.text() for action in lanes.of_header]
    assert all(explorer.actions[action.objectName()] is action for action in (*lanes.of_slice, *lanes.of_header))
