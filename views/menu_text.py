"""Names in menus and on buttons: Qt takes an ampersand for the mark of the letter behind it."""

from __future__ import annotations

import re

_MARK = re.compile(r"&(.?)", re.DOTALL)


def verbatim(name: str) -> str:
    """Text of a menu entry or a button that shows `name` as it is."""
    return name.replace("&", "&&")


def as_shown(text: str) -> str:
    """What is seen of a menu entry's text."""
    return _MARK.sub(r"\1", text)
