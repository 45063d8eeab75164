"""What a pane draws, for the platform's accessibility interface: every drawn thing is a child of the pane's widget.

The children number what is visible: child k is the k-th thing of the present frame, whichever that is. So there are
never more than a frame holds, and nothing has to be told of each slice that a zoom brings or takes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from PySide6.QtCore import QObject, QPoint, QRect
from PySide6.QtGui import QAccessible, QAccessibleActionInterface, QAccessibleEvent, QAccessibleInterface
from PySide6.QtWidgets import QAccessibleWidget, QWidget
from shiboken6 import VoidPtr

MOST = 400
"""Things of one frame that are told; beyond, nobody could listen to the end, and the table lists all."""

PRESS = QAccessibleActionInterface.pressAction()
"""Name of the action that selects."""


@dataclass(frozen=True)
class Thing:
    """One thing of a frame."""

    name: str
    place: QRect
    """In the coordinates of the widget that `Drawing.surface` gives."""
    description: str = ""
    role: QAccessible.Role = QAccessible.Role.ListItem
    selected: bool = False
    actions: Mapping[str, Callable[[], object]] = field(default_factory=dict)
    """What can be done with it, by Qt's name of the action or one of ours."""


@runtime_checkable
class Drawing(Protocol):
    """A widget that draws things."""

    def things(self) -> Sequence[Thing]:
        """What is visible, in reading order; the same object until something changes."""
        ...

    def surface(self) -> QWidget:
        """The widget that they are drawn on."""
        ...


def install() -> None:
    """Answer for every widget that is a `Drawing`. Once for a program."""
    if not _installed:
        _installed.append(_interface_of)
        QAccessible.installFactory(_interface_of)


def tell_changed(widget: QWidget) -> None:
    """Other things are visible now."""
    if QAccessible.isActive():
        QAccessible.updateAccessibility(QAccessibleEvent(widget, QAccessible.Event.ObjectReorder))


def tell_focus(widget: QWidget) -> None:
    """The selection, which keys move, is somewhere else."""
    if not QAccessible.isActive() or not isinstance(widget, Drawing):
        return
    at = _selected(widget.things())
    if at >= 0:
        for kind in (QAccessible.Event.Selection, QAccessible.Event.Focus):
            event = QAccessibleEvent(widget, kind)
            event.setChild(at)
            QAccessible.updateAccessibility(event)


_installed: list[Callable[[str, QObject], QAccessibleInterface | None]] = []


def _interface_of(key: str, target: QObject) -> QAccessibleInterface | None:
    if not isinstance(target, QWidget) or not isinstance(target, Drawing):
        return None
    made = _Pane(target)
    # Qt holds only the C++ half; Python's has to live as long as the widget does.
    target.__dict__["accessible_interface"] = made
    return made


def _selected(things: Sequence[Thing]) -> int:
    return next((number for number, thing in enumerate(things) if thing.selected), -1)


class _Pane(QAccessibleWidget):
    """The widget itself: a list of what it draws. (Qt takes None for no child; its Python stubs do not say so.)"""

    def __init__(self, widget: QWidget) -> None:
        super().__init__(widget, QAccessible.Role.List)
        self._children: list[_Child] = []

    def drawing(self) -> Drawing:
        widget = self.widget()
        assert isinstance(widget, Drawing)
        return widget

    def childCount(self) -> int:
        return len(self.drawing().things())

    def child(self, index: int) -> Any:
        if not 0 <= index < self.childCount():
            return None
        while len(self._children) <= index:
            self._children.append(_Child(self, len(self._children)))
        return self._children[index]

    def indexOfChild(self, child: QAccessibleInterface) -> int:
        return child.number if isinstance(child, _Child) else -1

    def childAt(self, x: int, y: int) -> Any:
        surface = self.drawing().surface()
        at = surface.mapFromGlobal(QPoint(x, y))
        things = self.drawing().things()
        found = next((n for n in reversed(range(len(things))) if things[n].place.contains(at)), -1)
        return self.child(found)

    def focusChild(self) -> Any:
        return self.child(_selected(self.drawing().things()))


class _Child(QAccessibleInterface):
    """One thing that is drawn."""

    def __init__(self, pane: _Pane, number: int) -> None:
        super().__init__()
        self._pane = pane
        self.number = number
        self._actions = _Actions(self)

    def thing(self) -> Thing | None:
        things = self._pane.drawing().things()
        return things[self.number] if self.number < len(things) else None

    def isValid(self) -> bool:
        return self._pane.isValid() and self.thing() is not None

    def object(self) -> Any:
        return None

    def window(self) -> Any:
        return self._pane.window()

    def relations(self, match: QAccessible.RelationFlag = QAccessible.RelationFlag.AllRelations) -> list[Any]:
        return []

    def parent(self) -> QAccessibleInterface:
        return self._pane

    def child(self, index: int) -> Any:
        return None

    def childAt(self, x: int, y: int) -> Any:
        return None

    def childCount(self) -> int:
        return 0

    def indexOfChild(self, child: QAccessibleInterface) -> int:
        return -1

    def text(self, kind: QAccessible.Text) -> str:
        thing = self.thing()
        if thing is None:
            return ""
        return {QAccessible.Text.Name: thing.name, QAccessible.Text.Description: thing.description}.get(kind, "")

    def setText(self, kind: QAccessible.Text, text: str) -> None:
        """Nothing here can be written to."""

    def rect(self) -> QRect:
        thing = self.thing()
        if thing is None:
            return QRect()
        return QRect(self._pane.drawing().surface().mapToGlobal(thing.place.topLeft()), thing.place.size())

    def role(self) -> QAccessible.Role:
        thing = self.thing()
        return thing.role if thing is not None else QAccessible.Role.ListItem

    def state(self) -> QAccessible.State:
        state = QAccessible.State()
        thing = self.thing()
        if thing is None:
            state.invalid = True
            return state
        state.focusable = state.selectable = bool(thing.actions)
        state.selected = thing.selected
        state.focused = thing.selected and self._pane.widget().hasFocus()
        return state

    def interface_cast(self, kind: QAccessible.InterfaceType) -> Any:
        return self._actions if kind == QAccessible.InterfaceType.ActionInterface else VoidPtr(0)


class _Actions(QAccessibleActionInterface):
    """What can be done with a child."""

    def __init__(self, child: _Child) -> None:
        super().__init__()
        self._child = child

    def actionNames(self) -> list[str]:
        thing = self._child.thing()
        return list(thing.actions) if thing is not None else []

    def doAction(self, name: str) -> None:
        thing = self._child.thing()
        if thing is not None and name in thing.actions:
            thing.actions[name]()

    def keyBindingsForAction(self, name: str) -> list[str]:
        return []
