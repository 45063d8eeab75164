"""Figures of the shown modules, computed once."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from engine.layout.figures import Figure, Floats, values_of
from engine.layout.outline import Outline, Side
from engine.quantities import bytes_text, time_text
from engine.session.variant import Variant
from views.graph.colouring import Colouring, by_decision, by_kind, by_scale
from views.graph.comparison import Comparison
from views.theme import Theme


def figure_of(outline: Outline, comparison: Comparison, figure: Figure) -> Floats:
    """The figure of every item in the variant; of what only the other variant has, in that one."""
    values = _values(outline, comparison.variant, figure)
    if comparison.before is None:
        return values
    return np.where(np.isnan(values), _values(outline.seen_earlier, comparison.before, figure), values)


def colouring_of(
    theme: Theme,
    outline: Outline,
    comparison: Comparison,
    figure: Figure,
    shown: np.ndarray[tuple[int], np.dtype[np.int64]],
) -> Colouring:
    """Colours of all items by a figure, the scale made for those that are shown."""
    if figure == Figure.KIND:
        return by_kind(theme, outline.look)
    values = figure_of(outline, comparison, figure)
    if figure == Figure.DECISION:
        return by_decision(theme, values)
    return by_scale(theme, figure, values, shown)


def figure_text(outline: Outline, comparison: Comparison, figure: Figure, item: int) -> str:
    """``time 412 µs``; empty where the item has no such figure."""
    if figure in (Figure.KIND, Figure.DECISION):
        return ""
    value = float(figure_of(outline, comparison, figure)[item])
    if np.isnan(value):
        return ""
    text = bytes_text if figure in (Figure.BYTES, Figure.MEMORY) else time_text
    return f"{figure} {text(round(value))}"


def counts_text(outline: Outline, nodes: int, *, double: bool) -> str:
    """How much is shown, and what differs."""
    leaves = outline.instruction >= 0
    said = f"{nodes:,} nodes for {int(leaves.sum()):,} instructions"
    if not double:
        return said
    counts = (
        (int((outline.sides[leaves] == Side.BEFORE).sum()), "removed"),
        (int((outline.sides[leaves] == Side.AFTER).sum()), "added"),
        (int(outline.changed.sum()), "changed"),
    )
    differs = ", ".join(f"{count:,} {word}" for count, word in counts if count)
    return f"{differs or 'nothing differs'}  ·  {said}"


@lru_cache(maxsize=32)
def _values(outline: Outline, variant: Variant, figure: Figure) -> Floats:
    return values_of(outline, variant, figure)
