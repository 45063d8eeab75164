"""The panes around the timelines: where each is, and how much room it has.

Those at the bottom are tabs of one area. Some need more height to be read than the others: they have it while they are
in front, or what the user gave them then.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Protocol, runtime_checkable

from PySide6.QtCore import QEvent, QMargins, QObject, QSize, Qt, QTimer
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QDockWidget, QMainWindow, QTabBar, QWidget

from views.focus import is_behind
from views.ports import Lazy
from views.theme import GRID
from views.within import Within

_NARROWEST = 48 * GRID
"""Panes at the sides do not become narrower than this: their text would fall apart."""

_LOWEST = 52 * GRID
"""Height of the panes at the bottom in a window of `_SMALL`; of every further pixel they get half."""

_SMALL = 200 * GRID

_AREAS = {
    "Collectives": Qt.DockWidgetArea.LeftDockWidgetArea,
    "Inspector": Qt.DockWidgetArea.RightDockWidgetArea,
}


@runtime_checkable
class Roomy(Protocol):
    """A pane that is hard to read in few lines."""

    comfortable: int
    """Pixels of height in which what matters in it is seen at once."""


class Panes(QObject):
    """The dock widgets of a window around its timelines."""

    def __init__(self, window: QMainWindow, timelines: QWidget, fallback: QWidget) -> None:
        """`fallback` gets the keys where no pane at the bottom can have them."""
        super().__init__(window)
        self._window = window
        self._timelines = timelines
        self._fallback = fallback
        self.docks: dict[str, QDockWidget] = {}
        self._ours: QMargins | None = None
        """Around the timelines when panes were last given their sizes here; None while the user's are kept."""
        self._around = QMargins()
        """Around the timelines when the window had the size that it has, or before it got that."""
        self._laid_out: QSize | None = None
        """The window's size for which `_around` holds."""
        self._usual = _LOWEST
        """Height of the area at the bottom for panes that need no more."""
        self._needs: dict[str, int] = {}
        """Height that panes ask for; 0 where any will do."""
        self._given: dict[str, int] = {}
        """What the user gave those that do."""
        self._fitting = False
        self._restored = False
        """Whether the pane in front, once it is seen, has the height that the user gave it."""
        timelines.installEventFilter(self)

    # What there is

    def add(self, title: str, pane: QWidget) -> None:
        """One more pane: at its side of the window, or at the bottom."""
        dock = QDockWidget(title, self._window)
        dock.setObjectName(title)
        if title in _AREAS:
            pane.setMinimumWidth(_NARROWEST)
        dock.setWidget(pane if title in _AREAS else Within(pane))
        self._window.addDockWidget(_area(title), dock)
        self.docks[title] = dock
        self._needs[title] = pane.comfortable if isinstance(pane, Roomy) else 0
        dock.visibilityChanged.connect(self._came_or_went)
        if isinstance(pane, Lazy):
            dock.visibilityChanged.connect(lambda visible: pane.came_into_view() if visible else None)

    def add_bottom(self, panes: Sequence[tuple[str, QWidget]]) -> None:
        """More panes as tabs of the bottom area, before the last one."""
        last, dock = self.docks.popitem()
        for title, pane in panes:
            self.add(title, pane)
        self.docks[last] = dock
        self.reset()

    def show(self, title: str) -> None:
        """Bring a pane to the front, with the keys."""
        dock = self.docks[title]
        dock.show()
        dock.raise_()
        if title not in _AREAS and not dock.isFloating():
            self._fit(title)
        widget = dock.widget()
        if widget is not None:
            widget.setFocus()

    # Room

    def reset(self) -> None:
        """Every pane back to its first place, shown; the window keeps its size."""
        size = self._window.size()
        for title, dock in self.docks.items():
            self._window.removeDockWidget(dock)
            dock.setFloating(False)  # Qt's signature
            self._window.addDockWidget(_area(title), dock)
        bottom = [dock for title, dock in self.docks.items() if title not in _AREAS]
        for left, right in pairwise(bottom):
            self._window.tabifyDockWidget(left, right)
        # Shown before they are tabs, they would need room side by side, and the window would grow.
        for dock in self.docks.values():
            dock.show()
        self._window.resize(size)
        self._given.clear()
        self.begin()

    def begin(self) -> None:
        """Room for all by the size of the window, and the first pane in front that needs no more than it gets."""
        self._usual = self._share()
        bottom = [title for title in self.docks if title not in _AREAS]
        first = next((title for title in bottom if self._needs[title] <= self._usual), bottom[0])
        self.docks[first].raise_()
        self._lay_out(first)

    def _share(self) -> int:
        """Height of the area at the bottom for panes that need no more."""
        return _LOWEST + max(0, self._window.height() - _SMALL) // 2

    def _lay_out(self, front: str) -> None:
        """Room for panes by the size of the window: a large one shows more rows and whole sentences."""
        wide = min(96 * GRID, self._window.width() * 15 // 100)
        sides = [self.docks[title] for title in _AREAS]
        self._window.resizeDocks(sides, [max(62 * GRID, wide), max(68 * GRID, wide)], Qt.Orientation.Horizontal)
        self._usual = self._share()
        self._set_height(front, self._wanted(front))
        self._ours = self._around = self._around_timelines()

    def keep(self) -> None:
        """Leave the panes as they are: so the user had them."""
        self._ours = None
        self._usual = self._share()
        self._restored = True

    def window_resized(self, size: QSize) -> None:
        """Share out the room anew, unless the user has."""
        self._laid_out = size
        if self._ours is not None and self._ours == self._around:
            self._lay_out(self.front() or next(reversed(self.docks)))
        else:
            self._around = self._around_timelines()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        passed = super().eventFilter(watched, event)
        # Panes that give way because the window becomes smaller are not the user's doing.
        if watched is self._timelines and event.type() == QEvent.Type.Resize and self._window.size() == self._laid_out:
            self._around = self._around_timelines()
            if not self._fitting and QGuiApplication.mouseButtons() & Qt.MouseButton.LeftButton:
                self._note_height(self.front())
        return passed

    def _note_height(self, front: str | None) -> None:
        """The user has dragged what is between the timelines and the panes: that height is of the pane in front, or of
        all that need no more."""
        if front is None or self._height(front) == self._wanted(front):
            return
        if self._needs[front]:
            self._given[front] = self._height(front)
        else:
            self._usual = self._height(front)

    def _around_timelines(self) -> QMargins:
        """What panes take at the left, at the right and at the bottom: a change of these alone is the user's."""
        whole, middle = self._window.rect(), self._timelines.geometry()
        return QMargins(middle.left(), 0, whole.right() - middle.right(), whole.bottom() - middle.bottom())

    def _wanted(self, title: str) -> int:
        """Height of the area while a pane is in front. The timelines keep half of the window."""
        return self._given.get(title) or max(self._usual, min(self._needs[title], self._window.height() // 2))

    def _fit(self, front: str | None) -> None:
        """Give the pane in front its height."""
        if front is not None and self._restored:
            self._restored = False
            self._note_height(front)
        if front is None or self._height(front) == self._wanted(front):
            return
        ours = self._ours is not None and self._ours == self._around
        self._set_height(front, self._wanted(front))
        self._around = self._around_timelines()
        if ours:
            self._ours = self._around

    def _set_height(self, title: str, height: int) -> None:
        self._fitting = True
        try:
            self._window.resizeDocks([self.docks[title]], [height], Qt.Orientation.Vertical)
            layout = self._window.layout()
            if layout is not None:
                layout.activate()
        finally:
            self._fitting = False

    def _height(self, title: str) -> int:
        """Height of a pane at the bottom with the tabs under it, which is what `resizeDocks` takes."""
        bars = self._window.findChildren(QTabBar, options=Qt.FindChildOption.FindDirectChildrenOnly)
        return self.docks[title].height() + max((bar.height() for bar in bars if bar.isVisible()), default=0)

    # What is in front

    def front(self) -> str | None:
        """The pane at the bottom that is in front of the others; None where none is shown."""
        shown = (title for title, dock in self.docks.items() if title not in _AREAS and not dock.isFloating())
        return next((title for title in shown if not self.docks[title].visibleRegion().isEmpty()), None)

    def _came_or_went(self, visible: bool) -> None:  # a signal's slot: as a method it goes with the window
        """Another pane is in front: it gets its height, and keys go to it."""
        QTimer.singleShot(0, self, (lambda: self._fit(self.front())) if visible else self._bring_focus)

    def _bring_focus(self) -> None:
        """Take the focus out of a pane that another one covers now."""
        if not self._is_unseen():
            return
        front = self.front()
        if front is not None:
            self.docks[front].widget().setFocus()
        if self._is_unseen():
            self._fallback.setFocus()

    def _is_unseen(self) -> bool:
        """Whether keys would act on a pane that another one covers."""
        focused: QWidget | None = self._window.focusWidget()  # Qt's stubs never have none
        return focused is not None and is_behind(focused)


def _area(title: str) -> Qt.DockWidgetArea:
    return _AREAS.get(title, Qt.DockWidgetArea.BottomDockWidgetArea)
