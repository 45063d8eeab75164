"""Controls that the mouse wheel changes only once they were clicked or tabbed to: who scrolls past one sets nothing."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtWidgets import QComboBox, QSlider, QSpinBox


class _Passing(QObject):
    """Lets a wheel over its parent go on to what holds it, unless the parent has the focus."""

    def __init__(self, control: QComboBox | QSlider | QSpinBox) -> None:
        super().__init__(control)
        self._control = control

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Wheel and not self._control.hasFocus():
            event.ignore()
            return True
        return super().eventFilter(watched, event)


def pass_wheel_on(*controls: QComboBox | QSlider | QSpinBox) -> None:
    """Leave the wheel to what `controls` lie in while they do not have the focus; the wheel does not give it."""
    for control in controls:
        control.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        control.installEventFilter(_Passing(control))
