"""The window: timelines in the middle, panes around them that can be moved, hidden and floated."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import PurePath
from typing import cast

from PySide6.QtCore import QByteArray, QEvent, QMargins, QObject, QSize, Qt, QTimer
from PySide6.QtGui import QCloseEvent, QDragEnterEvent, QDropEvent, QResizeEvent
from PySide6.QtWidgets import QApplication, QDockWidget, QMainWindow, QMenuBar, QTabBar, QVBoxLayout, QWidget

from engine.hlo.dump import file_title
from engine.session.session import Session
from views.candidates.collectives import Collectives
from views.focus import is_behind, ring, step
from views.inspector.inspector import Inspector
from views.jobs.log import JobLog
from views.modules import ModuleList
from views.notices import Notices
from views.plan.plan_line import PlanLine
from views.ports import Host, Lazy, follow
from views.status import StatusBar
from views.theme import GRID
from views.timeline.axis import TimeRange
from views.timeline.pane import TimelinePane
from views.within import Within

LAYOUT_VERSION = 2
"""Raised when panes come or go: a layout of another version is not restored."""


_NARROWEST = 48 * GRID
"""Panes at the sides do not become narrower than this: their text would fall apart."""

_LOWEST = 52 * GRID
"""Height of the panes at the bottom in a window of `_SMALL`; of every further pixel they get half."""

_SMALL = 200 * GRID

_MOST_NAMED = 3
"""Modules that the window's title names."""

_AREAS = {
    "Collectives": Qt.DockWidgetArea.LeftDockWidgetArea,
    "Inspector": Qt.DockWidgetArea.RightDockWidgetArea,
}


class MainWindow(QMainWindow):
    """Panes and where they are. What is done with them is in the table of actions."""

    def __init__(self, host: Host, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._host = host
        self._session_path = ""
        self.setWindowTitle("Lapstrake")
        self.setAcceptDrops(True)
        self.setDockOptions(QMainWindow.DockOption.AllowTabbedDocks | QMainWindow.DockOption.AllowNestedDocks)
        self.setTabPosition(Qt.DockWidgetArea.AllDockWidgetAreas, self.tabPosition(Qt.DockWidgetArea.TopDockWidgetArea))
        self.range = TimeRange(self)
        self.timelines = TimelinePane(host, self.range)
        self.timelines.installEventFilter(self)
        self.setCentralWidget(self.timelines)
        self.plan_line = PlanLine(host)
        self.notices = Notices(host)
        self.menus = QMenuBar()
        self.setMenuWidget(self._top())
        self.collectives = Collectives(host)
        self.inspector = Inspector(host)
        for side in (self.collectives, self.inspector):
            side.setMinimumWidth(_NARROWEST)
        self.modules = ModuleList(host)
        self.log = JobLog(host)
        self.docks: dict[str, QDockWidget] = {}
        self._ours: QMargins | None = None
        """Around the timelines when panes were last given their sizes here; None while the user's are kept."""
        self._around = QMargins()
        """Around the timelines when the window had the size that it has, or before it got that."""
        self._laid_out: QSize | None = None
        """The window's size for which `_around` holds."""
        self._lent: tuple[str, int] | None = None
        """A pane that was made higher to be read, and the height of its area before that."""
        self._dock("Collectives", self._left(), Qt.DockWidgetArea.LeftDockWidgetArea)
        self._dock("Inspector", self.inspector, Qt.DockWidgetArea.RightDockWidgetArea)
        self._dock("Log", self.log, Qt.DockWidgetArea.BottomDockWidgetArea)
        self.setCorner(Qt.Corner.BottomLeftCorner, Qt.DockWidgetArea.LeftDockWidgetArea)
        self.setCorner(Qt.Corner.BottomRightCorner, Qt.DockWidgetArea.RightDockWidgetArea)
        self.setStatusBar(StatusBar(host))
        self.timelines.view.hovered.connect(self._status_hover)
        cast(QApplication, QApplication.instance()).focusChanged.connect(self._focus_moved)
        screen = self.screen().availableGeometry().size()
        self.resize(QSize(1440, 900).boundedTo(screen))
        follow(self, host.store, self._session_changed)
        self._session_changed(host.store.state, frozenset({"modules"}))

    def sizeHint(self) -> QSize:
        return QSize(1440, 900)

    def _top(self) -> QWidget:
        top = QWidget()
        column = QVBoxLayout(top)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.menus)
        column.addWidget(self.plan_line)
        column.addWidget(self.notices)
        return top

    def _left(self) -> QWidget:
        """What is there: the modules, where there are several, over the collectives of the active one."""
        left = QWidget()
        column = QVBoxLayout(left)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.modules)
        column.addWidget(self.collectives, 1)
        left.setFocusProxy(self.collectives)
        return left

    def _dock(self, title: str, pane: QWidget, area: Qt.DockWidgetArea) -> QDockWidget:
        dock = QDockWidget(title, self)
        dock.setObjectName(title)
        dock.setWidget(Within(pane) if area == Qt.DockWidgetArea.BottomDockWidgetArea else pane)
        self.addDockWidget(area, dock)
        self.docks[title] = dock
        dock.visibilityChanged.connect(self._came_or_went)
        if isinstance(pane, Lazy):
            dock.visibilityChanged.connect(lambda visible: pane.came_into_view() if visible else None)
        return dock

    def add_bottom(self, panes: Sequence[tuple[str, QWidget]]) -> None:
        """More panes as tabs of the bottom area, before the log."""
        log = self.docks.pop("Log")
        for title, pane in panes:
            self._dock(title, pane, Qt.DockWidgetArea.BottomDockWidgetArea)
        self.docks["Log"] = log
        self.reset_layout()

    def reset_layout(self) -> None:
        """Every pane back to its first place, shown; the window keeps its size."""
        size = self.size()
        for title, dock in self.docks.items():
            self.removeDockWidget(dock)
            dock.setFloating(False)  # Qt's signature
            self.addDockWidget(_AREAS.get(title, Qt.DockWidgetArea.BottomDockWidgetArea), dock)
        bottom = [dock for title, dock in self.docks.items() if title not in _AREAS]
        for left, right in pairwise(bottom):
            self.tabifyDockWidget(left, right)
        # Shown before they are tabs, they would need room side by side, and the window would grow.
        for dock in self.docks.values():
            dock.show()
        bottom[0].raise_()
        self.resize(size)
        self._resize_docks()

    def _resize_docks(self) -> None:
        """Room for panes by the size of the window: a large one shows more rows and whole sentences."""
        sides = [self.docks["Collectives"], self.docks["Inspector"]]
        wide = min(96 * GRID, self.width() * 15 // 100)
        self.resizeDocks(sides, [max(62 * GRID, wide), max(68 * GRID, wide)], Qt.Orientation.Horizontal)
        high = _LOWEST + max(0, self.height() - _SMALL) // 2
        self.resizeDocks([self.docks["Log"]], [high], Qt.Orientation.Vertical)
        layout = self.layout()
        if layout is not None:
            layout.activate()
        self._ours = self._around = self._around_timelines()

    def _around_timelines(self) -> QMargins:
        """What panes take at the left, at the right and at the bottom: a change of these alone is the user's."""
        whole, middle = self.rect(), self.timelines.geometry()
        return QMargins(middle.left(), 0, whole.right() - middle.right(), whole.bottom() - middle.bottom())

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        passed = super().eventFilter(watched, event)
        # Panes that give way because the window becomes smaller are not the user's doing.
        if watched is self.timelines and event.type() == QEvent.Type.Resize and self.size() == self._laid_out:
            self._around = self._around_timelines()
        return passed

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._laid_out = event.size()
        if self._ours is not None and self._ours == self._around:
            self._resize_docks()
        else:
            self._around = self._around_timelines()

    def open_with(self, geometry: QByteArray | None, layout: QByteArray | None) -> None:
        """Show the window where it was and with its panes where they were; the first layout where that is unknown."""
        if geometry is not None:
            self.restoreGeometry(geometry)
        restored = layout is not None and self.restoreState(layout, LAYOUT_VERSION)
        self.show()
        if restored:
            self._ours = None
        else:
            self._resize_docks()

    def layout_state(self) -> QByteArray:
        return self.saveState(LAYOUT_VERSION)

    def show_pane(self, title: str, height: int = 0) -> None:
        """Bring a pane to the front; while it is there, at least `height` pixels high where the window has them."""
        dock, front = self.docks[title], self._front()
        before = self._area_height(front) if front is not None else 0
        dock.show()
        dock.raise_()
        if max(before, dock.height()) < height and not dock.isFloating() and title not in _AREAS:
            wanted = min(height, self.height() // 2)
            self.resizeDocks([dock], [wanted], Qt.Orientation.Vertical)
            self._lent = (title, self._lent[1] if self._lent is not None else before or self._area_height(dock))
        widget = dock.widget()
        if widget is not None:
            widget.setFocus()

    def focusNextPrevChild(self, next: bool) -> bool:  # Qt's name
        return step(self, next)

    def _focus_moved(self, before: QWidget | None, now: QWidget | None) -> None:
        ring(before, now)

    def _came_or_went(self, visible: bool) -> None:  # a signal's slot: as a method it goes with the window
        """What a pane was lent is given back when another one has taken its place, and keys go to that one."""
        if not visible:
            QTimer.singleShot(0, self, self._bring_focus)
        if not visible and self._lent is not None:
            QTimer.singleShot(0, self, self._give_back)

    def _bring_focus(self) -> None:
        """Take the focus out of a pane that another one covers now."""
        front = self._front()
        if not self._is_unseen():
            return
        if front is not None:
            front.widget().setFocus()
        if self._is_unseen():
            self.timelines.view.setFocus()

    def _is_unseen(self) -> bool:
        """Whether keys would act on a pane that another one covers."""
        focused: QWidget | None = self.focusWidget()
        return focused is not None and is_behind(focused)

    def _give_back(self) -> None:
        """Give the timelines the height again that a pane was lent, unless that pane is still in front."""
        front = self._front()
        if self._lent is None or front is None or front is self.docks[self._lent[0]]:
            return
        before, self._lent = self._lent[1], None
        self.resizeDocks([front], [min(before, self._area_height(front))], Qt.Orientation.Vertical)

    def _area_height(self, dock: QDockWidget) -> int:
        """Height of a pane at the bottom with the tabs under it, which is what `resizeDocks` takes."""
        bars = self.findChildren(QTabBar, options=Qt.FindChildOption.FindDirectChildrenOnly)
        return dock.height() + max((bar.height() for bar in bars if bar.isVisible()), default=0)

    def _front(self) -> QDockWidget | None:
        """The pane at the bottom that is in front of the others; None where none is shown."""
        shown = (dock for title, dock in self.docks.items() if title not in _AREAS and not dock.isFloating())
        return next((dock for dock in shown if not dock.visibleRegion().isEmpty()), None)

    def _status_hover(self, text: str) -> None:
        if text:
            self.statusBar().showMessage(text)
        else:
            self.statusBar().clearMessage()

    def _session_changed(self, session: Session, changed: frozenset[str]) -> None:
        if changed & {"entries", "active", "modules"} and "Collectives" in self.docks:
            count = self.collectives.count
            self.docks["Collectives"].setWindowTitle(f"Collectives  {count:,}" if count else "Collectives")
        if changed & {"modules"}:
            self._retitle()
            for title in ("Collectives", "Inspector"):
                dock = self.docks.get(title)
                if dock is not None:
                    dock.widget().setEnabled(bool(session.path))

    def name_session(self, path: str) -> None:
        """Say in the title which file the session is kept in; empty for none."""
        if path != self._session_path:
            self._session_path = path
            self._retitle()

    def _retitle(self) -> None:
        name, kept = _named(self._host.store.state), PurePath(self._session_path).name
        self.setWindowTitle(
            " — ".join(filter(None, (f"{_unmarked(name)}[*]" if name else "", _unmarked(kept), "Lapstrake")))
        )

    def perform(self, action: str) -> None:
        """Do what the action of that id does."""
        self._host.perform(action)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if any(url.isLocalFile() for url in event.mimeData().urls()):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        paths = [url.toLocalFile() for url in event.mimeData().urls() if url.isLocalFile()]
        if paths:
            event.acceptProposedAction()
            self._host.drop(paths)

    def closeEvent(self, event: QCloseEvent) -> None:
        if not self._host.may_close():
            event.ignore()
            return
        self._host.perform("leave")
        super().closeEvent(event)


def _unmarked(name: str) -> str:
    """A name in the window's title, where Qt takes ``[*]`` for the place of the mark of what is not saved."""
    return name.replace("[*]", "[*][*]")


def _named(session: Session) -> str:
    """What is open, in a few words."""
    if len(session.modules) < 2:
        return file_title(session.path) if session.path else ""
    names = [session.label(module.key) for module in session.modules]
    return " + ".join(names) if len(names) <= _MOST_NAMED else f"{names[0]} and {len(names) - 1} more modules"
