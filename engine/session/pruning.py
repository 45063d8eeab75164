"""Rows of sites that the gate lets through and the simulator does not: a plan without them.

The gate prices a site by itself. What its loop does to the rest of the module (what else was hidden there, what can no
longer be fused or moved past it) shows only when the whole module is put in order and simulated. So every row of alike
sites is left whole in turn, the one with the least predicted gain first, and stays so where that is faster. What comes
of it is kept in the plan's text (``losing=…``) and needs no second search.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from engine.chips.budget import Budget
from engine.control import QUIET, Control
from engine.passes.rows import Row, rows_of
from engine.quantities import time_text
from engine.session import edits
from engine.session.evaluation import Evaluator, default_plans, truly_named
from engine.session.fairness import best_order
from engine.session.plan import WHOLE, Plan, best_passes, whole_plan
from engine.session.variant import Variant, best_of

EFFORT = 2_500
"""Instructions that are put in order in all trials together: enough for every row of a module of a few hundred after
decomposition, for none of one of more than 2,500. About half a second; up to `SLOWER` times that where the plan is
slower than the module as loaded."""
SLOWER = 4


def default_variants(
    evaluator: Evaluator, budget: Budget | None = None, memory_cap: int | None = None, control: Control = QUIET
) -> list[Variant]:
    """What is shown where no plan is given: the plans of `default_plans`, pruned where they decompose for speed, and
    where they decompose nothing in the best of the default schedulers' orders."""
    plans = list(default_plans(evaluator.module, None, budget, memory_cap))
    made: list[Variant] = []
    for number, (name, plan) in enumerate(plans):
        part = control.part(number / len(plans), (number + 1) / len(plans))
        if name == WHOLE:
            made.append(best_order(evaluator, plan, name, part))
            continue
        found = evaluator.evaluate(plan, name, part.part(0.0, 0.5))
        if plan.passes == best_passes(evaluator.module) and plan.scheduler != "memory":
            found = pruned(evaluator, made[0], found, part.part(0.5, 1.0))
        made.append(truly_named(found))
    return made


def best_default(
    evaluator: Evaluator,
    budget: Budget | None = None,
    memory_cap: int | None = None,
    control: Control = QUIET,
    *,
    decomposes: bool = False,
) -> tuple[Variant, Variant | None]:
    """The plan where none is named, the best of `default_variants`, so never one that is slower than what decomposes
    nothing; and the best of those that have the pass, None where that is the same or none has it. With `decomposes`
    the best has the pass, if any has."""
    found = default_variants(evaluator, budget, memory_cap, control)
    having = [variant for variant in found if edits.options_of(variant.plan, "decompose") is not None]
    best, other = best_of(found), best_of(having, found[0]) if having else None
    if other is None or other is best:
        return best, None
    return (other, None) if decomposes else (best, other)


def may_be_better(base: Variant, given: Variant) -> bool:
    """Whether `pruned` would try anything."""
    if given.metrics.makespan > base.metrics.makespan:
        return True
    return _size(given) <= EFFORT and any(c.chosen for c in given.candidates)


def pruned(
    evaluator: Evaluator, base: Variant, given: Variant, control: Control = QUIET, effort: int = EFFORT
) -> Variant:
    """`given`, or a faster variant of its plan with rows of sites left whole.

    Where all of them are slower than `base`, the module as loaded, nothing is decomposed, and if that does not help
    either nothing is changed but the order; at last with as much in flight as the order that the module carries has.
    Raises what `Evaluator.evaluate` raises.
    """
    limit = base.metrics.makespan
    effort *= SLOWER if given.metrics.makespan > limit else 1
    search = _Search(evaluator, given, control.part(0.0, 0.9), effort // max(1, _size(given)))
    for attempt in _attempts(given):
        if not search.left:
            break
        search.offer(attempt)
    best, plan = search.best, given.plan
    for said, passes, budget in _retreats(base, plan, whole_plan(evaluator.module).passes):
        if best.metrics.makespan <= limit:
            break
        name = f"{said}, {plan.scheduler}"
        found = evaluator.evaluate(replace(plan, passes=passes, budget=budget), name, control.part(0.9, 1.0))
        best = min(best, found, key=lambda variant: variant.metrics.makespan)
    return best


def _retreats(base: Variant, plan: Plan, whole: str) -> Iterator[tuple[str, str, Budget | None]]:
    """Names, passes and budgets of what decomposes nothing."""
    yield "whole", whole, plan.budget
    yield "as loaded", base.plan.passes, plan.budget
    # A compiler's order may have more in flight than a chip's default budget, which nobody chose, lets ours have.
    if plan.budget is None and base.program.module.is_scheduled:
        most = base.metrics.max_in_flight
        by_kind = base.program.machine.chip.default_budget.by_kind
        yield "as loaded", base.plan.passes, Budget(most, tuple((kind, max(limit, most)) for kind, limit in by_kind))


def _size(variant: Variant) -> int:
    """Instructions that are put in order."""
    return sum(len(graph) for graph in variant.program.graphs.values())


@dataclass(frozen=True)
class _Left:
    """What is left whole."""

    rows: frozenset[str] = frozenset()
    chains: bool = False

    def __or__(self, other: _Left) -> _Left:
        return _Left(self.rows | other.rows, self.chains or other.chains)

    def of(self, plan: Plan) -> Plan:
        """`plan` without it."""
        given = edits.options_of(plan, "decompose") or {}
        rows = {*filter(None, given.get("losing", "").split(";")), *self.rows}
        values: dict[str, str | None] = {"losing": ";".join(sorted(rows)) or None}
        return edits.with_options(plan, "decompose", values | ({"chain": "off"} if self.chains else {}))


class _Search:
    """The best plan so far, and how many more may be tried."""

    def __init__(self, evaluator: Evaluator, best: Variant, control: Control, trials: int) -> None:
        self._evaluator = evaluator
        self._name = best.name
        self._plan = best.plan
        self._control = control
        self._trials = trials
        self._done = 0
        self._out = _Left()
        self.best = best
        self.said: tuple[str, ...] = ()
        """What was left whole, and what that saves."""

    @property
    def left(self) -> bool:
        return self._done < self._trials

    def offer(self, more: _Left) -> None:
        """Leave `more` whole too where that is faster."""
        what = "Chains are taken apart" if more.chains else f"{', '.join(sorted(more.rows))} is left whole"
        out = self._out | more
        plan = out.of(self._plan)
        self._done += 1
        self._control.step(min(1.0, self._done / (self._trials + 1)), "trying its rows")
        found = self._evaluator.evaluate(plan, self._name)
        saved = self.best.metrics.makespan - found.metrics.makespan
        if saved > 0:
            self.said += (f"{what}: the plan is {time_text(saved)} faster so, whatever the gate predicts.",)
            self.best, self._out = replace(found, notes=(*found.notes, *self.said)), out


def _attempts(made: Variant) -> Iterator[_Left]:
    """Chains, then one row after the other."""
    if any(c.chosen and c.kind == "chain" for c in made.candidates):
        yield _Left(chains=True)
    for row in sorted(_chosen(made), key=lambda row: row.gain):
        yield _Left(frozenset({row.key}))


def _chosen(made: Variant) -> list[Row]:
    """Rows of sites that are decomposed."""
    return list(rows_of([c for c in made.candidates if c.chosen and c.kind != "chain"]))
