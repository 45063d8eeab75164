"""Where the budget binds is marked: what had to wait and what held it are told on hovering, and a click selects it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from engine.chips.budget import Budget
from engine.schedule.binding import ALL_KINDS, Held
from engine.session.variant import Variant
from engine.timeline.timeline import Category, Curve, LaneKind
from tests.views.fake_host import FakeHost, host_of
from tests.views.synthetic import US, variant
from views.inspector.inspector import Inspector
from views.theme import colour
from views.timeline.axis import TimeRange, Window
from views.timeline.budget_marks import budget_marks, card_of_mark, limit_places, limit_text, sentence
from views.timeline.paint_counters import label_place
from views.timeline.scene import AXIS
from views.timeline.stack import RowKind
from views.timeline.view import TimelineView


def held_variant() -> Variant:
    """A variant whose third transfer waited for its second one."""
    made = variant(1, overlap=True, name="decomposed")
    timeline = made.timeline
    moving = [n for n, lane in enumerate(timeline.lanes) if lane.kind == LaneKind.TRANSFER]
    rows = np.flatnonzero(np.isin(timeline.lane, moving) & (timeline.category != Category.EXPOSED))
    ids = timeline.instruction[rows[np.argsort(timeline.start[rows])]]
    start = int(timeline.start[timeline.instruction == ids[2]].min())
    held = Held(int(ids[2]), start // 2, 4, "permutes", (int(ids[1]),))
    return replace(made, held=(held,))


@pytest.fixture
def host() -> FakeHost:
    return host_of(held_variant())


@pytest.fixture
def view(qtbot: QtBot, host: FakeHost) -> Iterator[TimelineView]:
    made = TimelineView(host, TimeRange())
    qtbot.addWidget(made)
    made.resize(1200, 500)
    made.show()
    qtbot.waitExposed(made)
    yield made
    made.close()


def shown(view: TimelineView) -> Variant:
    found = view.session.entries[0].variant
    assert found is not None
    return found


def mark_place(view: TimelineView) -> QPoint:
    row = next(row for row in view.stack.rows if row.kind == RowKind.IN_FLIGHT)
    time = int(budget_marks(shown(view)).time[0])
    return QPoint(round(view.window_of().x_of(time)), row.top + AXIS + 4)


def test_each_showing_of_a_transfer_that_waited_is_marked_once(view: TimelineView) -> None:
    made = shown(view)
    marks = budget_marks(made)
    rows = np.flatnonzero(made.timeline.instruction == made.held[0].instruction)
    assert set(marks.time.tolist()) <= set(made.timeline.start[rows].tolist())
    assert len(set(marks.time.tolist())) == len(marks) >= 1
    assert ((marks.time - marks.since) <= made.held[0].wait).all()


def test_hovering_a_mark_says_what_had_to_wait_and_lights_what_held_it(view: TimelineView) -> None:
    QTest.mouseMove(view.viewport(), mark_place(view))
    what, why = view.overlay.card
    names = sentence(shown(view), shown(view).held[0])
    assert (what, why) == names
    assert "could have started" in what
    assert what.endswith("earlier")
    assert why.startswith("4 of 4 permutes in flight (")
    assert any(
        int(shown(view).timeline.instruction[hit.row]) == shown(view).held[0].instruction for hit in view.overlay.lit
    )
    QTest.mouseMove(view.viewport(), QPoint(400, AXIS + 5))
    assert not view.overlay.lit


def test_a_click_on_a_mark_selects_what_had_to_wait(view: TimelineView, host: FakeHost) -> None:
    QTest.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, mark_place(view))
    assert host.store.state.selection.instructions == (shown(view).held[0].instruction,)


def test_the_inspector_says_the_same(qtbot: QtBot, view: TimelineView, host: FakeHost) -> None:
    pane = Inspector(host)
    qtbot.addWidget(pane)
    QTest.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, mark_place(view))
    marked = view.mark_at(mark_place(view).toPointF())
    assert marked is not None
    assert card_of_mark(view.session, marked)[0] in pane.below.text()
    assert "Budget, in A" in pane.below.text()


def test_marks_are_drawn_in_the_budgets_colour(view: TimelineView) -> None:
    image = view.grab().toImage()
    at, ratio = mark_place(view), image.devicePixelRatio()
    budget = view._host.theme.budget
    near = {image.pixelColor(round((at.x() + dx) * ratio), round((at.y() - 1) * ratio)).name() for dx in (-1, 0, 1)}
    assert budget.lower() in near


def test_the_limit_that_binds_is_said_where_it_is_not_the_lines(view: TimelineView) -> None:
    held = held_variant().held[0]
    assert limit_text(held) == "4 of 4 permutes"
    assert limit_text(replace(held, counted=ALL_KINDS)) == ""


def test_a_small_peak_is_drawn_against_its_budget(view: TimelineView, host: FakeHost) -> None:
    variant_ = host.store.state.entries[0].variant
    assert variant_ is not None
    budget, peak = variant_.schedule.budget.total, variant_.timeline.in_flight.peak
    assert budget is not None
    assert peak > 0
    wide = replace(variant_, schedule=replace(variant_.schedule, budget=Budget(10 * peak)))
    row = next(row for row in view.stack.of(0) if row.kind == RowKind.IN_FLIGHT)
    fill = colour(host.theme.in_flight).rgb()
    heights = []
    for shown in (variant_, wide):
        host.store.settle(entries=(replace(host.store.state.entries[0], variant=shown),))
        image = view.viewport().grab().toImage()
        heights.append(
            [y for y in range(row.top, row.bottom) for x in range(200, 900, 3) if image.pixel(x, y + AXIS) == fill]
        )
    assert min(heights[1]) > min(heights[0])
    assert min(heights[1]) >= row.bottom - row.height // 5


def test_a_name_of_a_line_stands_where_the_curve_is_low() -> None:
    curve = Curve(np.array([0, 600 * US, 900 * US]), np.array([1, 9, 0]))
    window = Window(0, 1000 * US, 0.0, 1000.0)
    left = label_place(window, curve, 200, 3)
    assert 390 - 8 <= left <= 400
    assert label_place(window, curve, 50, 3) == 950
    assert label_place(window, curve, 200, 0) == 800


def test_a_limit_is_said_where_nothing_is_drawn_over_it() -> None:
    window = Window(0, 1000 * US, 0.0, 1000.0)
    label = (900.0, 1000.0)

    def places(*tips: float) -> list[float | None]:
        return limit_places(window, tips, [104] * len(tips), [label])

    assert places(300) == [306]
    assert places(850) == [850 - 6 - 104], "left of the point, where the name of the line is at its right"
    assert places(300, 350) == [300 - 6 - 104, 356]
    assert places(300, 330, 360) == [190, None, 366]
    assert places(60, 950) == [66, None], "behind the name of the line"
    assert limit_places(window, [300], [0], []) == [None]


@given(
    tips=st.lists(st.floats(0, 1000), max_size=8).map(sorted),
    widths=st.lists(st.integers(0, 300), min_size=8, max_size=8),
)
def test_limits_never_come_over_each_other(tips: list[float], widths: list[int]) -> None:
    window = Window(0, 1000 * US, 0.0, 1000.0)
    label = (880.0, 1000.0)
    places = limit_places(window, tips, widths[: len(tips)], [label])
    spans = [label, *((left, left + width) for left, width in zip(places, widths, strict=False) if left is not None)]
    ordered = sorted(spans)
    assert all(first[1] <= second[0] for first, second in pairwise(ordered))


def test_no_limit_begins_left_of_the_lanes() -> None:
    window = Window(0, 1000, 100.0, 1000.0)
    for x in range(200, 260):
        (place, *_) = limit_places(window, [float(x), float(x) + 20], [104, 0], [])
        assert place is None or place >= window.left
