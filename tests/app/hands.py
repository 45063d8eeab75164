"""Mouse and keyboard for tests of the whole window: an X server's own, or where there is none, Qt's events."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Protocol

from PySide6.QtCore import QPoint, QPointF, Qt, QTimer
from PySide6.QtGui import QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget

from tests.app.x_input import LEFT, WHEEL_DOWN, WHEEL_UP, XInput

_QT_KEYS = {
    "Backspace": Qt.Key.Key_Backspace,
    "Return": Qt.Key.Key_Return,
    "Escape": Qt.Key.Key_Escape,
    "Left": Qt.Key.Key_Left,
    "Up": Qt.Key.Key_Up,
    "Down": Qt.Key.Key_Down,
}
_NOTCH = 120
"""What a notch of the wheel counts in Qt: eighths of a degree."""


class Hands(Protocol):
    """What a person does. Nothing waits: the events come when the event loop runs."""

    def key(self, keys: str) -> None:
        """Press ``Ctrl+o``, ``Return``, ``m``: where the focus is."""

    def write(self, text: str) -> None: ...

    def click(self, widget: QWidget, at: QPoint) -> None: ...

    def drag(self, widget: QWidget, start: QPoint, end: QPoint) -> None: ...

    def wheel(self, widget: QWidget, at: QPoint, notches: int) -> None:
        """Turn the wheel with Ctrl held down."""


class XHands:
    """The mouse and the keyboard of an X server."""

    def __init__(self) -> None:
        self._input = XInput(os.environ["DISPLAY"])

    def key(self, keys: str) -> None:
        self._input.key(keys)

    def write(self, text: str) -> None:
        for letter in text:
            self._input.key(letter)

    def click(self, widget: QWidget, at: QPoint) -> None:
        self._move(widget, at)
        self._input.click()

    def drag(self, widget: QWidget, start: QPoint, end: QPoint) -> None:
        self._move(widget, start)
        self._input.button(LEFT, down=True)
        for part in range(1, 9):
            self._move(widget, start + (end - start) * part / 8)
        self._input.button(LEFT, down=False)

    def wheel(self, widget: QWidget, at: QPoint, notches: int) -> None:
        self._move(widget, at)
        for _ in range(abs(notches)):
            self._input.click(WHEEL_UP if notches > 0 else WHEEL_DOWN, "Ctrl")

    def _move(self, widget: QWidget, at: QPoint) -> None:
        place, ratio = widget.mapToGlobal(at), widget.devicePixelRatioF()
        self._input.move(round(place.x() * ratio), round(place.y() * ratio))


class QtHands:
    """Events that Qt makes up. Each comes from the event loop, as real ones do: a dialog's own loop holds nobody up."""

    def key(self, keys: str) -> None:
        *held, last = keys.split("+")
        modifier = Qt.KeyboardModifier.ControlModifier if held else Qt.KeyboardModifier.NoModifier
        key = _QT_KEYS[last] if last in _QT_KEYS else Qt.Key(ord(last.upper()))
        _soon(lambda: QTest.keyClick(_focused(), key, modifier))

    def write(self, text: str) -> None:
        _soon(lambda: QTest.keyClicks(_focused(), text))

    def click(self, widget: QWidget, at: QPoint) -> None:
        def clicked() -> None:
            QTest.mouseMove(widget, at)
            QTest.mouseClick(widget, Qt.MouseButton.LeftButton, pos=at)

        _soon(clicked)

    def drag(self, widget: QWidget, start: QPoint, end: QPoint) -> None:
        def dragged() -> None:
            QTest.mousePress(widget, Qt.MouseButton.LeftButton, pos=start)
            for part in range(1, 9):
                QTest.mouseMove(widget, start + (end - start) * part / 8)
            QTest.mouseRelease(widget, Qt.MouseButton.LeftButton, pos=end)

        _soon(dragged)

    def wheel(self, widget: QWidget, at: QPoint, notches: int) -> None:
        event = QWheelEvent(
            QPointF(at),
            QPointF(widget.mapToGlobal(at)),
            QPoint(),
            QPoint(0, _NOTCH * notches),
            Qt.MouseButton.NoButton,
            Qt.KeyboardModifier.ControlModifier,
            Qt.ScrollPhase.NoScrollPhase,
            False,
        )
        _soon(lambda: QApplication.sendEvent(widget, event))


def _soon(act: Callable[[], object]) -> None:
    QTimer.singleShot(0, act)


def _focused() -> QWidget:
    found = QApplication.activePopupWidget() or QApplication.focusWidget() or QApplication.activeWindow()
    assert found is not None, "no widget has the keyboard"
    return found
