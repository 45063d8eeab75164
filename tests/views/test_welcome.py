from __future__ import annotations

from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from engine.session import edits
from tests.views.fake_host import FakeHost
from views.guide import Guide
from views.welcome import Problem, Welcome


def test_the_welcome_lists_recent_files(qtbot: QtBot) -> None:
    host = FakeHost()
    host.paths = ("/models/step.hlo",)
    pane = Welcome(host)
    qtbot.addWidget(pane)
    buttons = {b.text(): b for b in pane.findChildren(type(pane._recover))}
    buttons["step.hlo  —  models"].click()
    buttons["Open a sample"].click()
    assert host.opened == ["/models/step.hlo"]
    assert host.performed == ["open-sample"]


def test_a_problem_is_told_in_full(qtbot: QtBot) -> None:
    host = FakeHost()
    pane = Problem(host)
    qtbot.addWidget(pane)
    host.store.reset(edits.begun("/models/step.hlo"))
    host.store.settle(problem="step.hlo:3:7: expected ')'")
    assert pane.title.text() == "step.hlo could not be opened"
    assert pane.text.text() == "step.hlo:3:7: expected ')'"


def test_the_guide_ticks_off_what_was_done(qtbot: QtBot, host: FakeHost) -> None:
    guide = Guide(host)
    guide.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose, on=False)
    qtbot.addWidget(guide)
    assert [mark.text() for mark in guide._marks][1] == "☐"
    host.store.become("Select", edits.selected(host.store.state, "A", (2001,)))
    assert [mark.text() for mark in guide._marks][1] == "☑"
