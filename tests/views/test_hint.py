"""Every pane says what it would show and how to get there, while there is nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from PySide6.QtWidgets import QLabel, QWidget
from pytestqt.qtbot import QtBot

from tests.views.fake_host import FakeHost
from views.budget.budget import BudgetPane
from views.compare.compare import ComparePane
from views.compare.differences import DifferencePane
from views.fusion.pane import FusionPane
from views.graph.pane import GraphPane
from views.hint import Hint, open_first
from views.hlo_text.pane import HloPane
from views.inspector.inspector import Inspector
from views.timeline.table import TablePane

PANES = (BudgetPane, ComparePane, DifferencePane, FusionPane, GraphPane, HloPane, TablePane)


@pytest.mark.parametrize("pane", PANES)
def test_an_empty_pane_leads_to_a_module(qtbot: QtBot, pane: Callable[[FakeHost], QWidget]) -> None:
    host = FakeHost()
    widget = pane(host)
    qtbot.addWidget(widget)
    widget.resize(742, 180)
    widget.show()
    came = getattr(widget, "came_into_view", None)
    if came is not None:
        came()
    said = [label for label in widget.findChildren(QLabel) if "Open a module" in label.text() and label.isVisible()]
    assert len(said) == 1
    assert 'href="open"' in said[0].text()
    assert said[0].mapTo(widget, said[0].rect().topLeft()).y() < 60  # at the top, as in every pane
    widget.close()


def test_a_link_does_what_it_names(qtbot: QtBot) -> None:
    host = FakeHost()
    hint = Hint(host, open_first("to see"))
    qtbot.addWidget(hint)
    hint.linkActivated.emit("open-sample")
    assert host.performed == ["open-sample"]


def test_the_inspector_says_what_it_is_for(qtbot: QtBot) -> None:
    inspector = Inspector(FakeHost())
    qtbot.addWidget(inspector)
    assert "Open a module" in inspector.above.text()
