"""One problem and one scheduler: groups are taken care of, and what comes back is checked."""

from __future__ import annotations

from engine.control import QUIET, Control
from engine.errors import LapstrakeError
from engine.schedule.as_loaded import AsLoaded
from engine.schedule.grouping import schedule_grouped
from engine.schedule.measure import broken_rule
from engine.schedule.problem import Order, Problem, Scheduler


def solve(problem: Problem, scheduler: Scheduler, control: Control = QUIET) -> Order:
    """The order that `scheduler` finds: topological, groups unbroken, within budget and cap; `as-loaded` excepted.

    Raises Infeasible when there is no such order, and LapstrakeError when the scheduler breaks its promise.
    """
    if isinstance(scheduler, AsLoaded):
        return scheduler.schedule(problem, control)
    order = schedule_grouped(problem, lambda part: scheduler.schedule(part, control))
    broken = broken_rule(problem, order.nodes)
    if broken is not None:
        raise LapstrakeError(
            f"scheduler '{scheduler.name}' gave an order of {problem.graph.name} that is not one: {broken}"
        )
    return order
