"""What stands in the middle while there are no timelines: how to begin, what is being read, or why that failed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePath

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QHBoxLayout, QLabel, QProgressBar, QPushButton, QSizePolicy, QVBoxLayout, QWidget

from engine.session.folders import file_names
from engine.session.session import Session
from views.menu_text import verbatim
from views.ports import Host, follow
from views.theme import GRID, axis_font, code_font

_MOST_RECENT = 6


class Welcome(QWidget):
    """Nothing is open yet: the ways to begin."""

    def __init__(self, host: Host, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._host = host
        layout = QVBoxLayout(self)
        layout.setAlignment(Qt.AlignmentFlag.AlignCenter)
        layout.setSpacing(3 * GRID)
        title = QLabel("See where communication waits, and what overlapping it would save")
        font = title.font()
        font.setPointSizeF(font.pointSizeF() * 1.4)
        title.setFont(font)
        layout.addWidget(title, 0, Qt.AlignmentFlag.AlignHCenter)
        what = QLabel(
            "Open an HLO module after SPMD partitioning: HLO text, HloModuleProto or HloProto (.pb, .hlo.pb),\n"
            "StableHLO (.mlir, bytecode), gzipped or not. Or drop a file here."
        )
        what.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        layout.addWidget(what, 0, Qt.AlignmentFlag.AlignHCenter)
        layout.addLayout(
            _buttons(("Open …", lambda: host.perform("open")), ("Open a sample", lambda: host.perform("open-sample")))
        )
        self._recover = QPushButton("Go on with the last session")
        self._recover.clicked.connect(lambda: host.perform("recover"))
        layout.addWidget(self._recover, 0, Qt.AlignmentFlag.AlignHCenter)
        self._recent = QVBoxLayout()
        self._recent.setSpacing(0)
        layout.addSpacing(2 * GRID)
        layout.addLayout(self._recent)
        self.show_recent()

    def show_recent(self) -> None:
        """List recent files, and offer to go on with the last session."""
        self._recover.setVisible(bool(self._host.recoverable()))
        while (item := self._recent.takeAt(0)) is not None:
            widget = item.widget()
            if widget is not None:
                widget.deleteLater()
        paths = self._host.recent()[:_MOST_RECENT]
        if paths:
            caption = QLabel("Recent")
            caption.setFont(axis_font())
            self._recent.addWidget(caption, 0, Qt.AlignmentFlag.AlignHCenter)
        for path, name in zip(paths, file_names(paths), strict=True):
            button = QPushButton(verbatim(name))
            button.setFlat(True)
            button.setToolTip(path)
            button.setCursor(Qt.CursorShape.PointingHandCursor)
            button.clicked.connect(_opener(self._host, path))
            self._recent.addWidget(button, 0, Qt.AlignmentFlag.AlignHCenter)


def _opener(host: Host, path: str) -> Callable[[], None]:
    return lambda: host.open(path)


def _buttons(*named: tuple[str, Callable[[], None]]) -> QHBoxLayout:
    line = QHBoxLayout()
    line.setAlignment(Qt.AlignmentFlag.AlignHCenter)
    line.setSpacing(2 * GRID)
    for text, act in named:
        button = QPushButton(text)
        button.clicked.connect(act)
        line.addWidget(button)
    return line


class Reading(QWidget):
    """A file is being read."""

    def __init__(self, host: Host, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._host = host
        layout = QVBoxLayout(self)
        layout.setAlignment(Qt.AlignmentFlag.AlignCenter)
        layout.setSpacing(3 * GRID)
        self.text = QLabel("Reading …")
        self.bar = QProgressBar()
        self.bar.setRange(0, 100)
        self.bar.setTextVisible(False)
        self.bar.setFixedWidth(80 * GRID)
        layout.addWidget(self.text, 0, Qt.AlignmentFlag.AlignHCenter)
        layout.addWidget(self.bar, 0, Qt.AlignmentFlag.AlignHCenter)
        layout.addLayout(_buttons(("Cancel", lambda: host.perform("cancel-jobs"))))
        stop = host.watch_jobs(self.refresh)
        self.destroyed.connect(lambda *_: stop())

    def refresh(self) -> None:
        running = [job for job in self._host.jobs() if job.state == "running"]
        if running and self.isVisible():
            self.text.setText(running[-1].message or running[-1].title)
            self.bar.setValue(round(running[-1].fraction * 100))


class Problem(QWidget):
    """A file could not be read: what was expected, what came, where, and what to do."""

    def __init__(self, host: Host, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(10 * GRID, 10 * GRID, 10 * GRID, 10 * GRID)
        layout.setSpacing(4 * GRID)
        layout.setAlignment(Qt.AlignmentFlag.AlignVCenter)
        self.title = QLabel()
        self.title.setWordWrap(True)
        font = self.title.font()
        font.setBold(True)
        self.title.setFont(font)
        self.text = QLabel()
        self.text.setFont(code_font())
        self.text.setWordWrap(True)
        self.text.setTextFormat(Qt.TextFormat.PlainText)
        self.text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.text.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        layout.addWidget(self.title)
        layout.addWidget(self.text)
        line = _buttons(("Try again", lambda: host.perform("reload")), ("Open another …", lambda: host.perform("open")))
        line.setAlignment(Qt.AlignmentFlag.AlignLeft)
        layout.addLayout(line)
        follow(self, host.store, self._session_changed)

    def minimumSizeHint(self) -> QSize:
        return QSize(60 * GRID, 40 * GRID)

    def _session_changed(self, session: Session, changed: frozenset[str]) -> None:
        if "problem" in changed and session.problem:
            self.title.setText(f"{PurePath(session.path).name} could not be opened")
            self.text.setText(session.problem)
