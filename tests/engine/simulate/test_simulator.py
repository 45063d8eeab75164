"""What a simulated program does, on programs small enough that the answer is known."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from engine.chips.budget import Budget
from engine.chips.inference import machine_for
from engine.chips.library import load_chip
from engine.chips.machine import Machine
from engine.cost.program import Program
from engine.hlo.hlo_pb2 import HloModuleProto
from engine.ir.module import Header, Module
from engine.schedule.problem import Order, Schedule
from engine.simulate.simulator import Simulation, SimulationOptions, simulate
from engine.timeline.timeline import Category
from tests.engine.simulate.synthetic import Sketch, assemble

US = 1_000_000


@pytest.fixture(scope="module")
def machine() -> Machine:
    return machine_for(Module(HloModuleProto(name="none"), Header(num_partitions=8)), load_chip("tpu-v4"))


def in_proto_order(program: Program) -> Schedule:
    orders = {k: Order(np.arange(len(graph))) for k, graph in program.graphs.items()}
    return Schedule("as-loaded", Budget(), orders)


def run(program: Program, *, sharing: bool = True, cap: int = 200_000) -> Simulation:
    return simulate(program, in_proto_order(program), SimulationOptions(sharing=sharing, slice_cap=cap))


def whole_link(machine: Machine, link: int, time: int) -> dict[int, int]:
    """The load that fills `link` for `time`."""
    return {link: int(machine.links[link].rate.usable * time * 1e-12)}


def test_a_done_that_comes_early_exposes_the_rest_of_its_transfer(machine: Machine) -> None:
    sketch = Sketch()
    start = sketch.start(10 * US)
    sketch.compute(4 * US)
    sketch.done(start)
    simulation = run(assemble([sketch], machine))
    assert simulation.metrics.makespan == 10 * US
    assert simulation.metrics.exposed == 6 * US
    assert simulation.metrics.compute == 4 * US
    timeline = simulation.timeline
    gap = int(np.flatnonzero(timeline.category == Category.EXPOSED)[0])
    assert (timeline.start[gap], timeline.duration[gap]) == (4 * US, 6 * US)
    assert timeline.waits_for[gap] == 1


def test_a_transfer_covered_by_compute_exposes_nothing(machine: Machine) -> None:
    sketch = Sketch()
    start = sketch.start(10 * US)
    sketch.compute(12 * US)
    sketch.done(start)
    metrics = run(assemble([sketch], machine)).metrics
    assert (metrics.makespan, metrics.exposed, metrics.overlap_fraction) == (12 * US, 0, 1.0)


def test_a_blocking_collective_blocks_compute_and_is_exposed(machine: Machine) -> None:
    sketch = Sketch()
    sketch.collective(5 * US)
    sketch.compute(3 * US)
    simulation = run(assemble([sketch], machine))
    metrics, timeline = simulation.metrics, simulation.timeline
    assert (metrics.makespan, metrics.exposed, metrics.comm, metrics.overlap_fraction) == (8 * US, 5 * US, 5 * US, 0.0)
    assert timeline.category.tolist() == [Category.EXPOSED, Category.ELEMENTWISE, Category.COLLECTIVE]
    assert timeline.waits_for.tolist() == [1, -1, -1]
    assert [lane.name for lane in timeline.lanes] == ["compute", "all-gather"]


def test_two_transfers_on_one_link_take_twice_as_long(machine: Machine) -> None:
    sketch = Sketch()
    load = whole_link(machine, 0, 10 * US)
    starts = [sketch.start(10 * US, loads=load) for _ in range(2)]
    for start in starts:
        sketch.done(start)
    program = assemble([sketch], machine)
    shared, alone = run(program), run(program, sharing=False)
    assert shared.metrics.makespan == pytest.approx(20 * US, rel=1e-5)
    assert alone.metrics.makespan == 10 * US
    assert [lane.name for lane in shared.timeline.lanes] == ["compute", "ICI x+", "ICI x+ ·2"]


def test_transfers_in_opposite_directions_do_not_slow_each_other(machine: Machine) -> None:
    sketch = Sketch()
    starts = [sketch.start(10 * US, loads=whole_link(machine, link, 10 * US)) for link in (0, 1)]
    for start in starts:
        sketch.done(start)
    simulation = run(assemble([sketch], machine))
    assert simulation.metrics.makespan == 10 * US
    assert [lane.name for lane in simulation.timeline.lanes] == ["compute", "ICI x+", "ICI x-"]


def test_a_short_transfer_gives_its_share_back(machine: Machine) -> None:
    sketch = Sketch()
    long = sketch.start(10 * US, loads=whole_link(machine, 0, 10 * US))
    short = sketch.start(2 * US, loads=whole_link(machine, 0, 2 * US))
    sketch.done(short)
    sketch.done(long)
    timeline = run(assemble([sketch], machine)).timeline
    assert sorted(timeline.duration[timeline.lane > 0].tolist()) == pytest.approx([4 * US, 12 * US], rel=1e-4)


def test_a_transfer_that_reads_memory_slows_compute_that_needs_all_of_it(machine: Machine) -> None:
    sketch = Sketch()
    start = sketch.start(10 * US, hbm=int(0.25 * machine.hbm_bandwidth * 10e-6))
    sketch.compute(6 * US, hbm=int(machine.hbm_bandwidth * 6e-6))
    sketch.done(start)
    metrics = run(assemble([sketch], machine)).metrics
    assert metrics.compute == pytest.approx(8 * US, rel=1e-4)
    assert metrics.comm == 10 * US


def test_compute_that_leaves_memory_alone_is_not_slowed(machine: Machine) -> None:
    sketch = Sketch()
    start = sketch.start(10 * US, hbm=int(0.25 * machine.hbm_bandwidth * 10e-6))
    sketch.compute(6 * US, hbm=int(0.5 * machine.hbm_bandwidth * 6e-6))
    sketch.done(start)
    assert run(assemble([sketch], machine)).metrics.compute == 6 * US


def test_a_collective_takes_cores_from_compute_on_a_gpu() -> None:
    gpu = machine_for(Module(HloModuleProto(name="none"), Header(num_partitions=8)), load_chip("h100"))
    sketch = Sketch()
    start = sketch.start(100 * US)
    sketch.compute(10 * US)
    sketch.done(start)
    share = gpu.chip.collective_share
    assert run(assemble([sketch], gpu)).metrics.compute == pytest.approx(10 * US / (1 - share), rel=1e-4)


def loop_program(machine: Machine, trips: int, outer: int = 0) -> Program:
    """A loop whose body exposes 2 of 3 µs, around it a transfer of `outer` µs on the same link."""
    condition, body, entry = Sketch(), Sketch(), Sketch()
    condition.compute(0)
    start = body.start(3 * US, loads=whole_link(machine, 0, 3 * US))
    body.compute(1 * US)
    body.done(start)
    around = entry.start(outer * US, loads=whole_link(machine, 0, outer * US)) if outer else None
    entry.loop(1, 0, trips)
    if around is not None:
        entry.done(around)
    return assemble([condition, body, entry], machine)


def test_a_loop_is_simulated_once_and_counts_every_time(machine: Machine) -> None:
    simulation = run(loop_program(machine, 1_000_000))
    metrics, timeline = simulation.metrics, simulation.timeline
    assert (metrics.makespan, metrics.exposed) == (3_000_000 * US, 2_000_000 * US)
    assert sorted(set(timeline.iteration[timeline.depth > 0].tolist())) == [0, 1, 999_999]
    frame = timeline.category == Category.LOOP
    assert timeline.repeat[frame].tolist() == [1_000_000]
    assert timeline.duration[frame].tolist() == [metrics.makespan]
    last = timeline.start[(timeline.iteration == 999_999) & (timeline.category == Category.ELEMENTWISE)]
    assert last.tolist() == [999_999 * 3 * US]


def test_a_loop_of_billions_of_trips_takes_no_memory(machine: Machine) -> None:
    simulation = run(loop_program(machine, 1 << 33))
    assert simulation.metrics.makespan == (1 << 33) * 3 * US
    assert len(simulation.timeline) < 20


def test_any_iteration_can_be_shown(machine: Machine) -> None:
    program = loop_program(machine, 1_000_000)
    loop = next(iter(program.trips))
    options = SimulationOptions(expand=((loop, 500_000), (loop, 10_000_000), (loop, -1)))
    timeline = simulate(program, in_proto_order(program), options).timeline
    assert sorted(set(timeline.iteration[timeline.depth > 0].tolist())) == [0, 1, 500_000, 999_999]
    shown = timeline.start[(timeline.iteration == 500_000) & (timeline.category == Category.ELEMENTWISE)]
    assert shown.tolist() == [500_000 * 3 * US]


def test_a_transfer_around_a_loop_slows_the_iterations_beside_it(machine: Machine) -> None:
    simulation = run(loop_program(machine, 1_000, outer=30))
    metrics = simulation.metrics
    # The link is full all the while: 30 µs for the outer transfer and 3 µs for each iteration.
    assert metrics.makespan == pytest.approx(3_030 * US, rel=1e-3)
    call = next(iter(simulation.runs[2].calls.values()))
    assert sum(stretch.count for stretch in call.stretches) == 1_001
    assert len(call.stretches) <= 5
    assert call.stretches[0].duration == pytest.approx(6 * US, rel=1e-3)
    assert call.stretches[-2].duration == 3 * US
    assert metrics.transfer_union == metrics.makespan


def test_a_loop_of_no_trips_only_asks_its_condition(machine: Machine) -> None:
    condition, body, entry = Sketch(), Sketch(), Sketch()
    condition.compute(2 * US)
    body.compute(5 * US)
    entry.loop(1, 0, 0)
    assert run(assemble([condition, body, entry], machine)).metrics.makespan == 2 * US


def test_branches_count_by_their_mean(machine: Machine) -> None:
    short, long, entry = Sketch(), Sketch(), Sketch()
    short.compute(2 * US)
    long.compute(6 * US)
    entry.conditional((0, 1))
    simulation = run(assemble([short, long, entry], machine))
    assert simulation.metrics.makespan == 4 * US
    assert simulation.timeline.category.tolist() == [Category.LOOP]


@pytest.mark.parametrize(("weights", "mean"), [((1, 3), 5), ((3, 1), 3), ((0, 1), 6), ((7, 0), 2)])
def test_branches_count_by_their_weights(machine: Machine, weights: tuple[int, int], mean: int) -> None:
    short, long, entry = Sketch(), Sketch(), Sketch()
    short.compute(2 * US)
    long.compute(6 * US)
    entry.conditional((0, 1), weights=weights)
    simulation = run(assemble([short, long, entry], machine))
    assert simulation.metrics.makespan == mean * US
    assert simulation.metrics.lower_bound == mean * US
    assert len(simulation.timeline) == (2 if 0 in weights else 1)


def test_copies_of_the_loops_state_are_slices_of_every_iteration(machine: Machine) -> None:
    condition, body, entry = Sketch(), Sketch(), Sketch()
    condition.compute(0)
    body.compute(5 * US)
    loop = entry.loop(1, 0, 3)
    program = assemble([condition, body, entry], machine, copies={1: 2 * US})
    simulation = run(program)
    timeline = simulation.timeline
    copies = timeline.category == Category.COPY
    assert simulation.metrics.makespan == simulation.metrics.compute == 21 * US
    assert timeline.start[copies].tolist() == [5 * US, 12 * US, 19 * US]
    assert set(timeline.instruction[copies].tolist()) == {int(program.graphs[2].ids[loop])}


def test_in_flight_counts_callees_and_ends_with_the_done(machine: Machine) -> None:
    simulation = run(loop_program(machine, 3, outer=1))
    assert simulation.metrics.max_in_flight == 2
    curve = simulation.timeline.in_flight
    assert curve.peak == 2
    assert (curve.time[0], curve.value[0]) == (0, 2)
    assert curve.value[-1] == 0


def test_memory_counts_parameters_temporaries_and_callees(machine: Machine) -> None:
    callee, entry = Sketch(), Sketch()
    callee.parameter(100)
    callee.compute(US, callee.compute(US, 0, size=10), size=1)
    first = entry.compute(US, entry.parameter(1000), size=100)
    entry.compute(US, entry.call(0, first), size=5)
    simulation = run(assemble([callee, entry], machine))
    # 1000 of the parameter, 100 of what the callee reads (its own to the caller), 11 inside the callee.
    assert simulation.metrics.peak_memory == 1111
    curve = simulation.timeline.memory
    assert curve.time.tolist() == sorted(curve.time.tolist())
    assert curve.peak == 1111


def test_utilisation_is_of_the_peak_for_the_type_that_is_multiplied(machine: Machine) -> None:
    sketch = Sketch()
    operand = sketch.parameter(4)
    sketch.compute(2 * US, operand, flops=int(machine.chip.peak("bf16") * 1e-6), einsum=True)
    simulation = run(assemble([sketch], machine))
    assert simulation.metrics.flops_utilization == pytest.approx(0.5)
    assert simulation.timeline.category.tolist() == [Category.EINSUM]


def test_a_simulation_travels_between_processes(machine: Machine) -> None:
    simulation = run(loop_program(machine, 3, outer=1))
    again = pickle.loads(pickle.dumps(simulation))
    assert again.metrics == simulation.metrics
    assert again.runs[2].totals == simulation.runs[2].totals
