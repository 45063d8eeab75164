"""Axes of the small charts: at every size there are labels, they are round, and none lies over another."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtGui import QFontMetrics
from pytestqt.qtbot import QtBot

from engine.quantities import bytes_text, time_text
from tests.views.fake_host import host_of
from tests.views.synthetic import variant
from views.budget.budget import BudgetPane
from views.chart import Chart, Point, Series
from views.steps import binary_steps, round_steps, some_steps, whole_steps
from views.theme import axis_font


def memory_chart(qtbot: QtBot, width: int, height: int) -> Chart:
    chart = Chart(
        host_of(variant(1)),
        "makespan",
        "peak memory",
        lambda x: time_text(round(x)),
        lambda y: bytes_text(round(y)),
        from_zero=False,
        y_binary=True,
    )
    qtbot.addWidget(chart)
    chart.resize(width, height)
    points = tuple(Point(8_740_000_000 + n * 400_000_000, 360 * 2**20 + n * 37 * 2**20) for n in range(9))
    names = ("Pareto front", "tried", "variants")
    chart.set_series([Series(name, points, "#000000") for name in names])
    return chart


@pytest.mark.parametrize(("width", "height"), [(224, 128), (245, 160), (700, 160), (700, 900)])
def test_both_axes_are_labelled_at_every_size_and_labels_stand_apart(qtbot: QtBot, width: int, height: int) -> None:
    chart = memory_chart(qtbot, width, height)
    metrics = QFontMetrics(axis_font())
    bounds = chart._bounds()
    assert bounds is not None
    area = chart._area()
    places = [(x, chart._place(Point(x, bounds[2]), bounds).x()) for x in chart.x_ticks()]
    assert len(places) >= 2
    for (left, one), (right, two) in pairwise(places):
        half = (
            metrics.horizontalAdvance(time_text(round(left))) + metrics.horizontalAdvance(time_text(round(right)))
        ) / 2
        assert two - one > half + 2
    heights = [chart._place(Point(bounds[0], y), bounds).y() for y in chart.y_ticks()]
    assert len(heights) >= 2
    assert all(a - b >= metrics.height() for a, b in pairwise(heights))
    assert all(metrics.horizontalAdvance(bytes_text(round(y))) < area.left() for y in chart.y_ticks())
    assert area.top() > metrics.height()
    assert area.bottom() + 2 * metrics.height() <= chart.height() + 2


@pytest.mark.parametrize("width", [60, 90, 120, 224, 245, 700])
def test_no_label_of_an_axis_is_cut_or_touches_another(qtbot: QtBot, width: int) -> None:
    chart = memory_chart(qtbot, width, 200)
    chart.setMinimumSize(0, 0)
    chart.resize(width, 200)
    chart.set_series([Series("tried", (Point(31_000_000, 2**20), Point(32_000_000, 1023 * 2**20)), "#000000")])
    places = [place for place, _ in chart.x_labels()]
    assert places
    assert all(place.left() >= 0 and place.right() <= width for place in places)
    assert all(right.left() - left.right() >= 4 for left, right in pairwise(places))
    metrics = QFontMetrics(axis_font())
    assert all(metrics.horizontalAdvance(bytes_text(round(y))) < chart._area().left() - 8 for y in chart.y_ticks())


def test_memory_is_labelled_in_whole_binary_units(qtbot: QtBot) -> None:
    for value in memory_chart(qtbot, 400, 200).y_ticks():
        assert value % 2**20 == 0


def test_a_count_has_no_values_between() -> None:
    assert round_steps(0.25, 16.75, 20) == [float(n) for n in range(1, 17)]
    for count in (20, 40, 500):
        assert whole_steps(0.25, 16.75, count) == [float(n) for n in range(1, 17)]
    assert whole_steps(0.25, 16.75, 8) == [5.0, 10.0, 15.0]
    assert whole_steps(2.85, 3.15, 40) == [3.0]


@pytest.mark.parametrize("width", [300, 800, 1780, 4000])
def test_each_label_of_a_budget_stands_under_its_points(qtbot: QtBot, width: int) -> None:
    chart = BudgetPane(host_of(variant(1))).chart
    qtbot.addWidget(chart)
    chart.resize(width, 460)
    chart.set_series([Series("makespan", tuple(Point(n, 1_000_000 * n) for n in range(1, 17)), "#000000")])
    ticks = chart.x_ticks()
    assert len(ticks) >= 2
    assert all(tick == round(tick) for tick in ticks)
    assert len({f"{tick:.0f}" for tick in ticks}) == len(ticks)
    if width >= 1780:
        assert ticks == [float(n) for n in range(1, 17)]


@given(st.integers(0, 10**13), st.integers(100, 10**13), st.integers(2, 40))
def test_steps_lie_between_the_bounds_and_are_about_as_many_as_asked_for(low: int, span: int, count: int) -> None:
    for steps in (round_steps, binary_steps):
        found = some_steps(steps, low, low + span, count)
        assert all(low <= value <= low + span for value in map(round, found))
        assert len(found) <= max(count, 6) + 2


@pytest.mark.parametrize("width", [245, 700])
def test_labels_of_points_and_the_name_of_the_axis_stand_apart(qtbot: QtBot, width: int) -> None:
    chart = memory_chart(qtbot, width, 200)
    near = tuple(
        Point(8_740_000_000 + x, 360 * 2**20 + y * 2**20, label=label)
        for x, y, label in ((0, 0, "A"), (0, 0, "C"), (9_000_000, 1, "B"), (700_000_000, 90, "D"))
    )
    chart.set_series([Series("variants", near, "#000000")])
    labels = chart._labels()
    assert {point.label for point in labels} == set("ABCD")
    places = list(labels.values())
    apart = [place.adjusted(-2, 0, 2, 0) for place in places]
    assert not any(one.intersects(two) for n, one in enumerate(apart) for two in apart[n + 1 :])
    height = QFontMetrics(axis_font()).height()
    caption = 12.0 if chart._caption_fits() else 32.0
    assert chart._area().top() - height / 2 >= caption + height / 2 - 2
    assert all(place.top() >= chart._area().top() for place in places)


def test_a_label_keeps_clear_of_points_without_one(qtbot: QtBot) -> None:
    chart = memory_chart(qtbot, 400, 200)
    shown = Point(9_000_000_000, 360 * 2**20, label="A")
    far = (Point(8_000_000_000, 300 * 2**20), Point(10_000_000_000, 420 * 2**20))
    chart.set_series([Series("variants", (shown,), "#000000"), Series("tried", far, "#808080", line=False)])
    beside = chart._labels()[shown]
    bounds = chart._bounds()
    assert bounds is not None
    area, (x0, x1, y0, y1) = chart._area(), bounds
    there = Point(
        x0 + (beside.center().x() - area.left()) / area.width() * (x1 - x0),
        y0 + (area.bottom() - beside.center().y()) / area.height() * (y1 - y0),
    )
    chart.set_series([Series("variants", (shown,), "#000000"), Series("tried", (*far, there), "#808080", line=False)])
    moved = chart._labels()[shown]
    assert not moved.intersects(beside)
    assert not moved.contains(chart._place(there, bounds))
