"""Times by instruction add up to the metrics, whatever the timeline shows, and differences to the difference."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from engine.chips.budget import Budget
from engine.chips.inference import machine_for
from engine.chips.library import load_chip
from engine.cost.program import Program
from engine.hlo.hlo_pb2 import HloModuleProto
from engine.ir.graph import Ints
from engine.ir.module import Header, Module
from engine.schedule.problem import Order, Schedule
from engine.simulate.simulator import Simulation, SimulationOptions, simulate
from engine.timeline.difference import differences
from engine.timeline.statistics import Times, executions, times_by_instruction
from tests.engine.simulate.synthetic import Sketch, assemble, draw_program

US = 1_000_000
MACHINE = machine_for(Module(HloModuleProto(name="none"), Header(num_partitions=8)), load_chip("tpu-v4"))
UNSHRUNK = (Phase.explicit, Phase.reuse, Phase.generate)
"""Programs drawn from random numbers do not become simpler by making the numbers smaller."""


def run(program: Program, cap: int = 200_000) -> Simulation:
    orders = {k: Order(np.arange(len(graph))) for k, graph in program.graphs.items()}
    schedule = Schedule("as-loaded", Budget(), orders)
    return simulate(program, schedule, SimulationOptions(sharing=False, slice_cap=cap))


@given(st.randoms(use_true_random=False), st.sampled_from([10, 200_000]))
@settings(max_examples=100, phases=UNSHRUNK)
def test_times_add_up_to_the_metrics(random_: random.Random, cap: int) -> None:
    program = draw_program(random_, MACHINE)
    if any("conditional" in graph.opcodes for graph in program.graphs.values()):
        return  # Their branches are shown as a frame only.
    simulation = run(program, cap)
    times = times_by_instruction(simulation.timeline).values()
    metrics = simulation.metrics
    # Without sharing every iteration is alike, so that those shown stand for the others exactly.
    assert abs(sum(t.compute for t in times) - metrics.compute) <= len(times)
    assert abs(sum(t.transfer for t in times) - metrics.comm) <= len(times)
    assert abs(sum(t.exposed for t in times) - metrics.exposed) <= len(times)


def nested(outer: int, inner: int) -> Program:
    condition, body, middle, entry = Sketch(), Sketch(), Sketch(), Sketch()
    condition.compute(1 * US)
    body.compute(2 * US)
    middle.loop(1, 0, inner)
    entry.loop(2, 0, outer)
    return assemble([condition, body, middle, entry], MACHINE)


def test_slices_of_folded_loops_stand_for_all_iterations() -> None:
    simulation = run(nested(10, 20), cap=20)
    timeline = simulation.timeline
    # outer: 10 bodies and 11 conditions; inner, in each: 20 bodies and 21 conditions
    assert len(timeline) < 100
    assert times_by_instruction(timeline) == {
        1: Times(compute=(11 + 10 * 21) * US),
        2: Times(compute=10 * 20 * 2 * US),
    }
    assert executions(timeline).max() > 1


def test_long_unfolded_loops_are_counted_without_sorting_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sorting a row for each slice took the window's inspector a second for 100,000 slices."""
    timeline = run(nested(200, 20)).timeline
    assert len(timeline) > 8_000
    seen: set[int] = set()
    unique = np.unique

    def counted(values: Ints) -> Ints:
        seen.add(values.ndim)
        found: Ints = unique(values)
        return found

    monkeypatch.setattr(np, "unique", counted)
    assert set(executions(timeline).tolist()) == {1.0}
    assert seen == {1}


def test_nothing_folded_stands_for_itself() -> None:
    assert set(executions(run(nested(3, 2)).timeline).tolist()) == {1.0}


def test_waiting_counts_for_the_transfer_that_is_waited_for() -> None:
    sketch = Sketch()
    start = sketch.start(10 * US)
    sketch.compute(4 * US)
    sketch.done(start)
    times = times_by_instruction(run(assemble([sketch], MACHINE)).timeline)
    assert times == {1: Times(transfer=10 * US, exposed=6 * US), 2: Times(compute=4 * US)}


def test_differences_follow_provenance() -> None:
    def program(*times: int) -> Program:
        sketch = Sketch()
        for time in times:
            sketch.compute(time)
        return assemble([sketch], MACHINE)

    base, other = run(program(10, 20)), run(program(10, 5, 6))
    original = program(10, 20).module
    # Instructions 2 and 3 of the other module were made of instructions 1 and 2 of the first, the third of 2 alone.
    changed = replace(program(10, 5, 6).module, origins={2: (1, 2), 3: (2,)})
    found = differences(base.timeline, original.origins_of, other.timeline, changed.origins_of)
    assert [(d.key, d.base.compute, d.other.compute, d.stream) for d in found] == [(2, 20, 9, -11), (1, 10, 12, 2)]
    total = other.metrics.makespan - base.metrics.makespan
    assert sum(d.stream for d in found) == total


def test_equal_timelines_do_not_differ() -> None:
    simulation = run(nested(2, 2))
    module = nested(2, 2).module
    assert differences(simulation.timeline, module.origins_of, simulation.timeline, module.origins_of) == ()
