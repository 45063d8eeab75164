"""Menus show the names of files as they are."""

from __future__ import annotations

from PySide6.QtWidgets import QMenu
from pytestqt.qtbot import QtBot

from app.explorer import Explorer


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
