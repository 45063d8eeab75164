"""A label for how something ended: what came of it, what to do about it, and what a compiler will undo."""

from __future__ import annotations

from html import escape

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel

from views.export.port import Outcome
from views.ports import Host


class OutcomeText(QLabel):
    """Hidden while there is nothing to say; its text can be selected and copied."""

    def __init__(self, host: Host) -> None:
        super().__init__()
        self._host = host
        self._outcome: Outcome | None = None
        self.setWordWrap(True)
        self.setTextFormat(Qt.TextFormat.RichText)
        self.setAlignment(Qt.AlignmentFlag.AlignTop)
        self.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self.hide()

    def show_outcome(self, outcome: Outcome | None) -> None:
        self._outcome = outcome
        self.setVisible(outcome is not None)
        if outcome is None:
            self.clear()
            return
        theme = self._host.theme
        role = theme.gain if outcome.good else theme.error
        parts = [f'<span style="color:{role}">{escape(outcome.said)}</span>']
        if outcome.way_out:
            parts.append(escape(outcome.way_out))
        if outcome.warnings:
            parts.append(f'<span style="color:{theme.warning}">The compiler may undo:</span>')
            parts += [f"• {escape(text)}" for text in outcome.warnings]
        self.setText("<br>".join(parts))

    def repaint_roles(self) -> None:
        """The theme is another."""
        self.show_outcome(self._outcome)
