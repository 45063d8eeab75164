"""The columns of the comparison, and which plans "try all" stands for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product

from engine.chips.budget import Budget
from engine.quantities import bytes_text, gain_text, time_text
from engine.session import edits
from engine.session.plan import Plan
from engine.timeline.timeline import Metrics

SCHEDULERS = ("bottom-up", "top-down", "memory")
UNROLLS = ("1", "2")
RINGS = ("one", "both")
BUDGETS = (1, 2, 4, 8)


@dataclass(frozen=True, slots=True)
class Column:
    """A metric: how it is written, and whether less of it is better."""

    title: str
    value: Callable[[Metrics], float]
    text: Callable[[Metrics], str]
    less: bool = True
    tip: str = ""
    judged: bool = True
    """Whether one value is better than another at all."""
    held: bool = False
    """Whether the chip's memory must hold it."""
    simulated: bool = False
    """Whether only a simulation tells it: profiles hold no such figure."""


COLUMNS = (
    Column("makespan", lambda m: m.makespan, lambda m: time_text(m.makespan), tip="Time of one execution"),
    Column(
        "exposed", lambda m: m.exposed, lambda m: time_text(m.exposed), tip="Time in which compute waits for a transfer"
    ),
    Column(
        "overlapped",
        lambda m: m.overlap_fraction,
        lambda m: f"{m.overlap_fraction:.0%}" if m.transfer_union else "–",
        less=False,
        tip="Part of the transfers that compute hides",
    ),
    Column(
        "peak memory",
        lambda m: m.peak_memory,
        lambda m: bytes_text(m.peak_memory),
        tip="Most bytes live at a moment, as simulated; ▲ where the chip has less HBM",
        held=True,
        simulated=True,
    ),
    Column(
        "in flight",
        lambda m: m.max_in_flight,
        lambda m: str(m.max_in_flight),
        tip="Most operations in flight",
        judged=False,
        simulated=True,
    ),
    Column(
        "over bound",
        lambda m: m.makespan / max(1, m.lower_bound),
        lambda m: gain_text(m.lower_bound, m.makespan) if m.lower_bound else "",
        tip="How far the makespan is above what no schedule of these instructions can beat",
        simulated=True,
    ),
)


def best_of(column: Column, metrics: Sequence[Metrics]) -> float | None:
    """The best value of a column; None where all are alike and none deserves a mark."""
    values = [column.value(m) for m in metrics]
    if not column.judged or len(values) < 2 or min(values) == max(values):
        return None
    return min(values) if column.less else max(values)


def all_plans(plan: Plan) -> tuple[Plan, ...]:
    """What "try all" tries: schedulers × budgets × unroll × ring, with the rest of `plan` as it is."""
    budget = plan.budget or Budget()  # limits by kind stay
    if edits.options_of(plan, "decompose") is None:
        plan = edits.with_options(edits.with_options(plan, "decompose", {}), "async-permute", {})
    made = []
    for scheduler, total, unroll, ring in product(SCHEDULERS, BUDGETS, UNROLLS, RINGS):
        changed = edits.with_options(plan, "decompose", {"unroll": unroll, "ring": ring})
        made.append(replace(changed, scheduler=scheduler, budget=replace(budget, total=total)))
    return tuple(made)


def tried_title(plan: Plan) -> str:
    """What tells a plan that was tried from others of its scheduler and budget."""
    options = edits.options_of(plan, "decompose") or {}
    return ", ".join([plan.scheduler, *(f"{name} {options[name]}" for name in ("unroll", "ring") if name in options)])


def budget_title(plan: Plan) -> str:
    """A budget as a column has room for it: the limit over all kinds, where there is one."""
    if plan.budget is None:
        return "chip's"
    return str(plan.budget.total if plan.budget.total is not None else plan.budget)


def pareto(points: Sequence[tuple[float, float]]) -> list[int]:
    """Numbers of the points that no other beats in both, by the first."""
    order = sorted(range(len(points)), key=lambda n: points[n])
    kept: list[int] = []
    for n in order:
        if not kept or points[n][1] < points[kept[-1]][1]:
            kept.append(n)
    return kept
