from __future__ import annotations

import numpy as np
import pytest

from engine.layout.figures import DECISIONS, Decision, Figure, values_of
from engine.layout.outline import Outline
from engine.layout.outlining import outline_of
from engine.session.variant import Variant
from engine.timeline.statistics import times_by_instruction
from engine.timeline.timeline import Category
from tests.views.synthetic import variant


@pytest.fixture(scope="module")
def made() -> Variant:
    return variant(1)


@pytest.fixture(scope="module")
def outline(made: Variant) -> Outline:
    return outline_of(made.program.module)


def item(outline: Outline, instruction: int) -> int:
    found = outline.item_of(instruction)
    assert found is not None
    return found


def test_times_are_those_of_a_whole_execution(made: Variant, outline: Outline) -> None:
    values = values_of(outline, made, Figure.TIME)
    times = times_by_instruction(made.timeline)
    for instruction in (2003, 2001, 12):
        expected = times[instruction].compute + times[instruction].transfer
        assert values[item(outline, instruction)] == pytest.approx(expected)


def test_groups_have_the_sum_of_what_lies_in_them(made: Variant, outline: Outline) -> None:
    for figure in (Figure.TIME, Figure.EXPOSED, Figure.BYTES):
        values = values_of(outline, made, figure)
        leaves = np.where(outline.instruction >= 0, values, np.nan)
        layer = next(i for i in range(len(outline)) if outline.names[i] == "layer_2")
        inside = leaves[layer + 1 : outline.end[layer]]
        assert values[layer] == pytest.approx(np.nansum(inside))


def test_exposed_time_is_on_the_transfer_that_is_waited_for(made: Variant, outline: Outline) -> None:
    values = values_of(outline, made, Figure.EXPOSED)
    waits = made.timeline.waits_for == 2001
    assert values[item(outline, 2001)] == made.timeline.duration[waits].sum()
    assert np.isnan(values[item(outline, 2003)])


def test_slack_is_the_time_to_the_first_user(made: Variant, outline: Outline) -> None:
    timeline = made.timeline
    runs = timeline.category != Category.EXPOSED

    def span(instruction: int) -> tuple[int, int]:
        row = int(np.flatnonzero((timeline.instruction == instruction) & runs)[0])
        return int(timeline.start[row]), int(timeline.start[row] + timeline.duration[row])

    values = values_of(outline, made, Figure.SLACK)
    gather, dot = 2001, 2003  # the done between them takes no time of its own
    assert values[item(outline, gather)] == span(dot)[0] - span(gather)[1]
    assert np.isnan(values[item(outline, 9001)])  # nothing waits for the result


def test_decisions_reach_the_einsums_they_are_about(made: Variant, outline: Outline) -> None:
    values = values_of(outline, made, Figure.DECISION)
    chosen = next(c for c in made.candidates if c.chosen)
    left = next(c for c in made.candidates if not c.chosen)
    assert DECISIONS[int(values[item(outline, chosen.einsums[0])])] == Decision.DECOMPOSED
    assert DECISIONS[int(values[item(outline, left.collective)])] == Decision.LEFT
    assert np.isnan(values[item(outline, 9001)])


def test_memory_without_buffers_is_nothing(made: Variant, outline: Outline) -> None:
    values = values_of(outline, made, Figure.MEMORY)
    assert np.nansum(values) == 0
