from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from engine.errors import UsageError
from tests.patience import LONG
from tests.views.fake_host import host_of
from tests.views.synthetic import variant
from views.timeline.axis import TimeRange
from views.timeline.search import search
from views.timeline.search_bar import SearchBar
from views.timeline.view import TimelineView


@pytest.mark.parametrize(
    ("text", "instructions"),
    [
        ("dot.1.0", 1),
        ("DOT", 13),
        ("all-gather-start", 12),
        ("layer_2/", 6),
        (r"/^dot\.\d\.1$/", 6),
        ("nothing of the kind", 0),
        ("   ", 0),
    ],
)
def test_names_opcodes_and_op_names_are_searched(text: str, instructions: int) -> None:
    made = variant(1)
    found = search(made, text)
    assert found.instructions == instructions
    assert np.all(np.diff(found.times) >= 0)
    assert len(found.rows) >= instructions


def test_a_broken_expression_is_refused() -> None:
    with pytest.raises(UsageError, match="regular expression"):
        search(variant(1), "/(/")


def test_enter_walks_through_the_hits_and_escape_ends(qtbot: QtBot) -> None:
    host = host_of(variant(1))
    view = TimelineView(host, TimeRange())
    bar = SearchBar(host, view)
    qtbot.addWidget(view)
    qtbot.addWidget(bar)
    view.show()
    sought: list[str] = []
    bar.sought.connect(sought.append)
    bar.open_bar()
    bar.line.setText("dot.")
    assert sought == ["", "dot."]
    QTest.keyClick(bar.line, Qt.Key.Key_Return)
    assert bar.count.text().startswith("1 of ")
    first = host.store.state.selection
    QTest.keyClick(bar.line, Qt.Key.Key_Return)
    assert host.store.state.selection != first
    QTest.keyClick(bar.line, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    assert host.store.state.selection == first
    assert view.overlay.found is not None
    bar.line.setText("/(/")
    qtbot.waitUntil(lambda: "regular expression" in bar.count.text(), timeout=LONG)
    QTest.keyClick(bar.line, Qt.Key.Key_Escape)
    assert bar.isHidden()
    assert view.overlay.found is None
    assert sought[-1] == "", "what else shows the hits ends too"
    bar.open_bar()
    assert sought[-1] == "/(/"
    view.close()
