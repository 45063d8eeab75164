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
    assert recent.actions()[0].iconText() == "/data/ring&chain.hlo"
