"""Text that has no room is cut with dots and told by a tooltip."""

from __future__ import annotations

from pytestqt.qtbot import QtBot

from views.elided import ElidedLabel


def test_only_what_is_cut_has_a_tooltip(qtbot: QtBot) -> None:
    label = ElidedLabel("57 nodes for 865 instructions")
    qtbot.addWidget(label)
    label.show()
    label.resize(400, 20)
    assert label.shown_text() == label.text()
    assert label.toolTip() == ""
    label.resize(60, 20)
    assert label.shown_text().endswith("…")
    assert label.toolTip() == label.text()
    label.setText("57")
    assert label.toolTip() == ""
