"""Proven optimal orders through OR-tools' CP-SAT, and proven bounds where time runs out.

The computation is a single-machine problem with time lags: every node takes the compute stream alone, a done follows
its start by at least the transfer's time, transfers in flight and bytes live are cumulative resources.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from math import gcd
from time import monotonic
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from engine.control import Cancelled, Control
from engine.errors import UnsupportedError, UsageError
from engine.schedule.bounds import lower_bound
from engine.schedule.improve import Improve
from engine.schedule.instance import DONE, START, TOTAL, UNLIMITED, Instance
from engine.schedule.measure import begin_times, makespan
from engine.schedule.problem import Decisions, Order, Problem

if TYPE_CHECKING:
    from ortools.sat.python.cp_model import CpModel, CpSolver, IntervalVar, IntVar

LARGEST = 400
"""Instructions up to which a model is built; beyond, the improved order and the analytic bound are given."""


@dataclass(frozen=True)
class Exact:
    """The fastest order there is, transfers not sharing anything: proven for bodies up to about 60 instructions.

    Beyond, the best found in the time given, and how much faster one could at most be (`Order.bound`). Needs the
    optional dependency OR-tools (``pip install "lapstrake[exact]"``).
    """

    name: ClassVar[str] = "exact"
    seconds: float = 60.0
    """For the whole program."""
    workers: int = 2
    """Threads."""

    def __post_init__(self) -> None:
        if self.seconds <= 0 or self.workers < 1:
            raise UsageError(
                f"exact{{seconds,workers}} are numbers over 0, but {self.seconds:g} and {self.workers} came"
            )

    def schedule(self, problem: Problem, control: Control) -> Order:
        _import()
        seconds = self.seconds * problem.effort
        start = Improve(work=1_500_000, seconds=min(10.0, seconds / 4), sharing=False).schedule(
            problem, control.part(0.0, 0.2)
        )
        instance = Instance.of(problem)
        bound = lower_bound(problem)
        fastest = makespan(instance, start.nodes.tolist())
        if fastest == bound or len(instance) > LARGEST:
            return Order(start.nodes, start.decisions, bound)
        control.step(0.2, f"proving the best order of {problem.graph.name}")
        return _solve(instance, start, bound, seconds, self.workers, control.part(0.2, 1.0))


def _import() -> None:
    try:
        import ortools.sat.python.cp_model  # noqa: F401 - heavy, and optional
    except ImportError as missing:
        raise UnsupportedError(
            "scheduler 'exact' needs OR-tools, which is not installed; install it with: pip install 'lapstrake[exact]'"
        ) from missing


def _solve(instance: Instance, start: Order, bound: int, seconds: float, workers: int, control: Control) -> Order:
    from ortools.sat.python import cp_model

    n = len(instance)
    unit, scale = _grain(instance)
    length = [max(1, d // unit * scale) for d in instance.duration]
    hint = start.nodes.tolist()
    horizon = makespan(instance, hint) // unit * scale + n
    model = cp_model.CpModel()
    begin = [model.new_int_var(0, horizon, f"begin {k}") for k in range(n)]
    model.add_no_overlap([model.new_fixed_size_interval_var(begin[k], length[k], f"run {k}") for k in range(n)])
    for node in range(n):
        for p in instance.predecessors[node]:
            model.add(begin[node] >= begin[p] + length[p])
        if instance.role[node] == DONE:
            lag = instance.latency[node] // unit * scale
            sender = instance.partner[node]
            model.add(begin[node] >= begin[sender] + length[sender] + lag)
    for node in instance.parameters:
        model.add(begin[node] < len(instance.parameters))
    _limit_flights(model, instance, begin, length, horizon)
    _limit_memory(model, instance, begin, length, horizon)
    end = model.new_int_var(bound // unit * scale, horizon, "end")
    model.add_max_equality(end, [begin[k] + length[k] for k in range(n)])
    model.minimize(end)
    for node, time in enumerate(_times(instance, hint, unit, scale)):
        model.add_hint(begin[node], time)
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = seconds
    solver.parameters.num_workers = workers
    solver.parameters.random_seed = 0
    status = _run(solver, model, seconds, control)
    proven = max(bound, int(solver.best_objective_bound) // scale * unit)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return Order(start.nodes, start.decisions, bound)
    order = np.array(sorted(range(n), key=lambda k: solver.value(begin[k])), np.int64)
    if makespan(instance, order.tolist()) >= makespan(instance, hint):
        return Order(start.nodes, start.decisions, proven)
    name = "ProvenOptimal" if status == cp_model.OPTIMAL else "BestFound"
    nothing = np.full(n, -1, np.int64)
    return Order(order, Decisions(np.zeros(n, np.uint8), nothing, nothing, (name,)), proven)


def _run(solver: CpSolver, model: CpModel, seconds: float, control: Control) -> object:
    """Solve in a thread, so that progress is reported and cancelling works meanwhile."""
    started = monotonic()
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(solver.solve, model)
        while not future.done():
            try:
                control.step(min(1.0, (monotonic() - started) / seconds), "proving the best order")
            except Cancelled:
                solver.stop_search()
                raise
            wait([future], 0.05)
        return future.result()


def _grain(instance: Instance) -> tuple[int, int]:
    """(unit, scale): times are divided by `unit` and then multiplied by `scale`.

    Nodes that take no time take 1 in the model, so that they have an order too; the scale keeps all of them together
    from adding up to one unit, so that the model's optimum is the true one.
    """
    unit = 0
    for time in (*instance.duration, *instance.latency):
        unit = gcd(unit, time)
    return max(unit, 1), len(instance) + 1


def _times(instance: Instance, order: list[int], unit: int, scale: int) -> list[int]:
    """When each node begins in the model."""
    begin, wait = begin_times(instance, order)
    times = [0] * len(order)
    for position, node in enumerate(order):
        times[node] = (begin[node] + wait[node]) // unit * scale + position
    return times


def _limit_flights(model: CpModel, instance: Instance, begin: list[IntVar], length: list[int], horizon: int) -> None:
    """What is in flight from each start to its done, and what callees hold while they run, within the budget."""
    flights: dict[int, tuple[IntervalVar, int]] = {}
    for node in range(len(instance)):
        if instance.role[node] == START:
            done = instance.partner[node]
            time = model.new_int_var(0, horizon, f"flight {node}")
            stop = model.new_int_var(0, horizon, f"arrival {node}")
            model.add(stop == begin[done] + length[done])
            flights[node] = model.new_interval_var(begin[node], time, stop, f"in flight {node}"), instance.kind[node]
    for key, limit in enumerate(instance.limit):
        if limit >= UNLIMITED:
            continue
        intervals = [interval for interval, kind in flights.values() if key in (kind, TOTAL)]
        demands = [1] * len(intervals)
        for node, held in instance.held.items():
            intervals.append(model.new_fixed_size_interval_var(begin[node], length[node], f"hold {node} {key}"))
            demands.append(held[key])
        model.add_cumulative(intervals, demands, limit)


def _limit_memory(model: CpModel, instance: Instance, begin: list[IntVar], length: list[int], horizon: int) -> None:
    """Every buffer from the node that makes it (what the caller gives away: from the start) to the last that reads it,
    and callees, within the cap."""
    problem, memory = instance.problem, instance.memory
    if problem.memory_cap is None:
        return
    intervals: list[IntervalVar] = []
    demands: list[int] = []
    for b, size in enumerate(memory.size):
        if not size:
            continue
        definer = int(problem.buffers.node[b])
        stop = model.new_int_var(0, horizon, f"death {b}")
        ends = [begin[r] + length[r] for r in (definer, *problem.buffers.readers.of(b).tolist())]
        if memory.live_out[b]:
            ends += [begin[k] + length[k] for k in range(len(instance))]
        model.add_max_equality(stop, ends)
        time = model.new_int_var(0, horizon, f"life {b}")
        given = problem.buffers.given is not None and problem.buffers.given[b]
        intervals.append(model.new_interval_var(0 if given else begin[definer], time, stop, f"live {b}"))
        demands.append(size)
    for node, size in enumerate(memory.callee):
        if size:
            intervals.append(model.new_fixed_size_interval_var(begin[node], length[node], f"callee {node}"))
            demands.append(size)
    model.add_cumulative(intervals, demands, problem.memory_cap - memory.fixed)
