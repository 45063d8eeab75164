"""Words as a line for a shell, also where the name of a file is no text."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable

_BYTE = re.compile("[\udc80-\udcff]")
"""What stands for a byte that is not UTF-8 (PEP 383): no clipboard and no terminal can hold it."""

_APART = re.compile(r"['\\\x00-\x1f\x7f]")


def shell_line(words: Iterable[str]) -> str:
    """One line that a shell takes apart into these words again.

    Words with bytes that are not UTF-8 are quoted as ``$'…'`` (POSIX.1-2024; bash, zsh and ksh long before), the others
    as every POSIX shell reads them.
    """
    return " ".join(_by_codes(word) if _BYTE.search(word) else shlex.quote(word) for word in words)


def _by_codes(word: str) -> str:
    # Three octal digits end by themselves; hexadecimal ones would go on into letters that follow.
    plain = _APART.sub(lambda found: f"\\{ord(found[0]):03o}", word)
    return "$'" + _BYTE.sub(lambda found: f"\\{ord(found[0]) - 0xDC00:03o}", plain) + "'"
