from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from views.timeline.axis import SHORTEST, TimeRange, Window, tick_text, ticks

TIMES = st.integers(0, 10**15)


@given(TIMES, st.integers(1000, 10**15), st.integers(100, 4000))
def test_pixels_and_times_are_each_others_inverse(start: int, span: int, width: int) -> None:
    window = Window(start, span, 132.0, float(width))
    for part in (0.0, 0.25, 1.0):
        time = start + int(span * part)
        assert abs(window.time_at(window.x_of(time)) - time) <= max(1, span * 1e-12)
    assert window.x(np.array([start, start + span])) == pytest.approx([132.0, 132.0 + width])


def test_small_differences_survive_large_times() -> None:
    window = Window(10**18, 1000, 0.0, 1000.0)
    assert window.x(np.array([10**18, 10**18 + 1])).tolist() == [0.0, 1.0]


@given(TIMES, st.integers(1000, 10**15), st.integers(200, 4000))
def test_ticks_are_apart_and_round(start: int, span: int, width: int) -> None:
    window = Window(start, span, 0.0, float(width))
    step, times = ticks(window, 100.0)
    assert str(step).strip("0") in ("1", "2", "5")
    assert step * width / span >= 99.9 or step == 1
    assert all(start <= time <= start + span and time % step == 0 for time in times)


def test_ticks_say_their_unit() -> None:
    assert tick_text(0, 10**9, 9 * 10**9) == "0 ms"
    assert tick_text(2_500_000_000, 500_000_000, 3_000_000_000) == "2.5 ms"
    assert tick_text(40_000_000, 10_000_000, 90_000_000) == "40 µs"
    assert tick_text(400_000_000, 100_000_000, 1_000_000_000) == "0.4 ms"
    assert tick_text(400_000_000, 100_000_000, 900_000_000) == "400 µs"
    assert tick_text(1_500, 500, 4_000) == "1.5 ns"
    assert tick_text(0, 1, 0) == "0 ps"


def test_zoom_keeps_the_time_under_the_mouse() -> None:
    shown = TimeRange()
    shown.set_limit(1_000_000_000)
    shown.show(200_000_000, 400_000_000)
    shown.zoom(2.0, 300_000_000)
    assert (shown.start, shown.span) == (250_000_000, 200_000_000)


@given(st.lists(st.tuples(st.floats(0.05, 20), st.floats(-2, 2)), max_size=20))
def test_no_movement_leaves_time(moves: list[tuple[float, float]]) -> None:
    shown = TimeRange()
    shown.set_limit(10**10)
    for factor, part in moves:
        shown.zoom(factor, shown.start + shown.span // 3)
        shown.pan(part)
        assert shown.start >= 0
        assert shown.span >= SHORTEST
        assert shown.start + shown.span <= shown.limit + shown.limit // 50


def test_a_view_of_everything_grows_with_the_timeline_and_another_stays() -> None:
    shown = TimeRange()
    shown.set_limit(10**9)
    shown.set_limit(2 * 10**9)
    assert shown.span == 2 * 10**9 + 2 * 10**9 // 50
    shown.show(10**8, 10**8)
    shown.set_limit(3 * 10**9)
    assert (shown.start, shown.span) == (10**8, 10**8)


def test_reveal_moves_only_when_it_must() -> None:
    shown = TimeRange()
    shown.set_limit(10**9)
    shown.show(10**8, 10**8)
    shown.reveal(12 * 10**7, 13 * 10**7)
    assert shown.start == 10**8
    shown.reveal(5 * 10**8, 5 * 10**8 + 10)
    assert shown.start <= 5 * 10**8 <= shown.start + shown.span
