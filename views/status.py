"""The line at the bottom: the job that runs, where the times come from, and what is open."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QLabel, QProgressBar, QStatusBar, QToolButton, QWidget

from engine.hlo.dump import file_title
from engine.session.session import Session
from views.icons import icon
from views.ports import Host, follow
from views.theme import GRID
from views.timeline.paint_header import origin_text


class StatusBar(QStatusBar):
    """Jobs at the left, facts at the right."""

    def __init__(self, host: Host, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._host = host
        self._job = 0
        self.setSizeGripEnabled(False)
        self.setContentsMargins(GRID, 0, 2 * GRID, 0)
        self.job = QWidget()
        line = QHBoxLayout(self.job)
        line.setContentsMargins(GRID, 0, 0, 0)
        self.title = QLabel()
        self.bar = QProgressBar()
        self.bar.setRange(0, 100)
        self.bar.setFixedWidth(32 * GRID)
        self.cancel = QToolButton()
        self.cancel.setAutoRaise(True)
        self.cancel.setIcon(icon("x", host.theme.text))
        self.cancel.setToolTip("Cancel this job")
        self.cancel.setAccessibleName("cancel the job")
        self.cancel.clicked.connect(lambda: host.cancel(self._job))
        for widget in (self.title, self.bar, self.cancel):
            line.addWidget(widget)
        self.source = QLabel()
        self.facts = QLabel()
        self.addWidget(self.job)
        self.addPermanentWidget(self.source)
        self.addPermanentWidget(self.facts)
        stop = host.watch_jobs(self._jobs_changed)
        self.destroyed.connect(lambda *_: stop())
        follow(self, host.store, self._session_changed)
        self._jobs_changed()
        self._session_changed(host.store.state, frozenset())

    def _jobs_changed(self) -> None:
        running = [job for job in self._host.jobs() if job.state == "running"]
        self.job.setVisible(bool(running))
        if running:
            oldest = running[-1]
            self._job = oldest.number
            more = f" (+{len(running) - 1})" if len(running) > 1 else ""
            self.title.setText(f"{self._short(oldest.title)}{more}")
            self.title.setToolTip(oldest.title)
            self.bar.setValue(round(oldest.fraction * 100))

    def _short(self, text: str) -> str:
        """Files of a dump have names that would widen the window."""
        return self.fontMetrics().elidedText(text, Qt.TextElideMode.ElideMiddle, 60 * GRID)

    def _session_changed(self, session: Session, changed: frozenset[str]) -> None:
        variant = session.active_variant
        if variant is not None:
            where = variant.program.machine.chip.title
            if variant.is_measured:
                where = variant.recording.target if variant.recording is not None else ""
            self.source.setText(f"times: {origin_text(variant)}{f' ({where})' if where else ''}")
        else:
            self.source.setText("")
        facts = session.facts
        name = self._short(file_title(session.path))
        self.facts.setToolTip(session.path)
        of = f" · {len(session.modules)} modules" if len(session.modules) > 1 else ""
        self.facts.setText(f"{name} · {facts.instructions:,} instructions as loaded{of}" if facts is not None else name)
