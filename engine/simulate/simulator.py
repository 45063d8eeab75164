"""Simulates programs under a schedule: discrete events, shared resources, every loop body once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from engine.control import QUIET, Control
from engine.cost.program import Program
from engine.schedule.problem import Order, Schedule
from engine.simulate.bounds import Bounds, bounds
from engine.simulate.events import execute
from engine.simulate.measures import metrics_of
from engine.simulate.plan import plan_computation
from engine.simulate.run import ComputationRun
from engine.simulate.sharing import Loads
from engine.simulate.unfolding import unfold
from engine.timeline.timeline import Metrics, Timeline


@dataclass(frozen=True, slots=True)
class SimulationOptions:
    """What is simulated and how much of it the timeline shows."""

    sharing: bool = True
    """Whether transfers share links and memory bandwidth with each other and with compute, or all run at full speed."""
    slice_cap: int = 200_000
    """Up to how many slices the timeline shows every iteration of every loop."""
    expand: tuple[tuple[int, int], ...] = ()
    """(instruction id of a loop, iteration) to show besides those that are shown anyway."""


DEFAULT = SimulationOptions()


@dataclass(frozen=True, eq=False)
class Simulation:
    """What a program does under a schedule."""

    timeline: Timeline
    metrics: Metrics
    bounds: Bounds
    runs: Mapping[int, ComputationRun]
    """Computation id → its run when nothing of its callers is under way."""


def simulate(
    program: Program, schedule: Schedule, options: SimulationOptions = DEFAULT, control: Control = QUIET
) -> Simulation:
    """Simulate one execution of `program`'s entry under `schedule`."""
    runs = simulate_computations(program, schedule, options, control.part(0.0, 0.7))
    entry = runs[program.module.proto.entry_computation_id]
    control.step(0.7, "drawing the timeline")
    timeline = unfold(program, entry, options.slice_cap, options.expand)
    control.step(0.9, "looking for bounds")
    limits = bounds(program, sharing=options.sharing)
    return Simulation(timeline, metrics_of(program, entry, limits), limits, runs)


def makespan_of(program: Program, schedule: Schedule) -> int:
    """Picoseconds of one execution, where nothing else is asked: no timeline is drawn."""
    return simulate_computations(program, schedule)[program.module.proto.entry_computation_id].makespan


def simulate_computation(
    program: Program,
    computation: int,
    order: Order,
    callees: Mapping[int, ComputationRun],
    options: SimulationOptions = DEFAULT,
) -> ComputationRun:
    """Simulate one computation in `order`, given the runs of the computations that it calls."""
    plan = plan_computation(program, computation, order, callees)
    return execute(plan, Loads(sharing=options.sharing))[0]


def simulate_computations(
    program: Program,
    schedule: Schedule,
    options: SimulationOptions = DEFAULT,
    control: Control = QUIET,
) -> Mapping[int, ComputationRun]:
    """Runs of every computation of `program`, callees first."""
    runs: dict[int, ComputationRun] = {}
    for position, computation in enumerate(program.graphs):
        control.step(position / len(program.graphs), f"simulating {program.graphs[computation].name}")
        runs[computation] = simulate_computation(program, computation, schedule.orders[computation], runs, options)
    return runs
