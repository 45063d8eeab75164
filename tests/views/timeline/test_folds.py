"""Iterations that are folded: drawn as what they do, told of, and pointed at as their loop."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import QPointF
from PySide6.QtGui import QImage
from pytestqt.qtbot import QtBot

from engine.timeline.timeline import Category
from tests.views.fake_host import FakeHost
from tests.views.synthetic import TRIPS, US, variant
from views.theme import colour
from views.timeline.axis import TimeRange
from views.timeline.iterations import frame_of_fold, iterations_text, loop_at
from views.timeline.measure import measure
from views.timeline.overview import Overview
from views.timeline.paint_folds import fold_text, mix_of
from views.timeline.scene import AXIS
from views.timeline.stack import FRAME, RowKind
from views.timeline.view import TimelineView

MADE = variant(1)
TIMELINE = MADE.timeline
MIDDLE = int(TIMELINE.folds.start[0] + TIMELINE.folds.duration[0] // 2)


def test_a_stretch_is_divided_as_the_iteration_before_it() -> None:
    mix = dict(mix_of(TIMELINE, 0, 0))
    each = int(TIMELINE.folds.sample[0])
    assert mix == {
        Category.EINSUM: pytest.approx(60 * US / each),
        Category.ELEMENTWISE: pytest.approx(8 * US / each),
        Category.EXPOSED: pytest.approx(75 * US / each),
    }
    assert dict(mix_of(TIMELINE, 0, 1)) == {Category.PERMUTE: pytest.approx(75 * US / each)}
    assert mix_of(TIMELINE, 0, 2) == ()


def test_measuring_over_a_stretch_counts_what_is_folded_there() -> None:
    start, each = int(TIMELINE.folds.start[0]), int(TIMELINE.folds.sample[0])
    found = measure(TIMELINE, start + 4 * each, start + 10 * each + 10 * US)
    assert (found.compute, found.transfer, found.overlap) == (6 * 68 * US + 10 * US, 6 * 75 * US, 0)
    assert measure(TIMELINE, 0, TIMELINE.makespan).exposed == MADE.metrics.exposed


def test_what_is_folded_belongs_to_its_loop() -> None:
    assert frame_of_fold(TIMELINE, 0) == loop_at(TIMELINE, (9000,))
    assert TIMELINE.folds.at(MIDDLE) == 0
    assert TIMELINE.folds.at(0) is None
    assert fold_text(TRIPS - 3) == "folded ×123"


def test_the_frame_says_which_iterations_are_shown() -> None:
    frame = loop_at(TIMELINE, (9000,))
    assert frame is not None
    each, start = int(TIMELINE.folds.sample[0]), int(TIMELINE.start[frame])
    assert iterations_text(TIMELINE, frame, 0, TIMELINE.makespan) == "iterations 1, 2, 3 shown"
    assert iterations_text(TIMELINE, frame, start + each, start + 2 * each) == "iteration 2 shown"
    assert iterations_text(TIMELINE, frame, MIDDLE, MIDDLE + each) == ""


def test_a_click_on_what_is_folded_selects_the_loop(view: TimelineView) -> None:
    row = next(row for row in view.stack.rows if row.kind == RowKind.COMPUTE)
    y = AXIS + row.top + row.frames * FRAME + 6.0
    hit = view.hit_at(QPointF(view.window_of().x_of(MIDDLE), y))
    assert hit is not None
    view.select(hit)
    assert view.session.selection.instructions == (9000,)


def test_lanes_and_overview_have_no_blank_where_iterations_are_folded(
    qtbot: QtBot, host: FakeHost, view: TimelineView
) -> None:
    row = next(row for row in view.stack.rows if row.kind == RowKind.COMPUTE)
    top = AXIS + row.top + row.frames * FRAME
    exposed = colour(host.theme.exposed.fill).rgb()
    x = round(view.window_of().x_of(MIDDLE))
    assert exposed in column(view.viewport().grab().toImage(), x + 60, top, row.bottom + AXIS)
    everything = TimeRange()
    everything.set_limit(view.range.limit)
    everything.fit()
    strip = Overview(host, everything)
    qtbot.addWidget(strip)
    strip.resize(view.width(), strip.sizeHint().height())
    active = host.store.state.active_variant
    assert active is not None
    folds = active.timeline.folds
    x = round(strip.whole().x_of(int(folds.start[0] + folds.duration[0] // 2)))
    assert exposed in column(strip.grab().toImage(), x, 0, strip.height())


def column(image: QImage, x: int, top: int, bottom: int) -> set[int]:
    """Colours in a few columns of pixels."""
    return {image.pixel(at, y) for at in range(x, x + 6) for y in np.arange(top, bottom).tolist()}
