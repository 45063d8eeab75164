"""What the menu Edit has: history, finding, copying, and the list of all commands."""

from __future__ import annotations

from app.actions.action import Action, Scope, opened
from engine.session.session import Session


def _selected(session: Session) -> bool:
    return bool(session.selection)


EDIT: tuple[Action, ...] = (
    Action("undo", "Undo", "Edit", lambda e: e.undo(), ("Ctrl+Z",)),
    Action("redo", "Redo", "Edit", lambda e: e.redo(), ("Ctrl+Shift+Z", "Ctrl+Y")),
    Action(
        "search",
        "Find …",
        "Edit",
        lambda e: e.window.timelines.search.open_bar(),
        ("Ctrl+F",),
        enabled=opened,
        tip="Name, opcode or regular expression over the whole timeline",
        separated=True,
    ),
    Action(
        "search-here",
        "Find in the timelines",
        "",
        lambda e: e.window.timelines.search.open_bar(),
        ("/",),
        Scope.TIMELINE,
        opened,
    ),
    Action("copy-selection", "Copy names", "Edit", lambda e: e.copy_names(), ("Ctrl+C",), enabled=_selected),
    Action("palette", "All commands …", "Edit", lambda e: e.show_palette(), ("Ctrl+Shift+P",), separated=True),
)
