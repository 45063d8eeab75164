"""The sentence over or in place of what a pane shows, with links to what can be done next."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QWidget

from views.ports import Host
from views.theme import GRID


class Hint(QLabel):
    """At the top of its place; a link names an action, which a click or Enter performs."""

    def __init__(self, host: Host, text: str = "", parent: QWidget | None = None) -> None:
        super().__init__(text, parent)
        self.setMargin(2 * GRID)
        self.setWordWrap(True)  # Qt's signature
        self.setAlignment(Qt.AlignmentFlag.AlignTop)
        self.setTextInteractionFlags(Qt.TextInteractionFlag.TextBrowserInteraction)
        self.linkActivated.connect(host.perform)


def open_first(why: str) -> str:
    """What a pane says while nothing is open: what a module would let it show, and how to get one."""
    return f'Open a module {why}: <a href="open">Open …</a> or <a href="open-sample">a sample</a>.'
