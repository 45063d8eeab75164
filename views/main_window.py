"""The window: timelines in the middle, panes around them that can be moved, hidden and floated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import cast

from PySide6.QtCore import QByteArray, QSize, Qt
from PySide6.QtGui import QCloseEvent, QDragEnterEvent, QDropEvent, QResizeEvent
from PySide6.QtWidgets import QApplication, QDockWidget, QMainWindow, QMenuBar, QVBoxLayout, QWidget

from engine.hlo.dump import file_title
from engine.session.session import Session
from views.candidates.collectives import Collectives
from views.focus import ring, step
from views.inspector.inspector import Inspector
from views.jobs.log import JobLog
from views.modules import ModuleList
from views.notices import Notices
from views.panes import Panes
from views.plan.plan_line import PlanLine
from views.ports import Host, follow
from views.status import StatusBar
from views.timeline.axis import TimeRange
from views.timeline.pane import TimelinePane

LAYOUT_VERSION = 2
"""Raised when panes come or go: a layout of another version is not restored."""

_MOST_NAMED = 3
"""Modules that the window's title names."""


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
        self.setCentralWidget(self.timelines)
        self.plan_line = PlanLine(host)
        self.notices = Notices(host)
        self.menus = QMenuBar()
        self.setMenuWidget(self._top())
        self.collectives = Collectives(host)
        self.inspector = Inspector(host)
        self.modules = ModuleList(host)
        self.log = JobLog(host)
        self.panes = Panes(self, self.timelines, self.timelines.view)
        self.panes.add("Collectives", self._left())
        self.panes.add("Inspector", self.inspector)
        self.panes.add("Log", self.log)
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

    def add_bottom(self, panes: Sequence[tuple[str, QWidget]]) -> None:
        """More panes as tabs of the bottom area, before the log."""
        self.panes.add_bottom(panes)

    def reset_layout(self) -> None:
        """Every pane back to its first place, shown; the window keeps its size."""
        self.panes.reset()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.panes.window_resized(event.size())

    def open_with(self, geometry: QByteArray | None, layout: QByteArray | None) -> None:
        """Show the window where it was and with its panes where they were; the first layout where that is unknown."""
        if geometry is not None:
            self.restoreGeometry(geometry)
        restored = layout is not None and self.restoreState(layout, LAYOUT_VERSION)
        if restored:
            self.panes.keep()
        self.show()
        if not restored:
            self.panes.begin()

    def layout_state(self) -> QByteArray:
        return self.saveState(LAYOUT_VERSION)

    def show_pane(self, title: str) -> None:
        """Bring a pane to the front, as high as it needs to be."""
        self.panes.show(title)

    @property
    def docks(self) -> Mapping[str, QDockWidget]:
        """Panes by their titles."""
        return self.panes.docks

    def focusNextPrevChild(self, next: bool) -> bool:  # Qt's name
        return step(self, next)

    def _focus_moved(self, before: QWidget | None, now: QWidget | None) -> None:
        ring(before, now)

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
