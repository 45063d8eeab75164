"""Finding instructions over the whole timeline by name, opcode or regular expression."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from engine.errors import UsageError
from engine.ir.graph import Ints
from engine.session.lookup import lookup
from engine.session.variant import Variant
from engine.timeline.timeline import Category
from views.timeline.scene import rows_of


@dataclass(frozen=True)
class Found:
    """Slices that match, by time."""

    rows: Ints
    times: Ints
    instructions: int
    """How many instructions they belong to."""


def search(variant: Variant, text: str) -> Found:
    """Slices of `variant` whose instruction's name, opcode or op_name contains or matches `text`.

    A text between slashes (``/fusion\\.[0-9]+$/``) is a regular expression; raises UsageError where it is none.
    """
    wanted = text.strip()
    if not wanted:
        return Found(np.empty(0, np.int64), np.empty(0, np.int64), 0)
    matches = matcher(wanted)
    timeline = variant.timeline
    chosen = tuple(number for number, *texts in _texts(variant) if any(map(matches, texts)))
    rows = rows_of(timeline, chosen)
    rows = rows[timeline.category[rows] != Category.EXPOSED]
    rows = rows[np.argsort(timeline.start[rows], kind="stable")]
    return Found(rows, timeline.start[rows], len(np.unique(timeline.instruction[rows])))


@lru_cache(maxsize=8)
def _texts(variant: Variant) -> tuple[tuple[int, str, str, str], ...]:
    """Id, name, opcode and op_name of everything that runs on the timeline."""
    there = lookup(variant)
    protos = ((number, there.proto(number)) for number in np.unique(variant.timeline.instruction).tolist())
    return tuple((n, p.name, p.opcode, p.metadata.op_name) for n, p in protos if p is not None)


def matcher(wanted: str) -> Callable[[str], bool]:
    """What a search asks of a name; raises UsageError where its regular expression is none."""
    if len(wanted) > 2 and wanted.startswith("/") and wanted.endswith("/"):
        try:
            pattern = re.compile(wanted[1:-1], re.IGNORECASE)
        except re.error as error:
            raise UsageError(f"no regular expression: {error}") from None
        return lambda text: pattern.search(text) is not None
    lowered = wanted.lower()
    return lambda text: lowered in text.lower()
