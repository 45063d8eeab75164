"""The timelines' frame for the platform's accessibility interface: headers, slices, gaps and marks that are visible."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from PySide6.QtCore import QRect
from PySide6.QtGui import QAccessible

from engine.ir.graph import Ints
from engine.quantities import exact_time_text, time_text
from engine.session.matching import shown_in
from engine.session.variant import Variant
from engine.timeline.timeline import Category
from views.accessible import MOST, PRESS, Thing
from views.timeline.accessible import describe_variant
from views.timeline.bands import bands_of
from views.timeline.budget_marks import budget_marks, rect_of_mark, sentence
from views.timeline.cards import kind_text
from views.timeline.overlay import Hit, slice_rect
from views.timeline.paint_frame import visible_rows
from views.timeline.scene import AXIS, Scene, instruction_name
from views.timeline.stack import Row, RowKind

ZOOM = "zoom"
"""Name of the action that fits a slice into the view."""
_NARROWEST = 2.0
"""Pixels from which a slice is told of by itself."""

Act = Callable[[Hit], object]


def things_of(scene: Scene, select: Act, zoom: Act, activate: Callable[[str], object]) -> tuple[Thing, ...]:
    """What a frame shows, from the top: each variant's header, then its lanes from left to right.

    Where more is visible than can be told, the longest slices are, and everything that is selected.
    """
    found: list[Thing] = []
    for number in range(len(scene.session.entries)):
        rows = [row for row in visible_rows(scene) if row.entry == number]
        if rows:
            found.extend(_header(scene, rows[0], number, activate))
            found.extend(_slices(scene, rows, number, select, zoom))
    return tuple(found)


def _header(scene: Scene, row: Row, number: int, activate: Callable[[str], object]) -> Iterator[Thing]:
    entry = scene.entry(number)
    top = int(scene.y(scene.rows(number)[0].top))
    yield Thing(
        name=describe_variant(scene.session, entry.key),
        place=QRect(0, max(top, AXIS), scene.width, scene.rows(number)[0].height),
        role=QAccessible.Role.Heading,
        actions={PRESS: lambda: activate(entry.key)},
    )


def _slices(scene: Scene, rows: Sequence[Row], number: int, select: Act, zoom: Act) -> Iterator[Thing]:
    variant = scene.entry(number).variant
    if variant is None:
        return
    selected = set(shown_in(scene.session, scene.entry(number).key))
    room = MOST // max(1, len(scene.session.entries))
    for row in rows:
        if row.lane >= 0:
            for at in _told(scene, variant, row, selected, room):
                yield from _slice(scene, variant, Hit(number, at), selected, select, zoom)
        elif row.kind == RowKind.IN_FLIGHT:
            yield from _marks(scene, variant, row, number, select)


def _told(scene: Scene, variant: Variant, row: Row, selected: set[int], room: int) -> list[int]:
    """Rows of the timeline that one lane tells of, in time's order."""
    timeline, window = variant.timeline, scene.window
    bands = bands_of(timeline)[row.lane]
    columns = max(1, int(window.width))
    seen = [b.slices[b.visible(window.start, window.stop, columns)] for b in (bands.slices, bands.gaps, *bands.frames)]
    rows: Ints = np.concatenate(seen)
    chosen = np.isin(timeline.instruction[rows], list(selected)) if selected else np.zeros(len(rows), np.bool_)
    wide = timeline.duration[rows] * (window.width / window.span) >= _NARROWEST
    rows, chosen = rows[wide | chosen], chosen[wide | chosen]
    if len(rows) > room:
        longest = np.lexsort((-timeline.duration[rows], ~chosen))[:room]
        rows = rows[longest]
    order = np.lexsort((timeline.category[rows], timeline.start[rows]))
    found: list[int] = rows[order].tolist()
    return found


def _slice(scene: Scene, variant: Variant, hit: Hit, selected: set[int], select: Act, zoom: Act) -> Iterator[Thing]:
    place = slice_rect(scene, hit)
    if place is None:
        return
    timeline = variant.timeline
    instruction, waits = int(timeline.instruction[hit.row]), int(timeline.waits_for[hit.row])
    category = Category(int(timeline.category[hit.row]))
    name = instruction_name(variant, waits if category == Category.EXPOSED else instruction)
    start, duration = int(timeline.start[hit.row]), int(timeline.duration[hit.row])
    repeat = int(timeline.repeat[hit.row])
    words = f"waits for {name}" if category == Category.EXPOSED else name
    lane = timeline.lanes[int(timeline.lane[hit.row])].name
    times = f"{exact_time_text(duration)}, from {exact_time_text(start)} to {exact_time_text(start + duration)}"
    runs = f", {repeat:,} iterations" if repeat > 1 else ""
    actions: Mapping[str, Callable[[], object]] = {PRESS: lambda: select(hit), ZOOM: lambda: zoom(hit)}
    yield Thing(
        name=f"{words}, {kind_text(variant, hit.row)}",
        place=place.toAlignedRect(),
        description=f"{times}{runs}, on {lane} of {scene.entry(hit.entry).key}",
        selected=instruction in selected and category != Category.EXPOSED,
        actions=actions,
    )


def _marks(scene: Scene, variant: Variant, row: Row, number: int, select: Act) -> Iterator[Thing]:
    marks, window = budget_marks(variant), scene.window
    shown = np.flatnonzero((marks.time >= window.start) & (marks.time <= window.stop))
    for mark in shown[np.argsort(marks.since[shown] - marks.time[shown])][:MOST].tolist():
        what, why = sentence(variant, marks.held[mark])
        hit = Hit(number, int(marks.row[mark]))
        yield Thing(
            name=f"{what}: {why}",
            place=rect_of_mark(window, scene.y(row.top), marks, mark).toAlignedRect(),
            description=f"budget reached at {time_text(int(marks.time[mark]))}",
            actions={PRESS: lambda hit=hit: select(hit)},  # type: ignore[misc] # mypy cannot see a lambda's default
        )
