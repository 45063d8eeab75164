"""Seen from far, a lane shows how its time is divided: as much of each kind as there is of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytestqt.qtbot import QtBot

from engine.timeline.folds import no_folds
from engine.timeline.timeline import Category, Timeline
from tests.views.fake_host import host_of
from tests.views.synthetic import variant
from views.theme import colour
from views.timeline.axis import TimeRange, Window
from views.timeline.bands import bands_of
from views.timeline.cards import shares_at
from views.timeline.overlay import Hit
from views.timeline.scene import AXIS, GUTTER
from views.timeline.shares import per_column, shares_of
from views.timeline.stack import RowKind
from views.timeline.view import TimelineView

MADE = variant(1)
EINSUM, EXPOSED, IDLE = 60, 30, 10
"""Parts of a hundred in every iteration of the loop below."""
TIMES = 5_000


def loop_of(iterations: int) -> Timeline:
    """Iterations of an einsum, a wait and nothing, one after the other, on the compute lane."""
    start = np.sort(np.concatenate((np.arange(iterations) * 100, np.arange(iterations) * 100 + EINSUM)))
    kinds = np.tile(np.array([Category.EINSUM, Category.EXPOSED], np.uint8), iterations)
    duration = np.tile(np.array([EINSUM, EXPOSED], np.int64), iterations)
    whole = MADE.timeline
    count = len(start)
    zeros = np.zeros(count, np.int64)
    return replace(
        whole,
        start=start.astype(np.int64),
        duration=duration,
        category=kinds,
        instruction=np.full(count, int(whole.instruction[0])),
        lane=zeros.astype(whole.lane.dtype),
        depth=zeros.astype(whole.depth.dtype),
        repeat=np.ones(count, whole.repeat.dtype),
        iteration=zeros.astype(whole.iteration.dtype),
        waits_for=np.where(kinds == Category.EXPOSED, int(whole.instruction[0]), -1).astype(np.int64),
        folds=no_folds(),
    )


@given(st.integers(0, 10**9), st.integers(1_000, 10**9), st.floats(1, 400))
def test_columns_hold_what_lanes_hold(start: int, span: int, width: float) -> None:
    """Nothing is lost, nothing is counted twice, and no column holds more than its time."""
    window = Window(start, span, 100.0, width)
    timeline = MADE.timeline
    for lane, shares in enumerate(shares_of(timeline)):
        found = shares.of(window)
        stop = start + int(width) * per_column(window) if width >= 1 else window.stop
        assert all(((share >= -1e-9) & (share <= 1 + 1e-9)).all() for share in found.values())
        assert (sum(found.values(), np.zeros(max(1, int(width)))) <= 1 + 1e-9).all()
        rows = np.concatenate((bands_of(timeline)[lane].slices.slices, bands_of(timeline)[lane].gaps.slices))
        inside = np.minimum(timeline.start[rows] + timeline.duration[rows], stop) - np.maximum(
            timeline.start[rows], start
        )
        held = np.maximum(inside, 0).sum()
        assert sum(share.sum() for share in found.values()) * per_column(window) == pytest.approx(held, abs=span * 1e-6)


def test_only_columns_with_narrow_slices_are_crowded() -> None:
    shares = shares_of(loop_of(TIMES))[0]
    assert shares.crowded(Window(0, 100 * TIMES, 100.0, 500.0)).all()
    near = shares.crowded(Window(0, 1_000, 100.0, 500.0))
    assert not near.any()
    assert shares.crowded(Window(100 * TIMES, 1_000, 100.0, 500.0)).sum() == 0


def test_a_loop_of_thousands_of_iterations_shows_what_it_does_and_says_it(qtbot: QtBot) -> None:
    timeline = loop_of(TIMES)
    host = host_of(replace(MADE, timeline=timeline))
    time_range = TimeRange()
    view = TimelineView(host, time_range)
    qtbot.addWidget(view)
    view.resize(1000, 640)
    view.show()
    qtbot.waitExposed(view)
    time_range.set_limit(100 * TIMES)
    row = next(row for row in view.stack.rows if row.kind == RowKind.COMPUTE)
    image, ratio = view.viewport().grab().toImage(), view.devicePixelRatio()
    seen: dict[int, int] = {}
    tall = range(round((AXIS + row.top) * ratio), round((AXIS + row.bottom) * ratio))
    for x in range(GUTTER + 100, GUTTER + 600, 7):
        for y in tall:
            pixel = image.pixel(round(x * ratio), y)
            seen[pixel] = seen.get(pixel, 0) + 1
    total = sum(seen.values())
    theme = host.theme
    for fill, part in ((theme.einsum.fill, EINSUM), (theme.exposed.fill, EXPOSED), (theme.base, IDLE)):
        assert seen.get(colour(fill).rgb(), 0) / total == pytest.approx(part / 100, abs=0.06)
    window = view.window_of()
    (line,) = shares_at(host.store.state, Hit(0, 40), window, window.left + 200)
    assert line.endswith("einsum 60%, exposed communication 30%")
    assert shares_at(host.store.state, Hit(0, 40), Window(0, 1_000, 100.0, 500.0), 200.0) == ()
    view.close()
