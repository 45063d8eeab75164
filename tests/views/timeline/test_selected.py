"""What is selected is outlined, and stays readable where it is thousands of slices."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QSize
from pytestqt.qtbot import QtBot

from engine.session import edits
from engine.timeline.timeline import Timeline
from tests.views.fake_host import host_of
from tests.views.synthetic import around, module_of, wide_timeline
from views.theme import LIGHT
from views.timeline.axis import TimeRange
from views.timeline.paint_selected import MOST, merged
from views.timeline.view import TimelineView


def spans(*slices: tuple[float, float]) -> list[tuple[float, float]]:
    left, right = merged(*np.array(slices, np.float64).reshape(-1, 2).T)
    return list(zip(left.tolist(), right.tolist(), strict=True))


def test_few_wide_slices_are_outlined_each_and_narrow_ones_that_are_near_together() -> None:
    assert spans((0, 20), (20, 40), (41, 60)) == [(0, 20), (20, 40), (41, 60)]
    assert spans((0, 1), (3, 4), (7, 8), (30, 31)) == [(0, 8), (30, 31)]
    assert spans((0, 20), (21, 22), (23, 24), (25, 45)) == [(0, 20), (21, 24), (25, 45)]
    assert spans() == []


def test_many_wide_slices_are_outlined_together() -> None:
    each = [(10.0 * n, 10.0 * n + 8) for n in range(MOST + 1)]
    assert spans(*each) == [(0, each[-1][1])]
    assert spans(*each[:MOST]) == each[:MOST]


@given(st.lists(st.tuples(st.floats(0, 1000), st.floats(0, 30)), max_size=200))
def test_every_slice_is_in_a_span(drawn: list[tuple[float, float]]) -> None:
    slices = sorted((at, at + width) for at, width in drawn)
    found = spans(*slices)
    for left, right in slices:
        assert any(begin <= left and right <= end for begin, end in found)
    if slices:
        assert (found[0][0], max(end for _, end in found)) == (slices[0][0], max(right for _, right in slices))


def of_one(timeline: Timeline) -> Timeline:
    """All slices are of one instruction."""
    timeline.instruction[:] = 2003
    return timeline


@pytest.mark.parametrize("count", [40, 4_000, 80_000])
def test_the_colours_of_what_is_selected_stay_visible(qtbot: QtBot, count: int) -> None:
    host = host_of(around(module_of(2), of_one(wide_timeline(count)), 0))
    view = TimelineView(host, TimeRange())
    qtbot.addWidget(view)
    view.resize(QSize(1000, 300))
    view.show()
    qtbot.waitExposed(view)

    def dark() -> int:
        image = view.grab().toImage()
        text = LIGHT.text.lower()
        return sum(
            image.pixelColor(x, y).name() == text for x in range(140, image.width(), 3) for y in range(60, 120, 2)
        )

    before = dark()
    host.store.become("Select", edits.selected(host.store.state, "A", (2003,)))
    drawn = dark() - before
    assert 20 < drawn < 287 * 30 / 3
    view.close()
