"""The line over what a pane shows of a variant whose present plan has no result: what it is of, why, and ways out."""

from __future__ import annotations

from collections.abc import Callable
from html import escape

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QPalette
from PySide6.QtWidgets import QLabel, QSizePolicy, QWidget

from engine.session import edits
from engine.session.session import Entry, Session
from views.ports import Host, follow
from views.theme import GRID

PATIENCE_MS = 400
"""A new plan that takes no longer needs no words: the header of its timelines has its progress."""


def stale_text(entry: Entry | None) -> str:
    """HTML about figures of an earlier plan; empty where what is shown is of the present one, or nothing is."""
    if entry is None or entry.variant is None or not (entry.stale or entry.error):
        return ""
    earlier = f"what is shown here is of its earlier plan ({escape(entry.variant.name)})"
    if not entry.error:
        return f"{entry.key} is being planned anew: {earlier}."
    why = escape(entry.error.removeprefix("Cancelled. ").split("\n", 1)[0])
    back = '<a href="back">Back to that plan</a>' if _can_go_back(entry) else '<a href="undo">Undo</a>'
    return f'<b>{entry.key} {_was(entry)}</b>, and {earlier}. {why} <a href="rerun">Run again</a> · {back}'


def _was(entry: Entry) -> str:
    return "was cancelled" if entry.stopped else "failed"


def _can_go_back(entry: Entry) -> bool:
    """Whether only the plan is another: a machine is that of every variant."""
    variant = entry.variant
    return variant is not None and entry.recording is None and variant.machine == entry.machine


class StaleNote(QLabel):
    """Hidden while a pane shows the present plan of the entry that `of` finds: the active one by default."""

    def __init__(
        self,
        host: Host,
        of: Callable[[Session], Entry | None] = lambda session: session.active_entry,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._host = host
        self._of = of
        self.setWordWrap(True)  # Qt's signature
        self.setTextFormat(Qt.TextFormat.RichText)
        self.setTextInteractionFlags(Qt.TextInteractionFlag.TextBrowserInteraction)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Minimum)
        self.setAutoFillBackground(True)  # Qt's signature
        self.setBackgroundRole(QPalette.ColorRole.Midlight)
        self.setContentsMargins(2 * GRID, GRID, 2 * GRID, GRID)
        self.linkActivated.connect(self._followed)
        self._later = QTimer(self)
        self._later.setSingleShot(True)  # Qt's signature
        self._later.setInterval(PATIENCE_MS)
        self._later.timeout.connect(self._say)
        follow(self, host.store, self._session_changed)
        self._session_changed(host.store.state, frozenset({"entries"}))

    def _followed(self, where: str) -> None:
        session = self._host.store.state
        entry = self._of(session)
        if where != "back":
            self._host.perform(where)
        elif entry is not None and entry.variant is not None:
            state = edits.planned(session, entry.key, entry.variant.plan)
            self._host.store.become(f"Back to the earlier plan of {entry.key}", state)

    def _session_changed(self, session: Session, changed: frozenset[str]) -> None:
        if not changed & {"entries", "active", "selection", "modules"}:
            return
        entry = self._of(session)
        if entry is not None and not entry.error and stale_text(entry):
            if not self._later.isActive():
                self._later.start()
        else:
            self._later.stop()
            self._say()

    def _say(self) -> None:
        text = stale_text(self._of(self._host.store.state))
        if text != self.text():
            self.setText(text)
        self.setVisible(bool(text))
