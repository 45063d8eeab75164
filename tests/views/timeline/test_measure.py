from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.simulate.simulator import SimulationOptions, simulate
from engine.timeline.timeline import Category
from tests.engine.simulate.synthetic import draw_program
from tests.engine.simulate.test_properties import MACHINES, UNSHRUNK, any_order, chips, randoms
from tests.views.synthetic import US, variant
from views.timeline.critical import critical_rows
from views.timeline.measure import measure, union


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(1, 20)), max_size=30))
def test_union_covers_the_same_times(pieces: list[tuple[int, int]]) -> None:
    start = np.array([a for a, _ in pieces], np.int64)
    end = np.array([a + n for a, n in pieces], np.int64)
    left, right = union([(start, end)])
    covered = {t for a, n in pieces for t in range(a, a + n)}
    assert {t for a, b in zip(left, right, strict=True) for t in range(a, b)} == covered
    assert np.all(left[1:] > right[:-1])


def test_measuring_everything_of_a_flat_timeline_adds_up() -> None:
    made = variant(loop=False)
    timeline = made.timeline
    found = measure(timeline, 0, timeline.makespan)
    assert found.exposed == made.metrics.exposed
    assert found.compute + found.exposed == timeline.makespan
    assert found.overlap == 0 or found.overlap <= min(found.compute, found.transfer)


def test_measuring_cuts_what_reaches_over_the_ends() -> None:
    timeline = variant(loop=False).timeline
    found = measure(timeline, 10 * US, 20 * US)
    assert found.duration == 10 * US
    assert found.compute + found.exposed == 10 * US
    assert measure(timeline, timeline.makespan, timeline.makespan + US).compute == 0


@given(randoms, chips, st.integers(1, 40), st.integers(4, 9), st.data())
@settings(max_examples=100, phases=UNSHRUNK)
def test_folded_iterations_measure_as_they_would_unfolded(
    random_: random.Random, chip: str, cap: int, trips: int, data: st.DataObject
) -> None:
    program = draw_program(random_, MACHINES[chip])
    program = replace(program, trips=dict.fromkeys(program.trips, trips))
    schedule = any_order(program, random_)
    whole = simulate(program, schedule).timeline
    folded = simulate(program, schedule, SimulationOptions(slice_cap=cap)).timeline
    for _ in range(4):
        start, stop = sorted(data.draw(st.integers(0, whole.makespan)) for _ in range(2))
        assert measure(folded, start, stop) == measure(whole, start, stop)
    assert measure(folded, 0, whole.makespan) == measure(whole, 0, whole.makespan)


def test_overlap_is_what_runs_beside_compute() -> None:
    apart, beside = variant(loop=False).timeline, variant(loop=False, overlap=True).timeline
    assert measure(apart, 0, apart.makespan).overlap == 0
    assert measure(beside, 0, beside.makespan).overlap > 0


def test_the_critical_path_covers_the_makespan() -> None:
    for overlap in (False, True):
        made = variant(2, loop=False, overlap=overlap)
        timeline = made.timeline
        rows = critical_rows(made)
        left, right = union([(timeline.start[rows], timeline.start[rows] + timeline.duration[rows])])
        assert int((right - left).sum()) == timeline.makespan
        assert Category.EXPOSED not in set(timeline.category[rows])
