"""The wheel over a control that nobody chose goes on to what the control lies in."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QApplication, QComboBox, QSlider, QSpinBox, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from tests.views.fake_host import FakeHost, active_plan
from views.plan.plan_line import PlanLine
from views.wheel import pass_wheel_on


def wheel(over: QWidget, notches: int = -1) -> bool:
    """Turn the wheel. Returns whether the widget took it; else it goes on to the parent."""
    middle = QPointF(over.rect().center())
    event = QWheelEvent(
        middle,
        over.mapToGlobal(middle),
        QPoint(),
        QPoint(0, 120 * notches),
        Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier,
        Qt.ScrollPhase.NoScrollPhase,
        False,  # Qt's signature
    )
    QApplication.sendEvent(over, event)
    return event.isAccepted()


@pytest.mark.parametrize("kind", [QComboBox, QSlider, QSpinBox])
def test_only_a_focused_control_takes_the_wheel(
    qtbot: QtBot, kind: type[QComboBox] | type[QSlider] | type[QSpinBox]
) -> None:
    around, control, other = QWidget(), kind(), QComboBox()
    pass_wheel_on(control)
    layout = QVBoxLayout(around)
    layout.addWidget(other)
    layout.addWidget(control)
    qtbot.addWidget(around)
    if isinstance(control, QComboBox):
        control.addItems(["a", "b", "c"])
    with qtbot.waitActive(around):
        around.show()
        around.activateWindow()
    other.setFocus()

    def value() -> int:
        return control.currentIndex() if isinstance(control, QComboBox) else control.value()

    if not isinstance(control, QComboBox):
        control.setValue(5)
    before = value()
    assert not wheel(control)
    assert value() == before
    assert not control.hasFocus()
    control.setFocus()
    assert control.hasFocus()
    assert wheel(control)
    assert value() != before


def test_scrolling_over_the_plan_line_leaves_the_plan(qtbot: QtBot, host: FakeHost) -> None:
    line = PlanLine(host)
    qtbot.addWidget(line)
    with qtbot.waitActive(line):
        line.show()
        line.activateWindow()
    line.mesh.setFocus()
    before, machine = active_plan(host), [entry.machine for entry in host.store.state.entries]
    for control in (line.chip, line.scheduler, line.budget, *line.choices.values()):
        for notches in (-1, 1, 1):
            wheel(control, notches)
    assert active_plan(host) == before
    assert [entry.machine for entry in host.store.state.entries] == machine
