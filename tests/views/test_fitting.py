"""Columns give way in order: empty ones, those that may go, then width, then those that go late."""

from __future__ import annotations

from PySide6.QtWidgets import QTableWidget, QTableWidgetItem
from pytestqt.qtbot import QtBot

from views.fitting import Fitting

_TITLES = ("name", "kept", "late", "first", "empty")


def test_columns_give_way_in_order_and_come_back(qtbot: QtBot) -> None:
    table = QTableWidget(1, len(_TITLES))
    qtbot.addWidget(table)
    table.setHorizontalHeaderLabels(_TITLES)
    for column, text in enumerate(("n" * 80, "kept", "late", "first", "–")):
        table.setItem(0, column, QTableWidgetItem(text))
    header = table.horizontalHeader()
    header.setSectionResizeMode(header.ResizeMode.ResizeToContents)
    fitting = Fitting(table, 0, lambda: (3, 4), late=(2,))
    table.show()
    qtbot.waitExposed(table)
    seen: list[list[str]] = []
    for width in (900, *range(600, 100, -10), 900):
        table.resize(width, 100)
        fitting.fit()
        shown = [title for n, title in enumerate(_TITLES) if not table.isColumnHidden(n)]
        if not seen or seen[-1] != shown:
            seen.append(shown)
        if width > 240:
            assert table.horizontalScrollBar().maximum() == 0
    assert seen == [list(_TITLES), list(_TITLES[:4]), list(_TITLES[:3]), list(_TITLES[:2]), list(_TITLES)]
    table.resize(200, 100)
    fitting.fit()
    named = table.item(0, 0)
    assert named is not None
    assert named.toolTip().splitlines()[1:] == ["first: first", "late: late"]
    table.close()
