"""Simulates a compiler's predicted schedule with the compiler's own costs, to show it as a variant and to check ours.

The compiler counts a loop as its trips times its body without the waits in it, so its totals of whatever runs loops
leave those waits out. Ours are given both ways: added up like the compiler's, and as long as it takes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from engine.chips.budget import Kind
from engine.chips.machine import Machine
from engine.control import QUIET, Control
from engine.cost.compiler_schedule import ScheduledComputation
from engine.cost.costs import Costs, Origin
from engine.cost.program import Program
from engine.cost.programs import prepare
from engine.cost.scheduled_module import ScheduledModule
from engine.ir.graph import Graph, Ints
from engine.ir.graphs import SEQUENTIAL
from engine.ir.module import Module
from engine.ir.shapes import byte_count
from engine.schedule.problem import Order, Schedule
from engine.simulate.run import ComputationRun
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


def replay(predicted: ScheduledModule, machine: Machine, control: Control = QUIET) -> Replay:
    """Simulate `predicted` on `machine`: compute as the compiler has it, transfers as fast as it thinks, no sharing."""
    program = price(predicted, machine)
    orders = {id_: Order(_order(graph)) for id_, graph in program.graphs.items()}
    schedule = Schedule("compiler", machine.chip.default_budget, orders)
    simulation = simulate(program, schedule, SimulationOptions(sharing=False), control)
    simulation = replace(simulation, timeline=replace(simulation.timeline, source=Origin.COMPILER))
    totals: list[ReplayedTotal] = []
    loops: list[LoopRow] = []
    for scheduled in predicted.schedule.computations:
        rows = _loops(predicted, scheduled, program, simulation)
        totals.append(_total(scheduled, simulation.runs[_id_of(program, scheduled)], rows))
        loops.extend(rows.values())
    return Replay(program, schedule, simulation, tuple(totals), tuple(loops))


_CYCLES_PER_BYTE = {"tpu-v4": 0.0234375, "tpu-v5e": 0.032155, "tpu-v5p": 0.018746, "tpu-v6e": 0.018746}
"""Latency of a permute in the TPU compiler's predictions, whatever its number of hops: sampled, exactly linear from
64 KiB to 64 MiB."""


def price(predicted: ScheduledModule, machine: Machine) -> Program:
    """The program with the compiler's costs: of instructions that it scheduled the length of their rows.

    A transfer takes its bytes at the compiler's rate; one that gathers over a group of N moves a shard N/2 hops, both
    ways round the ring. Instructions that the compiler printed no time for keep the model's costs.
    """
    program = prepare(predicted.module, machine)
    costs = dict(program.costs)
    for scheduled in predicted.schedule.computations:
        costs[_id_of(program, scheduled)] = _compiler_costs(scheduled, program)
    return replace(program, costs=costs)


def _id_of(program: Program, scheduled: ScheduledComputation) -> int:
    return next(id_ for id_, graph in program.graphs.items() if graph.name == scheduled.name)


def _compiler_costs(scheduled: ScheduledComputation, program: Program) -> Costs:
    computation = _id_of(program, scheduled)
    graph, costs = program.graphs[computation], program.costs[computation]
    number = {name: node for node, name in enumerate(graph.names)}
    compute, transfer = np.zeros(len(graph), dtype=np.int64), np.zeros(len(graph), dtype=np.int64)
    origin = costs.origin.copy()
    for name, time in zip(scheduled.names, scheduled.picoseconds(), strict=True):
        node = number[name]
        origin[node] = Origin.COMPILER
        if graph.opcodes[node] not in SEQUENTIAL:
            compute[node] = time
    chip = program.machine.chip
    clock = scheduled.cycles_per_microsecond * 1e6
    cycles = _CYCLES_PER_BYTE.get(chip.name, clock / program.machine.links[0].rate.usable)
    for node in np.flatnonzero(graph.partner > np.arange(len(graph))).tolist():
        travelled = _travelled(program.module, int(graph.ids[node]), int(costs.kind[node]))
        transfer[node] = round(travelled * cycles * 1e6 / scheduled.cycles_per_microsecond)
    for column in (compute, transfer, origin):
        column.flags.writeable = False
    return replace(costs, compute=compute, transfer=transfer, origin=origin)


def _travelled(module: Module, instruction: int, kind: int) -> float:
    """Bytes of a start times the hops that they count for."""
    start = module.instructions[instruction]
    if kind == Kind.ALL_GATHER:
        return byte_count(start.shape.tuple_shapes[1]) / 2
    return sum(byte_count(module.instructions[operand].shape) for operand in start.operand_ids)


def _order(graph: Graph) -> Ints:
    return np.arange(len(graph), dtype=np.int64) if graph.order is None else graph.order


def _total(scheduled: ScheduledComputation, run: ComputationRun, loops: Mapping[int, LoopRow]) -> ReplayedTotal:
    ours = run.makespan
    for node, row in loops.items():
        ours += row.ours - run.calls[node].totals.makespan
    compiler = round(scheduled.total_cycles * 1e6 / scheduled.cycles_per_microsecond)
    return ReplayedTotal(run.graph.name, bool(loops), compiler, ours, run.makespan)


def _loops(
    predicted: ScheduledModule, scheduled: ScheduledComputation, program: Program, simulation: Simulation
) -> Mapping[int, LoopRow]:
    """By node, the loops whose bodies the compiler scheduled."""
    known = {_id_of(program, other) for other in predicted.schedule.computations}
    graph = program.graphs[_id_of(program, scheduled)]
    number = {name: node for node, name in enumerate(graph.names)}
    rows: dict[int, LoopRow] = {}
    for name, compiler in zip(scheduled.names, scheduled.picoseconds(), strict=True):
        node = number[name]
        if graph.opcodes[node] != "while" or int(graph.called.of(node)[0]) not in known:
            continue
        body = simulation.runs[int(graph.called.of(node)[0])].totals
        trips = program.trips[int(graph.ids[node])]
        without = trips * (body.makespan - body.exposed)
        rows[node] = LoopRow(name, trips, compiler, without, trips * body.makespan)
    return rows
