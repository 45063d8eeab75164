from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.timeline.timeline import Category
from tests.views.synthetic import variant, wide_timeline
from views.timeline.bands import Band, bands_of


def band(count: int, seed: int) -> tuple[Band, int]:
    timeline = wide_timeline(max(4, count), seed, lanes=1)
    return bands_of(timeline)[0].slices, timeline.makespan


@given(st.integers(4, 400), st.integers(0, 20), st.floats(0, 1), st.floats(0, 1), st.integers(1, 64))
def test_visible_keeps_the_longest_of_every_column(count: int, seed: int, a: float, b: float, columns: int) -> None:
    subject, end = band(count, seed)
    start, stop = sorted((int(a * end), int(b * end) + 1))
    chosen = subject.visible(start, stop, columns)
    inside = np.flatnonzero((subject.end > start) & (subject.start < stop))
    assert set(chosen.tolist()) <= set(inside.tolist())
    assert np.all(np.diff(chosen) > 0)
    if not len(inside):
        assert not len(chosen)
        return
    assert len(chosen) <= max(columns, 1) or len(inside) <= columns
    # Nothing is lost: each slice left out has a longer one that was kept in its column.
    width = max(1, (stop - start) // columns)
    for missing in set(inside.tolist()) - set(chosen.tolist()):
        near = np.abs(subject.start[chosen] - max(subject.start[missing], start)) <= 2 * width
        near |= (subject.start[chosen] <= start) & (subject.start[missing] <= start + width)
        duration = subject.end - subject.start
        assert np.any(duration[chosen][near] >= duration[missing])


@given(st.integers(4, 300), st.integers(0, 20), st.floats(0, 1))
def test_at_finds_the_slice_that_covers_a_time(count: int, seed: int, part: float) -> None:
    subject, end = band(count, seed)
    time = int(part * end)
    covers = np.flatnonzero((subject.start <= time) & (subject.end > time))
    found = subject.at(time)
    assert (found is None) == (len(covers) == 0)
    if found is not None:
        assert found == int(subject.slices[covers[0]])


def test_at_with_slack_finds_what_is_drawn_a_pixel_wide() -> None:
    subject, _ = band(100, 1)
    row = 17
    before = int(subject.start[row]) - 3
    if int(subject.end[row - 1]) <= before:
        assert subject.at(before) is None
    assert subject.at(before, slack=10) is not None


def test_lanes_split_into_slices_gaps_and_frames() -> None:
    made = variant()
    compute = bands_of(made.timeline)[0]
    category = made.timeline.category
    assert set(category[compute.gaps.slices]) == {Category.EXPOSED}
    assert Category.LOOP not in set(category[compute.slices.slices])
    assert len(compute.frames) == 1
    assert made.timeline.repeat[compute.frames[0].slices[0]] == 126


def test_stepping_stops_at_the_ends() -> None:
    subject, _ = band(50, 2)
    first, last = int(subject.slices[0]), int(subject.slices[-1])
    assert subject.next_to(first, -1) is None
    assert subject.next_to(last, 1) is None
    assert subject.next_to(first, 1) == int(subject.slices[1])
