"""Simulates a compiler's predicted schedule with the compiler's own costs, to show it as a variant and to check ours.

The compiler counts a loop as its trips times its body without the waits in it, so its totals of whatever runs loops
leave those waits out. Ours are given both ways: added up like the compiler's, and as long as it takes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from engine.chips.budget import Kind
from engine.chips.machine import Machine
from engine.control import QUIET, Control
from engine.cost.costs import Costs, Origin
from engine.cost.program import Program
from engine.cost.programs import prepare
from engine.hlo.predicted import PredictedOrder, PredictedSchedule
from engine.ir.graph import Graph, Ints
from engine.ir.graphs import SEQUENTIAL
from engine.ir.module import Module
from engine.ir.shapes import byte_count
from engine.schedule.problem import Order, Schedule
from engine.simulate.simulator import Simulation, SimulationOptions, simulate


class ReplayedTotal(NamedTuple):
    """One computation that the compiler scheduled. Times in picoseconds."""

    computation: str
    runs_loops: bool
    compiler: int
    """The compiler's total."""
    ours: int
    """By our simulation, loops added up as the compiler does."""
    whole: int
    """By our simulation, waits inside loops included; the same as `ours` where there are no loops."""


class LoopRow(NamedTuple):
    """A loop as a row of the computation that runs it."""

    loop: str
    trips: int
    compiler: int
    """What the compiler counts for it, picoseconds."""
    ours: int
    """The same by our simulation: trips × (body - waits in it)."""
    whole: int
    """Trips × body: what it takes."""


@dataclass(frozen=True, eq=False)
class Replay:
    """A compiler's schedule as we simulate it, and as the compiler adds it up."""

    program: Program
    schedule: Schedule
    simulation: Simulation
    totals: tuple[ReplayedTotal, ...]
    loops: tuple[LoopRow, ...]


def replay(predicted: PredictedSchedule, machine: Machine, control: Control = QUIET) -> Replay:
    """Simulate `predicted` on `machine`: compute as the compiler has it, transfers as fast as it thinks, no sharing."""
    program = price(predicted, machine)
    orders = {id_: Order(_order(graph)) for id_, graph in program.graphs.items()}
    schedule = Schedule("compiler", machine.chip.default_budget, orders)
    simulation = simulate(program, schedule, SimulationOptions(sharing=False), control)
    timeline = replace(simulation.timeline, source=Origin.COMPILER)
    return Replay(
        program,
        schedule,
        replace(simulation, timeline=timeline),
        tuple(_total(predicted, order, program, simulation) for order in predicted.orders),
        tuple(row for order in predicted.orders for _, row in _loops(predicted, order, program, simulation)),
    )


_CYCLES_PER_BYTE = {"tpu-v4": 0.0234375, "tpu-v5e": 0.032155, "tpu-v5p": 0.018746, "tpu-v6e": 0.018746}
"""Latency of a permute in the TPU compiler's predictions, whatever its number of hops: sampled, exactly linear from
64 KiB to 64 MiB."""


def price(predicted: PredictedSchedule, machine: Machine) -> Program:
    """The program with the compiler's costs: of instructions that it scheduled the length of their rows.

    A transfer takes its bytes at the compiler's rate; one that gathers over a group of N moves a shard N/2 hops, both
    ways round the ring. Instructions that the compiler printed no time for keep the model's costs.
    """
    program = prepare(predicted.module, machine)
    costs = dict(program.costs)
    for order in predicted.orders:
        costs[order.computation] = _compiler_costs(predicted, order, program, machine)
    return replace(program, costs=costs)


def _compiler_costs(predicted: PredictedSchedule, order: PredictedOrder, program: Program, machine: Machine) -> Costs:
    graph, costs = program.graphs[order.computation], program.costs[order.computation]
    nodes = _nodes(graph, order.instructions)
    compute = np.zeros(len(graph), dtype=np.int64)
    compute[nodes] = predicted.picoseconds(order.end) - predicted.picoseconds(order.start)
    for node in np.flatnonzero(np.diff(graph.called.starts)).tolist():
        if graph.opcodes[node] in SEQUENTIAL:
            compute[node] = 0
    transfer = np.zeros(len(graph), dtype=np.int64)
    rate = _CYCLES_PER_BYTE.get(machine.chip.name, machine.chip.units.clock / machine.links[0].rate.usable)
    starts = np.flatnonzero(graph.partner > np.arange(len(graph)))
    cycles = [rate * _travelled(predicted.module, int(graph.ids[node]), costs.kind[node]) for node in starts.tolist()]
    transfer[starts] = predicted.picoseconds(np.array(cycles))
    origin = costs.origin.copy()
    origin[nodes] = Origin.COMPILER
    for column in (compute, transfer, origin):
        column.flags.writeable = False
    return replace(costs, compute=compute, transfer=transfer, origin=origin)


def _travelled(module: Module, instruction: int, kind: int) -> float:
    """Bytes of a start times the hops that they count for."""
    start = module.instructions[instruction]
    size = sum(byte_count(module.instructions[operand].shape) for operand in start.operand_ids)
    if kind != Kind.ALL_GATHER:
        return size
    return byte_count(start.shape.tuple_shapes[1]) / 2


def _order(graph: Graph) -> Ints:
    return np.arange(len(graph), dtype=np.int64) if graph.order is None else graph.order


def _nodes(graph: Graph, instructions: Ints) -> Ints:
    """Node numbers of instructions by id."""
    by_id = np.argsort(graph.ids, kind="stable")
    nodes: Ints = by_id[np.searchsorted(graph.ids, instructions, sorter=by_id)]
    return nodes


def _total(
    predicted: PredictedSchedule, order: PredictedOrder, program: Program, simulation: Simulation
) -> ReplayedTotal:
    cycles = order.statistics.get("total_cycles", float(order.end.max(initial=0.0)))
    run = simulation.runs[order.computation]
    ours = run.makespan
    loops = _loops(predicted, order, program, simulation)
    for node, row in loops:
        ours += row.ours - run.calls[node].totals.makespan
    compiler = int(predicted.picoseconds(np.array([cycles]))[0])
    return ReplayedTotal(run.graph.name, bool(loops), compiler, ours, run.makespan)


def _loops(
    predicted: PredictedSchedule, order: PredictedOrder, program: Program, simulation: Simulation
) -> list[tuple[int, LoopRow]]:
    """Nodes and rows of the loops whose bodies the compiler scheduled."""
    known = {scheduled.computation for scheduled in predicted.orders}
    graph = program.graphs[order.computation]
    length = predicted.picoseconds(order.end) - predicted.picoseconds(order.start)
    rows: list[tuple[int, LoopRow]] = []
    for node, compiler in zip(_nodes(graph, order.instructions).tolist(), length.tolist(), strict=True):
        if graph.opcodes[node] != "while" or int(graph.called.of(node)[0]) not in known:
            continue
        body = simulation.runs[int(graph.called.of(node)[0])].totals
        trips = program.trips[int(graph.ids[node])]
        without = trips * (body.makespan - body.exposed)
        rows.append((node, LoopRow(graph.names[node], trips, compiler, without, trips * body.makespan)))
    return rows
