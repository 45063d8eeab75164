"""Names in menus: Qt takes an ampersand for the mark of the letter behind it."""

from __future__ import annotations


def verbatim(name: str) -> str:
    """Text of a menu entry that shows `name` as it is."""
    return name.replace("&", "&&")
