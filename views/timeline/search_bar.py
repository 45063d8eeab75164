"""The line with which instructions are searched: over the whole timeline of the active variant."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt, QTimer, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QLineEdit, QToolButton, QWidget

from engine.errors import UsageError
from engine.session.session import Session
from views.icons import icon
from views.ports import Host, follow
from views.theme import GRID
from views.timeline.search import Found, search
from views.timeline.view import TimelineView


class SearchBar(QWidget):
    """Name, opcode or regular expression; Enter goes to the next hit, Shift+Enter to the one before."""

    closed = Signal()
    sought = Signal(str)
    """What is looked for now; empty when the search is over."""

    def __init__(self, host: Host, view: TimelineView, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._host = host
        self._view = view
        self._found: Found | None = None
        self._at = -1
        self.line = QLineEdit()
        self.line.setPlaceholderText("name, opcode or op_name; /regular expression/")
        self.line.setClearButtonEnabled(True)
        self.line.setAccessibleName("search the timeline")
        self.line.installEventFilter(self)
        self.count = QLabel()
        self.count.setMinimumWidth(40 * GRID)
        self._later = QTimer(self)
        self._later.setSingleShot(True)
        self._later.setInterval(80)
        self._later.timeout.connect(self._search)
        self.line.textChanged.connect(self._typed)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(2 * GRID, GRID, 2 * GRID, GRID)
        layout.addWidget(self.line, 1)
        layout.addWidget(self.count)
        self._icons: list[tuple[QToolButton, str]] = []
        for name, tip, act in (
            ("arrow-left", "Previous hit (Shift+Enter)", lambda: self.step(-1)),
            ("arrow-right", "Next hit (Enter)", lambda: self.step(1)),
            ("x", "Close (Escape)", self.close_bar),
        ):
            button = QToolButton()
            button.setAutoRaise(True)
            button.setToolTip(tip)
            button.setAccessibleName(tip)
            button.clicked.connect(act)
            self._icons.append((button, name))
            layout.addWidget(button)
        self._tint()
        follow(self, host.store, self._session_changed)
        self.hide()

    def open_bar(self) -> None:
        self.show()
        self.line.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.line.selectAll()
        self._search()
        self.sought.emit(self.line.text())

    def close_bar(self) -> None:
        self.hide()
        self._view.show_found(None)
        self._view.setFocus()
        self.sought.emit("")
        self.closed.emit()

    def step(self, by: int) -> None:
        """Select the next (or an earlier) hit."""
        if self._later.isActive():
            self._later.stop()
            self._search()
        found = self._found
        entry = self._host.store.state.active_entry
        if found is None or entry is None or not len(found.rows):
            return
        self._at = (self._at + by) % len(found.rows) if self._at >= 0 or by > 0 else len(found.rows) - 1
        self._view.moves.go_to(entry.key, int(found.rows[self._at]))
        self._say()

    def _typed(self, text: str) -> None:
        self._later.start()
        self.sought.emit(text)

    def _search(self) -> None:
        entry = self._host.store.state.active_entry
        self._at = -1
        if entry is None or entry.variant is None or not self.isVisible():
            self._found = None
            self.count.setText("")
            return
        try:
            self._found = search(entry.variant, self.line.text())
        except UsageError as error:
            self._found = None
            self.count.setText(str(error))
            self._view.show_found(None)
            return
        self._view.show_found(self._found)
        self._say()

    def _say(self) -> None:
        found = self._found
        if found is None or not self.line.text().strip():
            self.count.setText("")
        elif not len(found.rows):
            self.count.setText("nothing found")
        else:
            here = f"{self._at + 1} of " if self._at >= 0 else ""
            more = f" ({found.instructions:,} instructions)" if found.instructions != len(found.rows) else ""
            self.count.setText(f"{here}{len(found.rows):,}{more}")

    def _session_changed(self, session: Session, changed: frozenset[str]) -> None:
        if changed & {"entries", "active"} and self.isVisible():
            self._search()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self.line and isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            if event.key() == Qt.Key.Key_Escape:
                self.close_bar()
                return True
            if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
                self.step(-1 if event.modifiers() & Qt.KeyboardModifier.ShiftModifier else 1)
                return True
        return super().eventFilter(watched, event)

    def changeEvent(self, event: QEvent) -> None:
        if event.type() == QEvent.Type.PaletteChange:
            self._tint()
        super().changeEvent(event)

    def _tint(self) -> None:
        for button, name in self._icons:
            button.setIcon(icon(name, self._host.theme.text))
