"""The critical path covers the makespan without holes, through what was waited for."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from engine.chips.budget import Budget
from engine.chips.inference import machine_for
from engine.chips.library import load_chip
from engine.cost.program import Program
from engine.hlo.hlo_pb2 import HloModuleProto
from engine.ir.module import Header, Module
from engine.schedule.problem import Order, Schedule
from engine.simulate.simulator import SimulationOptions, simulate
from engine.timeline.critical_path import critical_path
from engine.timeline.timeline import Category, Curve, Lane, LaneKind, Timeline
from tests.engine.simulate.synthetic import Sketch, assemble, draw_program

US = 1_000_000
MACHINE = machine_for(Module(HloModuleProto(name="none"), Header(num_partitions=8)), load_chip("tpu-v4"))
UNSHRUNK = (Phase.explicit, Phase.reuse, Phase.generate)
"""Programs drawn from random numbers do not become simpler by making the numbers smaller."""


def timeline_of(program: Program, cap: int = 200_000) -> Timeline:
    orders = {k: Order(np.arange(len(graph))) for k, graph in program.graphs.items()}
    schedule = Schedule("as-loaded", Budget(), orders)
    return simulate(program, schedule, SimulationOptions(slice_cap=cap)).timeline


@given(st.randoms(use_true_random=False), st.sampled_from([10, 200_000]))
@settings(max_examples=100, phases=UNSHRUNK)
def test_pieces_cover_the_makespan_without_holes(random_: random.Random, cap: int) -> None:
    program = draw_program(random_, MACHINE)
    timeline = timeline_of(program, cap)
    path = critical_path(timeline)
    assert (path.end > path.start).all()
    if len(path):
        assert (path.start[0], path.end[-1]) == (0, timeline.makespan)
        assert (path.start[1:] == path.end[:-1]).all()
    else:
        assert timeline.makespan == 0
    for row, start, end in zip(path.rows.tolist(), path.start.tolist(), path.end.tolist(), strict=True):
        assert row >= 0, "nothing in a simulation is idle"
        assert timeline.start[row] <= start
        assert end <= timeline.start[row] + timeline.duration[row]


def test_the_path_goes_through_the_transfer_that_is_waited_for() -> None:
    sketch = Sketch()
    first = sketch.compute(2 * US)
    start = sketch.start(10 * US, first)
    sketch.compute(4 * US)
    arrived = sketch.done(start)
    last = sketch.compute(3 * US, arrived)
    sketch.compute(5 * US, last)
    sketch.compute(1 * US, first)
    program = assemble([sketch], MACHINE)
    timeline = timeline_of(program)
    path = critical_path(timeline)
    assert timeline.instruction[path.rows].tolist() == [1, 2, 5, 6, 7]
    assert (path.end - path.start).tolist() == [2 * US, 10 * US, 3 * US, 5 * US, US]
    assert (timeline.category[path.rows] == Category.PERMUTE).tolist() == [False, True, False, False, False]


@pytest.mark.parametrize("trips", [3, 1000])
def test_iterations_that_are_not_shown_are_one_piece(trips: int) -> None:
    condition, body, entry = Sketch(), Sketch(), Sketch()
    condition.compute(0)
    body.collective(2 * US)
    entry.loop(1, 0, trips)
    program = assemble([condition, body, entry], MACHINE)
    timeline = timeline_of(program, cap=10)
    path = critical_path(timeline)
    hidden = timeline.category[path.rows] == Category.LOOP
    assert int(hidden.sum()) == (1 if trips > 3 else 0)
    assert int((path.end - path.start)[hidden].sum()) == (trips - 3) * 2 * US


def test_a_measured_transfer_may_begin_within_other_work() -> None:
    empty = Curve(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))
    timeline = Timeline(
        instruction=np.array([1, 3, 3, 2]),
        lane=np.array([0, 0, 0, 1], dtype=np.int16),
        start=np.array([0, 10, 25, 4]),
        duration=np.array([10, 15, 5, 21]),
        category=np.array([Category.EINSUM, Category.EXPOSED, Category.EINSUM, Category.PERMUTE], dtype=np.uint8),
        depth=np.zeros(4, dtype=np.uint8),
        repeat=np.ones(4, dtype=np.int64),
        iteration=np.zeros(4, dtype=np.int64),
        waits_for=np.array([-1, 2, -1, -1]),
        lanes=(Lane("compute", LaneKind.COMPUTE), Lane("ICI x+", LaneKind.TRANSFER)),
        in_flight=empty,
        memory=empty,
        makespan=32,
    )
    path = critical_path(timeline)
    assert path.rows.tolist() == [0, 3, 2, -1]
    assert path.start.tolist() == [0, 4, 25, 30]
    assert path.end.tolist() == [4, 25, 30, 32]
