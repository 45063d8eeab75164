"""The sheet tells keys apart, says each once, and keeps columns of like height."""

from __future__ import annotations

from PySide6.QtGui import QGuiApplication
from pytestqt.qtbot import QtBot

from app.actions.sheet import key_groups
from app.actions.table import ACTIONS
from views.key_sheet import GESTURES, KeySheet, columns_of
from views.theme import DARK, LIGHT


def test_alternatives_have_a_word_between_them(qtbot: QtBot) -> None:
    sheet = KeySheet({"In the timelines": [("Zoom in", ("W", "+", "=")), ("Previous", (",",))]}, LIGHT)
    qtbot.addWidget(sheet)
    text = sheet.text.toPlainText().replace("\xa0", " ")
    assert "W  or  +  or  =" in text
    assert " , " in text


def test_every_action_with_keys_is_on_it_once(qtbot: QtBot) -> None:
    groups = key_groups(ACTIONS)
    titles = [title for rows in groups.values() for title, _ in rows]
    assert sorted(titles) == sorted(a.title for a in ACTIONS if a.keys and a.menu)
    sheet = KeySheet(groups, DARK)
    qtbot.addWidget(sheet)
    text = sheet.text.toPlainText()
    assert all(title in text for title in titles)


def test_columns_keep_the_order_and_are_about_equally_long() -> None:
    groups = {**key_groups(ACTIONS), "Mouse": GESTURES}
    columns = columns_of(groups, 3)
    assert [heading for column in columns for heading in column] == list(groups)
    lengths = [sum(len(rows) + 2 for rows in column.values()) for column in columns]
    assert max(lengths) <= 1.35 * sum(lengths) / 3, lengths


def test_it_fits_a_small_screen(qtbot: QtBot) -> None:
    sheet = KeySheet(key_groups(ACTIONS), LIGHT)
    qtbot.addWidget(sheet)
    assert QGuiApplication.primaryScreen() is not None
    assert sheet.width() <= 1280
    assert sheet.height() <= 760
    assert sheet.text.document().idealWidth() <= sheet.width()
