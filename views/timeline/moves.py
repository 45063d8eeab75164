"""Moving about the timelines by keys: zoom and pan, along a lane, along dependencies, to the selection."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from engine.session.matching import shown_in
from engine.timeline.timeline import Category
from views.timeline.arrows import neighbours
from views.timeline.bands import bands_of
from views.timeline.overlay import Hit
from views.timeline.scene import rows_of
from views.timeline.stack import HEADER

if TYPE_CHECKING:
    from views.timeline.view import TimelineView

ZOOM = 1.25
"""Factor of one notch of the wheel; a key is two."""
PAN = 0.15
"""Part of the view that one step moves."""


class Moves:
    """What the actions of the timelines do to a view."""

    def __init__(self, view: TimelineView) -> None:
        self._view = view

    def zoom_in(self) -> None:
        self._view.range.zoom(ZOOM**2, self._zoom_centre())

    def zoom_out(self) -> None:
        self._view.range.zoom(ZOOM**-2, self._zoom_centre())

    def _zoom_centre(self) -> int:
        if self._view.overlay.cursor is not None:
            return self._view.window_of().time_at(self._view.overlay.cursor)
        return self._view.range.start + self._view.range.span // 2

    def pan_left(self) -> None:
        self._view.range.pan(-PAN)

    def pan_right(self) -> None:
        self._view.range.pan(PAN)

    def show_all(self) -> None:
        self._view.range.fit()

    def zoom_to(self, hit: Hit) -> None:
        """Fit a slice into the middle fifth of the view."""
        variant = self._view.session.entries[hit.entry].variant
        if variant is None:
            return
        start, duration = int(variant.timeline.start[hit.row]), int(variant.timeline.duration[hit.row])
        self._view.range.show(start - 2 * max(duration, 200), 5 * max(duration, 200))

    def focus_selection(self) -> None:
        """Centre the selection; when it is in the centre already, fit it."""
        hit = self._view.anchor
        variant = self._view.session.entries[hit.entry].variant if hit is not None else None
        if hit is None or variant is None:
            return
        start, duration = int(variant.timeline.start[hit.row]), int(variant.timeline.duration[hit.row])
        middle = max(0, start + duration // 2 - self._view.range.span // 2)
        centred = abs(middle - self._view.range.start) <= self._view.range.span // 100
        self.reveal(hit)
        if centred:
            self.zoom_to(hit)
        else:
            self._view.range.show(middle, self._view.range.span)

    def reveal(self, hit: Hit) -> None:
        """Scroll so that a slice is in view, sideways and up or down."""
        variant = self._view.session.entries[hit.entry].variant
        if variant is None:
            return
        start = int(variant.timeline.start[hit.row])
        self._view.range.reveal(start, start + int(variant.timeline.duration[hit.row]))
        lane = int(variant.timeline.lane[hit.row])
        bar = self._view.verticalScrollBar()
        rows = self._view.stack.placed(hit.entry, bar.value())
        row = next((r for r in rows if r.lane == lane), None)
        kept = HEADER + sum(r.height for r in rows if r.pinned and (row is None or not row.pinned))
        if row is not None and not bar.value() + kept <= row.top <= bar.value() + bar.pageStep() - row.height:
            bar.setValue(row.top - kept - bar.pageStep() // 3)

    def step_slice(self, step: int) -> None:
        """Select the next or previous slice of the lane."""
        hit = self._view.anchor
        variant = self._view.session.entries[hit.entry].variant if hit is not None else None
        if hit is None or variant is None:
            self.select_first()
            return
        timeline = variant.timeline
        bands = bands_of(timeline)[int(timeline.lane[hit.row])]
        band = bands.gaps if timeline.category[hit.row] == Category.EXPOSED else bands.slices
        row = band.next_to(hit.row, step)
        if row is not None:
            self._go(Hit(hit.entry, row))

    def select_first(self) -> None:
        for number, entry in enumerate(self._view.session.entries):
            if entry.key == self._view.session.active and entry.variant is not None and len(entry.variant.timeline):
                bands = bands_of(entry.variant.timeline)
                first = next((b.slices for b in bands if len(b.slices)), None)
                if first is not None:
                    self._go(Hit(number, int(first.slices[0])))

    def _go(self, hit: Hit) -> None:
        self._view.select(hit)
        self.reveal(hit)

    def follow_edges(self, *, forward: bool) -> None:
        """Select the first user (or operand) of the selected instruction."""
        hit = self._view.anchor
        variant = self._view.session.entries[hit.entry].variant if hit is not None else None
        if hit is None or variant is None:
            return
        timeline = variant.timeline
        ids = neighbours(variant, int(timeline.instruction[hit.row]), forward=forward)
        here = int(timeline.start[hit.row])
        for instruction in ids:
            rows = rows_of(timeline, (instruction,))
            rows = rows[timeline.category[rows] != Category.EXPOSED]
            if len(rows):
                distance = np.abs(timeline.start[rows] - here)
                self._go(Hit(hit.entry, int(rows[np.argmin(distance)])))
                return

    def measure_selection(self) -> None:
        """Measure from the first start to the last end of what is selected."""
        session = self._view.session
        entry = session.active_entry
        if entry is None or entry.variant is None:
            return
        timeline = entry.variant.timeline
        rows = rows_of(timeline, shown_in(session, entry.key))
        if len(rows):
            start = timeline.start[rows]
            self._view.set_measure((int(start.min()), int((start + timeline.duration[rows]).max())))

    def mark_time(self) -> int:
        """Where a new mark goes: the mouse, else the start of the selection, else the middle of the view."""
        if self._view.overlay.cursor is not None:
            return self._view.window_of().time_at(self._view.overlay.cursor)
        if self._view.anchor is not None:
            variant = self._view.session.entries[self._view.anchor.entry].variant
            if variant is not None:
                return int(variant.timeline.start[self._view.anchor.row])
        return self._view.range.start + self._view.range.span // 2

    def go_to(self, entry_key: str, row: int) -> None:
        """Select a slice and bring it into view."""
        number = next((n for n, e in enumerate(self._view.session.entries) if e.key == entry_key), None)
        if number is not None:
            self._go(Hit(number, row))
