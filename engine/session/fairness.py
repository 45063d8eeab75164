"""What a plan has to beat: the module as a compiler runs it by itself, without decomposition."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from engine.chips.budget import Budget
from engine.control import QUIET, Control
from engine.ir.module import Module
from engine.passes.pipeline import Pipeline
from engine.schedule.errors import Infeasible
from engine.session.evaluation import Evaluator, default_plans
from engine.session.plan import DEFAULT_SCHEDULERS, WHOLE, Plan, plain_plan
from engine.session.variant import Variant

LEAST_GAIN = 0.0005
"""Share of the time below which a prediction says nothing; it is shown as ±0 %."""


def fair_base(
    evaluator: Evaluator,
    base: Variant,
    budgets: Iterable[Budget | None] = (None,),
    memory_cap: int | None = None,
    control: Control = QUIET,
) -> Variant:
    """The faster of `base`, the module as loaded, and the same with its collectives asynchronous, in the best order of
    the default schedulers, where the chip's compiler would make them so; `base` where that does not fit the cap, or is
    not priced alike.

    `budgets` are those that the plan set against it has or could have had: the best under any of them counts, for a
    higher budget alone is no gain of a plan.
    """
    plans = dict(default_plans(evaluator.module, None, None, memory_cap))
    if WHOLE not in plans:
        return base
    chip = evaluator.machine.chip
    distinct = tuple({chip.budget(budget): budget for budget in budgets}.values())
    best = base
    for number, budget in enumerate(distinct):
        part = control.part(number / len(distinct), (number + 1) / len(distinct))
        try:
            whole = best_order(evaluator, replace(plans[WHOLE], budget=budget), WHOLE, part)
        except Infeasible:
            continue
        if whole.metrics.makespan < best.metrics.makespan and not whole.priced_unlike(base):
            best = whole
    return best


def best_order(evaluator: Evaluator, plan: Plan, name: str = "", control: Control = QUIET) -> Variant:
    """What `plan` makes under the best of its own and the default schedulers: another list scheduler alone is no gain
    over it. Its own wins among equals. Raises Infeasible where none fits the plan's budget or cap."""
    schedulers = tuple(dict.fromkeys((plan.scheduler, *DEFAULT_SCHEDULERS)))
    found: list[Variant] = []
    problem: Infeasible | None = None
    for number, scheduler in enumerate(schedulers):
        part = control.part(number / len(schedulers), (number + 1) / len(schedulers))
        try:
            found.append(evaluator.evaluate(replace(plan, scheduler=scheduler), name, part))
        except Infeasible as error:
            problem = problem or error
    if not found and problem is not None:
        raise problem
    return min(found, key=lambda variant: variant.metrics.makespan)


def is_faster(variant: Variant, than: Variant) -> bool:
    """By more than rounding, and priced alike: a time that prices one of the two alone gives no gain."""
    before, after = than.metrics.makespan, variant.metrics.makespan
    return before - after > LEAST_GAIN * before and not variant.priced_unlike(than)


def with_fusion(plan: Plan, module: Module) -> tuple[Plan, str]:
    """`plan`, fused as variant 0 is where it has no fusion pass of its own, and a sentence that says so: a compiler
    fuses what it is given, and what is not fused would be compared with what is."""
    plain, named = plain_plan(module).passes, Pipeline.parse(plan.passes)
    if not plain or any(step.name == "fuse" for step in named.passes):
        return plan, ""
    said = (
        f"The plan has no fuse pass, but its compiler fuses: it is predicted with {plain} added, as the module as "
        "loaded is (fuse{policy=none} leaves everything apart)."
    )
    return replace(plan, passes=",".join(filter(None, (plan.passes, plain)))), said
