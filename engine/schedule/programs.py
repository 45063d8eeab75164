"""Schedules whole programs: callees before callers, computations that are alike once."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from engine.chips.budget import Budget, Kind
from engine.control import QUIET, Control
from engine.cost.program import Program
from engine.ir.graph import Ints
from engine.ir.opcodes import is_start
from engine.schedule.as_loaded import AsLoaded
from engine.schedule.errors import Infeasible
from engine.schedule.hints import groups_of, hints_of
from engine.schedule.measure import broken_rule, peak_memory
from engine.schedule.memory import Memory
from engine.schedule.problem import Loads, Order, Problem, Schedule, Scheduler
from engine.schedule.solving import solve
from engine.simulate.plan import call_makespan, callers
from engine.simulate.run import ComputationRun
from engine.simulate.simulator import DEFAULT, SimulationOptions, simulate_computation


def schedule_program(
    program: Program,
    scheduler: Scheduler,
    budget: Budget,
    *,
    memory_cap: int | None = None,
    sharing: bool = True,
    keep: bool = False,
    control: Control = QUIET,
) -> Schedule:
    """Order every computation of `program`.

    `sharing` says whether transfers share links and memory bandwidth in the simulator that will judge the schedule.
    With `keep`, a computation of a module that carries an order stays in that order where it is within budget and cap
    and faster in the simulator; not for schedulers that are not after speed. `Memory` always keeps
    such an order where it is valid and its peak is smaller.

    Callees come first: a caller sees how long they take, what they hold in flight and the memory they need. Raises
    Infeasible when no order fits the budget or the cap (bytes of the whole program at any moment).
    """
    caps: Mapping[int, int] = {}
    if memory_cap is not None and not isinstance(scheduler, AsLoaded):
        caps = _shares(program, budget, memory_cap, control.part(0.0, 0.2))
        control = control.part(0.2, 1.0)
    keep = keep and program.module.is_scheduled and not isinstance(scheduler, AsLoaded | Memory)
    scheduling = _Scheduling(program, scheduler, budget, caps, SimulationOptions(sharing=sharing), keep)
    for position, computation in enumerate(program.graphs):
        part = control.part(position / len(program.graphs), (position + 1) / len(program.graphs))
        scheduling.schedule(computation, part)
    return Schedule(scheduler.name, budget, scheduling.orders, caps, frozenset(scheduling.kept))


@dataclass(frozen=True, eq=False)
class Called:
    """What a computation's nodes take by what they call; arrays over its n nodes, 0 for nodes that call nothing."""

    compute: Ints
    """Picoseconds, shape [n]."""
    held: Ints
    """Most in flight by kind, shape [n, kinds]."""
    held_total: Ints
    """Most in flight of all kinds together, shape [n]."""
    peak: Ints
    """Extra bytes, shape [n]."""


def called_by(program: Program, computation: int, runs: Mapping[int, ComputationRun]) -> Called:
    """What one computation's callees take; `runs` are theirs."""
    graph = program.graphs[computation]
    n = len(graph)
    held = np.zeros((n, len(Kind)), np.int64)
    compute, held_total, peak = (np.zeros(n, np.int64) for _ in range(3))
    for node in callers(graph):
        called = [runs[int(c)] for c in graph.called.of(node)]
        compute[node] = call_makespan(program, graph, node, runs)
        held[node] = np.max([run.held for run in called], axis=0)
        held_total[node] = max(run.in_flight for run in called)
        peak[node] = max(run.extra for run in called)
    return Called(compute, held, held_total, peak)


def problem_of(
    program: Program,
    computation: int,
    runs: Mapping[int, ComputationRun],
    budget: Budget,
    memory_cap: int | None = None,
) -> Problem:
    """One computation of `program` as a problem; `runs` are those of the computations that it calls."""
    graph, costs = program.graphs[computation], program.costs[computation]
    called = called_by(program, computation, runs)
    instructions = program.module.computations[computation].instructions
    return Problem(
        graph=graph,
        compute=costs.compute + called.compute,
        transfer=costs.transfer,
        kind=costs.kind,
        held=called.held,
        buffers=program.buffers[computation],
        budget=budget,
        memory_cap=memory_cap,
        callee_peak=called.peak,
        held_total=called.held_total,
        group=groups_of(instructions),
        hints=hints_of(instructions),
        loads=Loads(costs.load_start, costs.load_link, costs.load_bytes),
    )


@dataclass
class _Scheduling:
    """One program being scheduled: orders and runs of the computations that were, callees before callers."""

    program: Program
    scheduler: Scheduler
    budget: Budget
    caps: Mapping[int, int]
    """Bytes that a computation and its callees may take, by computation."""
    simulation: SimulationOptions = DEFAULT
    keep: bool = False
    """Whether the module's own order of a computation is taken where it is faster."""
    kept: set[int] = field(default_factory=set)
    """Computations for which it was."""
    orders: dict[int, Order] = field(default_factory=dict)
    runs: dict[int, ComputationRun] = field(default_factory=dict)
    known: dict[bytes, Order] = field(default_factory=dict)
    """Orders of computations that are alike, by what they are to a scheduler."""

    def schedule(self, computation: int, control: Control) -> None:
        """Order `computation`, whose callees are."""
        control.step(0.0, f"scheduling {self.program.graphs[computation].name}")
        try:
            self._order(computation, self.budget, control)
        except Infeasible as refusal:
            if not self._leave_room(computation, refusal, control):
                raise

    def _order(self, computation: int, budget: Budget, control: Control) -> None:
        problem = problem_of(self.program, computation, self.runs, budget, self.caps.get(computation))
        if not self.simulation.sharing:
            problem = replace(problem, loads=None)
        key = _digest(problem)
        order = self.known.get(key)
        if order is None:
            problem = replace(problem, effort=self.efforts[computation], simulated=self._simulated(computation))
            self.known[key] = order = solve(problem, self.scheduler, control)
        run = self._simulate(computation, order)
        if isinstance(self.scheduler, Memory) and self.program.module.is_scheduled:
            loaded = AsLoaded().schedule(problem, control)
            less = peak_memory(problem, loaded.nodes) < peak_memory(problem, order.nodes)
            if less and broken_rule(problem, loaded.nodes) is None:
                order, run = loaded, self._simulate(computation, loaded)
        self.kept.discard(computation)
        if self.keep:
            loaded = AsLoaded().schedule(problem, control)
            as_loaded = self._simulate(computation, loaded)
            if as_loaded.makespan < run.makespan and broken_rule(problem, loaded.nodes) is None:
                order, run = loaded, as_loaded
                self.kept.add(computation)
        self.orders[computation], self.runs[computation] = order, run

    def _simulate(self, computation: int, order: Order) -> ComputationRun:
        return simulate_computation(self.program, computation, order, self.runs, self.simulation)

    @cached_property
    def efforts(self) -> Mapping[int, float]:
        """By computation: its part of the time there is, by its size; none for those without transfers."""
        graphs = self.program.graphs
        size = {graph.opcodes: len(graph) for graph in graphs.values() if np.any(graph.partner >= 0)}
        total = sum(size.values())
        return {c: size[graph.opcodes] / total if graph.opcodes in size else 1e-3 for c, graph in graphs.items()}

    def _simulated(self, computation: int) -> Callable[[Ints], int]:
        """Makespan of an order of `computation` in the simulator."""

        def makespan(nodes: Ints) -> int:
            return self._simulate(computation, Order(nodes)).makespan

        return makespan

    def _leave_room(self, computation: int, refusal: Infeasible, control: Control) -> bool:
        """Order callees anew within a budget that leaves room for what must be in flight across them, if that helps."""
        if refusal.smallest_budget is None or self.budget.total is None:
            return False
        wanted = Budget.parse(refusal.smallest_budget).total
        callees = [c for c in self.program.graphs if c in self._reachable(computation) and self.runs[c].in_flight]
        if wanted is None or not callees:
            return False
        spare = self.budget.total - (wanted - self.budget.total)
        if spare < 1:
            return False
        narrow = replace(self.budget, total=spare)
        try:
            for callee in callees:
                self._order(callee, narrow, control)
            self._order(computation, self.budget, control)
        except Infeasible:
            return False
        return True

    def _reachable(self, computation: int) -> set[int]:
        """Computations that `computation` calls, directly or not."""
        found: set[int] = set()
        stack = [computation]
        while stack:
            graph = self.program.graphs[stack.pop()]
            called = {int(c) for node in callers(graph) for c in graph.called.of(node)}
            stack.extend(called - found)
            found |= called
        return found


def _shares(program: Program, budget: Budget, memory_cap: int, control: Control) -> Mapping[int, int]:
    """How many bytes each computation may take so that the whole stays under the cap.

    A callee may take what the cap leaves beside its callers, all of them in their orders of small peak memory; those
    orders then stay within reach whatever is chosen. Raises Infeasible when they are over the cap.
    """
    small = _Scheduling(program, Memory(), budget, {})
    for position, computation in enumerate(program.graphs):
        small.schedule(computation, control.part(position / len(program.graphs), 1.0))
    entry = list(program.graphs)[-1]
    caps = {entry: memory_cap}
    solve(problem_of(program, entry, small.runs, budget, memory_cap), Memory(), control)
    for computation in reversed(list(program.graphs)):
        run = small.runs[computation]
        place = small.orders[computation].positions()
        for node in callers(run.graph):
            left = caps[computation] - int(run.plan.live[place[node]])
            for callee in (int(c) for c in run.graph.called.of(node)):
                buffers = program.buffers[callee]
                share = left + int(buffers.size[buffers.live_in].sum())
                caps[callee] = min(caps.get(callee, share), share)
    return {c: cap if c == entry else max(cap, small.runs[c].peak) for c, cap in caps.items()}


def _digest(problem: Problem) -> bytes:
    """Equal for problems that differ in names and ids only."""
    found = hashlib.blake2b(digest_size=16)
    graph, buffers = problem.graph, problem.buffers
    marks = [(opcode == "parameter") + 2 * is_start(opcode) for opcode in graph.opcodes]
    arrays = [
        *problem.predecessors, graph.partner, graph.order, np.array([graph.root, *marks]),
        problem.compute, problem.transfer, problem.kind, problem.held, problem.held_total, problem.callee_peak,
        buffers.size, buffers.node, *buffers.readers, buffers.live_in, buffers.live_out, buffers.given,
        problem.group,
    ]  # fmt: skip
    if problem.hints is not None:
        arrays += [problem.hints.flags, problem.hints.priority]
    if problem.loads is not None:
        arrays += [problem.loads.start, problem.loads.link, problem.loads.bytes]
    for array in arrays:
        found.update(b"-" if array is None else np.ascontiguousarray(array).tobytes() + b"|")
    found.update(f"{problem.budget} {problem.memory_cap}".encode())
    return found.digest()
