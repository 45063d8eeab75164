"""The table of actions as the sheet of keys shows it: by where the keys work."""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtGui import QKeySequence

from app.actions.action import Action, Scope

Groups = dict[str, list[tuple[str, tuple[str, ...]]]]
"""Heading → what is done, with the keys that do it."""


def key_groups(actions: Iterable[Action]) -> Groups:
    """What has keys and a place in a menu; under its menu, or together with all that works only in one view."""
    groups: Groups = {}
    for action in actions:
        if action.keys and action.menu:
            place = action.menu if action.scope == Scope.WINDOW else str(action.scope)
            heading = f"{place[:1].upper()}{place[1:]}"
            keys = tuple(QKeySequence(key).toString(QKeySequence.SequenceFormat.NativeText) for key in action.keys)
            groups.setdefault(heading, []).append((action.title, keys))
    return groups
