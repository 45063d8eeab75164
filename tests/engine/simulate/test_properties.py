"""What must hold for every program and every order."""

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
from engine.ir.module import Header, Module
from engine.schedule.problem import Order, Schedule
from engine.simulate.bounds import bounds
from engine.simulate.run import ComputationRun
from engine.simulate.simulator import Simulation, SimulationOptions, simulate
from engine.timeline.timeline import Category, LaneKind, Timeline
from tests.engine.simulate.synthetic import Sketch, assemble, draw_program

_EMPTY = Module(HloModuleProto(name="none"), Header(num_partitions=8))
MACHINES = {name: machine_for(_EMPTY, load_chip(name)) for name in ("tpu-v4", "h100")}
chips = st.sampled_from(sorted(MACHINES))
randoms = st.randoms(use_true_random=False)
UNSHRUNK = (Phase.explicit, Phase.reuse, Phase.generate)
"""Programs drawn from random numbers do not become simpler by making the numbers smaller."""
NO_SHARING = SimulationOptions(sharing=False)


def any_order(program: Program, random_: random.Random) -> Schedule:
    """A topological order of every computation, any of them."""
    orders: dict[int, Order] = {}
    for computation, graph in program.graphs.items():
        left = [len(graph.predecessors.of(node)) for node in range(len(graph))]
        ready = [node for node, count in enumerate(left) if not count]
        order: list[int] = []
        while ready:
            node = ready.pop(random_.randrange(len(ready)))
            order.append(node)
            for after in graph.successors.of(node).tolist():
                left[after] -= 1
                if not left[after]:
                    ready.append(after)
        orders[computation] = Order(np.array(order, dtype=np.int64))
    return Schedule("any", Budget(), orders)


@given(randoms, chips)
@settings(max_examples=150, phases=UNSHRUNK)
def test_no_order_is_faster_than_the_bound(random_: random.Random, chip: str) -> None:
    program = draw_program(random_, MACHINES[chip])
    for options in (SimulationOptions(), NO_SHARING):
        simulation = simulate(program, any_order(program, random_), options)
        assert simulation.metrics.makespan >= bounds(program, sharing=options.sharing).best


@given(randoms, chips)
@settings(max_examples=150, phases=UNSHRUNK)
def test_sharing_is_never_faster_than_not_sharing(random_: random.Random, chip: str) -> None:
    program = draw_program(random_, MACHINES[chip])
    schedule = any_order(program, random_)
    shared = simulate(program, schedule)
    alone = simulate(program, schedule, NO_SHARING)
    assert shared.metrics.makespan >= alone.metrics.makespan
    assert shared.metrics.comm >= alone.metrics.comm


@given(randoms, chips)
@settings(max_examples=100, phases=UNSHRUNK)
def test_time_is_conserved(random_: random.Random, chip: str) -> None:
    program = draw_program(random_, MACHINES[chip])
    simulation = simulate(program, any_order(program, random_))
    metrics = simulation.metrics
    assert metrics.compute + metrics.exposed == metrics.makespan
    assert metrics.exposed <= metrics.transfer_union <= metrics.comm
    assert metrics.transfer_union <= metrics.makespan
    for run in simulation.runs.values():
        assert run.totals.compute + run.totals.exposed == run.makespan


@given(randoms, chips)
@settings(max_examples=100, phases=UNSHRUNK)
def test_the_timeline_shows_what_the_metrics_say(random_: random.Random, chip: str) -> None:
    program = draw_program(random_, MACHINES[chip])
    # Branches of conditionals are shown as a frame only, so leave them out.
    for graph in program.graphs.values():
        if "conditional" in graph.opcodes:
            return
    simulation = simulate(program, any_order(program, random_))
    timeline, metrics = simulation.timeline, simulation.metrics
    exposed = timeline.category == Category.EXPOSED
    transfer = np.array([lane.kind == LaneKind.TRANSFER for lane in timeline.lanes])[timeline.lane]
    compute = ~exposed & ~transfer & (timeline.category != Category.LOOP)
    assert int(timeline.duration[exposed].sum()) == metrics.exposed
    assert int(timeline.duration[compute].sum()) == metrics.compute
    assert int(timeline.duration[transfer].sum()) == metrics.comm
    assert timeline.in_flight.peak == metrics.max_in_flight
    assert timeline.memory.peak == metrics.peak_memory
    check_lanes(timeline)


def check_lanes(timeline: Timeline) -> None:
    """Slices are sorted, inside the makespan, and do not overlap but for frames that hold others whole."""
    assert (np.lexsort((-timeline.duration, timeline.start, timeline.lane)) == np.arange(len(timeline))).all()
    end = timeline.start + timeline.duration
    assert (timeline.duration > 0).all()
    assert len(timeline) == 0 or int(end.max()) <= timeline.makespan
    for lane in range(len(timeline.lanes)):
        own = np.flatnonzero((timeline.lane == lane) & (timeline.category != Category.LOOP))
        assert (timeline.start[own][1:] >= end[own][:-1]).all()


@given(randoms, chips, st.integers(0, 60))
@settings(max_examples=100, phases=UNSHRUNK)
def test_folding_loops_changes_no_times(random_: random.Random, chip: str, cap: int) -> None:
    program = draw_program(random_, MACHINES[chip])
    schedule = any_order(program, random_)
    whole = simulate(program, schedule)
    folded = simulate(program, schedule, SimulationOptions(slice_cap=cap))
    assert folded.metrics == whole.metrics
    assert len(folded.timeline) <= len(whole.timeline)
    assert rows_of(folded.timeline) <= rows_of(whole.timeline)
    assert folded.timeline.memory.peak == whole.timeline.memory.peak
    assert folded.timeline.in_flight.peak == whole.timeline.in_flight.peak


def rows_of(timeline: Timeline) -> set[tuple[int, ...]]:
    columns = (timeline.instruction, timeline.start, timeline.duration, timeline.category, timeline.iteration)
    return set(zip(*(column.tolist() for column in columns), strict=True))


@given(randoms, chips)
@settings(max_examples=50, phases=UNSHRUNK)
def test_the_same_again_gives_the_same(random_: random.Random, chip: str) -> None:
    program = draw_program(random_, MACHINES[chip])
    schedule = any_order(program, random_)
    one, two = simulate(program, schedule), simulate(program, schedule)
    assert same(one, two)


def same(one: Simulation, two: Simulation) -> bool:
    return one.metrics == two.metrics and rows_of(one.timeline) == rows_of(two.timeline)


@given(st.permutations(range(6)), st.permutations(range(6)))
@settings(max_examples=30)
def test_the_order_of_independent_equals_does_not_matter(starts: list[int], dones: list[int]) -> None:
    machine = MACHINES["tpu-v4"]
    sketch = Sketch()
    load = {0: int(machine.links[0].rate.usable * 10e-6)}
    begun = [sketch.start(10_000_000, loads=load) for _ in range(6)]
    sketch.compute(25_000_000)
    over = [sketch.done(start) for start in begun]
    program = assemble([sketch], machine)
    order = [*(begun[k] for k in starts), 6, *(over[k] for k in dones)]
    schedule = Schedule("any", Budget(), {0: Order(np.array(order, dtype=np.int64))})
    usual = Schedule("any", Budget(), {0: Order(np.arange(13, dtype=np.int64))})
    assert simulate(program, schedule).metrics == simulate(program, usual).metrics


@pytest.mark.parametrize("trips", [0, 1, 2, 7, 1000])
def test_a_loop_takes_its_trips_times_its_body(trips: int) -> None:
    random_ = random.Random(trips)
    for _ in range(20):
        program = draw_program(random_, MACHINES["tpu-v4"])
        entry = program.graphs[program.module.proto.entry_computation_id]
        loops = [node for node, opcode in enumerate(entry.opcodes) if opcode == "while"]
        program = replace(program, trips=dict.fromkeys(program.trips, trips))
        run = entry_run(simulate(program, any_order(program, random_), NO_SHARING))
        for node in loops:
            body, condition = (run.calls[node].totals, run.plan.calls[node].last[0])
            copies = program.copies[int(run.graph.called.of(node)[0])]
            assert body.makespan == trips * (one_iteration(run, node) + copies) + condition.makespan


def entry_run(simulation: Simulation) -> ComputationRun:
    return simulation.runs[max(simulation.runs)]


def one_iteration(run: ComputationRun, node: int) -> int:
    """Makespan of a loop's condition and body when nothing of its caller is under way."""
    return sum(callee.makespan for callee in run.plan.calls[node].branches[0][1])
