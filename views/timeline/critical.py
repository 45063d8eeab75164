"""Rows of the slices that decide a timeline's makespan, for drawing."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from engine.ir.graph import Ints
from engine.session.variant import Variant
from engine.timeline.critical_path import critical_path
from engine.timeline.timeline import Category


@lru_cache(maxsize=64)
def critical_rows(variant: Variant) -> Ints:
    """Rows on the critical path, ascending; frames of loops and idle time are left out."""
    path: Ints = np.unique(critical_path(variant.timeline).rows)
    path = path[path >= 0]
    category = variant.timeline.category[path]
    rows: Ints = path[(category != Category.LOOP) & (category != Category.EXPOSED)]
    rows.setflags(write=False)
    return rows
