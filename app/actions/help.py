"""What the menu Help has."""

from __future__ import annotations

from app.actions.action import Action, Scope, always

HELP: tuple[Action, ...] = (
    Action("keys", "Keys", "Help", lambda e: e.show_keys(), ("?",), Scope.TIMELINE, always),
    Action("keys-anywhere", "Keys", "", lambda e: e.show_keys(), ("F1",)),
    Action("guide", "First steps", "Help", lambda e: e.show_guide()),
    Action("about", "About Lapstrake", "Help", lambda e: e.show_about(), separated=True),
)
