"""What stands where results would be: the next step, progress and a way to stop it, or what went wrong and ways out."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QLabel, QProgressBar, QPushButton, QVBoxLayout, QWidget

from views.ports import Host
from views.runs.runner import Progress, Stage
from views.theme import GRID

Way = tuple[str, Callable[[], None]]
"""A button's text, and what it does."""


class Bar(QProgressBar):
    """How far a job is, after what it says: in a format Qt would take a message's %p, %v and %m for its own."""

    def __init__(self) -> None:
        super().__init__()
        self._message = ""

    def tell(self, percent: int, message: str) -> None:
        self._message = message
        self.setValue(percent)
        self.update()

    def text(self) -> str:
        return f"{self._message} {self.value()}%".lstrip()


class Message(QWidget):
    """A sentence or more, a progress bar while a job runs, and buttons."""

    def __init__(self, host: Host, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._host = host
        self._job = 0
        self.text = QLabel()
        self.text.setWordWrap(True)  # Qt's signature
        self.text.setTextFormat(Qt.TextFormat.PlainText)
        self.text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.bar = Bar()
        self.bar.setRange(0, 100)
        self.bar.setMaximumWidth(100 * GRID)
        self.buttons = QHBoxLayout()
        self.buttons.setAlignment(Qt.AlignmentFlag.AlignLeft)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(2 * GRID, 2 * GRID, 2 * GRID, 2 * GRID)
        layout.setSpacing(2 * GRID)
        layout.addWidget(self.text)
        layout.addWidget(self.bar)
        layout.addLayout(self.buttons)
        layout.addStretch(1)
        stop = host.watch_jobs(self._jobs_changed)
        self.destroyed.connect(lambda *_: stop())

    def say(self, text: str, ways: Sequence[Way] = ()) -> None:
        """Show a text and buttons; no job."""
        self._show(text, 0, ways)

    def follow(self, progress: Progress, ways: Sequence[Way] = ()) -> None:
        """Show a task: while it runs its progress, afterwards why it has no results, with `ways` out."""
        if progress.stage == Stage.RUNNING:
            job = progress.job
            self._show(progress.title, job, (("Cancel", lambda: self._host.cancel(job)),))
            self._jobs_changed()
        else:
            self._show(progress.text, 0, ways)

    def _show(self, text: str, job: int, ways: Sequence[Way]) -> None:
        self._job = job
        self.text.setText(text)
        self.text.setVisible(bool(text))
        self.bar.setVisible(bool(job))
        while (item := self.buttons.takeAt(0)) is not None:
            widget = item.widget()
            if widget is not None:
                widget.deleteLater()
        for title, act in ways:
            button = QPushButton(title)
            button.clicked.connect(act)
            self.buttons.addWidget(button)

    def _jobs_changed(self) -> None:
        job = next((job for job in self._host.jobs() if job.number == self._job), None)
        if self._job and job is not None:
            self.bar.tell(round(job.fraction * 100), job.message)
