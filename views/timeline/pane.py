"""The middle of the window: timelines with their search line, or what stands there while there are none."""

from __future__ import annotations

from PySide6.QtWidgets import QStackedLayout, QVBoxLayout, QWidget

from engine.session.session import Session
from views.ports import Host, follow
from views.timeline.axis import TimeRange
from views.timeline.overview import Overview
from views.timeline.search_bar import SearchBar
from views.timeline.view import TimelineView
from views.welcome import Problem, Reading, Welcome


class TimelinePane(QWidget):
    """One of: welcome, reading, problem, timelines."""

    def __init__(self, host: Host, time_range: TimeRange, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.view = TimelineView(host, time_range)
        self.search = SearchBar(host, self.view)
        self.welcome = Welcome(host)
        self.reading = Reading(host)
        self.problem = Problem(host)
        timelines = QWidget()
        column = QVBoxLayout(timelines)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.search)
        column.addWidget(self.view, 1)
        self.overview = Overview(host, time_range)
        column.addWidget(self.overview)
        self._pages = (self.welcome, self.reading, self.problem, timelines)
        self._stack = QStackedLayout(self)
        for page in self._pages:
            self._stack.addWidget(page)
        follow(self, host.store, self._session_changed)
        self._session_changed(host.store.state, frozenset({"modules"}))

    def _session_changed(self, session: Session, changed: frozenset[str]) -> None:
        if not changed & {"modules", "reading", "problem", "entries"}:
            return
        page = self._page(session)
        if self._stack.currentWidget() is not self._pages[page]:
            self._stack.setCurrentIndex(page)
            if page == 0:
                self.welcome.show_recent()
            if page == 3:
                self.view.setFocus()

    @staticmethod
    def _page(session: Session) -> int:
        if not session.path:
            return 0
        if session.problem:
            return 2
        return 1 if session.reading else 3
