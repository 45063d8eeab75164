"""The few lines beside the mouse: what a slice is, how long it takes, and why a gap is there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from engine.quantities import exact_time_text, time_text
from engine.session.lookup import lookup
from engine.session.session import Session
from engine.session.variant import Variant
from engine.timeline.timeline import Category
from views.timeline.axis import Window
from views.timeline.overlay import Hit
from views.timeline.scene import instruction_name
from views.timeline.shares import per_column, shares_of

WORDS = {
    Category.EINSUM: "einsum",
    Category.ELEMENTWISE: "compute",
    Category.COPY: "copy or layout change",
    Category.PERMUTE: "collective permute",
    Category.COLLECTIVE: "collective",
    Category.EXPOSED: "exposed communication",
    Category.LOOP: "loop",
}


def kind_text(variant: Variant, row: int) -> str:
    """What a slice is, in words."""
    category = Category(int(variant.timeline.category[row]))
    proto = lookup(variant).proto(int(variant.timeline.instruction[row]))
    if category == Category.COPY and proto is not None and proto.opcode == "while":
        return "copy of loop state"
    return WORDS[category]


def card_of(session: Session, hit: Hit, time: int) -> Sequence[str]:
    """Lines for a slice; the first is its name."""
    variant = session.entries[hit.entry].variant
    return tuple(_lines(variant, hit.row)) if variant is not None else ()


def shares_at(session: Session, hit: Hit, window: Window, x: float) -> tuple[str, ...]:
    """A line on how the time of a pixel column is divided, where a slice is narrower than that; nothing elsewhere."""
    variant = session.entries[hit.entry].variant
    column = int(x - window.left)
    if variant is None or variant.timeline.duration[hit.row] >= per_column(window) or not 0 <= column < window.width:
        return ()
    shares = shares_of(variant.timeline)[int(variant.timeline.lane[hit.row])].of(window)
    parts = [f"{WORDS[kind]} {share[column]:.0%}" for kind, share in shares.items() if share[column] > 0]
    return (f"this pixel, {time_text(window.per_pixel)}: {', '.join(parts)}",) if parts else ()


def _lines(variant: Variant, row: int) -> Iterator[str]:
    timeline = variant.timeline
    category = Category(int(timeline.category[row]))
    duration = exact_time_text(int(timeline.duration[row]))
    start = exact_time_text(int(timeline.start[row]))
    name = instruction_name(variant, int(timeline.instruction[row]))
    if category == Category.EXPOSED:
        waited = instruction_name(variant, int(timeline.waits_for[row])) or "a transfer"
        yield f"exposed: waits {time_text(int(timeline.duration[row]))} for {waited}"
        if name:
            yield f"{name} cannot start before it is there"
        yield f"{duration}, from {start}"
        return
    yield name or WORDS[category]
    proto = lookup(variant).proto(int(timeline.instruction[row]))
    opcode = f"{proto.opcode} · " if proto is not None and proto.opcode != name else ""
    yield f"{opcode}{kind_text(variant, row)}"
    yield f"{duration}, from {start}"
    repeat = int(timeline.repeat[row])
    if repeat > 1:
        yield f"{repeat:,} iterations of {exact_time_text(int(timeline.duration[row]) // repeat)}"
    elif int(timeline.depth[row]) > 0:
        yield f"in iteration {int(timeline.iteration[row]) + 1} of its loop"
