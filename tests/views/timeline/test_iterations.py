"""Iterations of loops are found on timelines, by the loop or by what is in it."""

from __future__ import annotations

from itertools import pairwise

from tests.views.synthetic import TRIPS, variant
from views.timeline.iterations import iteration_span, loop_at

TIMELINE = variant(1).timeline


def test_a_loop_is_found_by_itself_and_by_what_is_in_it() -> None:
    frame = loop_at(TIMELINE, (9000,))
    assert frame is not None
    assert TIMELINE.instruction[frame] == 9000
    assert TIMELINE.repeat[frame] == TRIPS
    assert loop_at(TIMELINE, (12,)) == frame
    assert loop_at(TIMELINE, (2103,)) is None
    assert loop_at(TIMELINE, ()) is None


def test_iterations_that_are_shown_lie_one_after_the_other() -> None:
    frame = loop_at(TIMELINE, (9000,))
    assert frame is not None
    spans = [iteration_span(TIMELINE, frame, number) for number in range(3)]
    assert all(spans)
    for one, following in pairwise(spans):
        assert one is not None
        assert following is not None
        assert one[0] < one[1] <= following[0]
    assert iteration_span(TIMELINE, frame, 3) is None
    assert iteration_span(TIMELINE, frame, TRIPS) is None
