"""Rows of sites that the gate lets through and the simulator does not: a plan without them.

The gate prices a site by itself. What its loop does to the rest of the module (what else was hidden there, what can no
longer be fused or moved past it) shows only when the whole module is put in order and simulated. So every row of alike
sites is left whole in turn, the one with the least predicted gain first, and stays so where that is faster. What comes
of it is kept in the plan's text (``forbid=…``) and needs no second search.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from engine.chips.budget import Budget
from engine.control import QUIET, Control
from engine.passes.rows import Row, rows_of
from engine.quantities import time_text
from engine.session import edits
from engine.session.evaluation import Evaluator, default_plans
from engine.session.plan import BEST_PASSES, Plan, plain_plan, whole_plan
from engine.session.variant import Variant

EFFORT = 10_000
"""Instructions that are put in order in all trials together: enough for every row of a module of a few hundred after
decomposition, for none of one of more than 10,000. One or two seconds."""


def default_variants(
    evaluator: Evaluator, budget: Budget | None = None, memory_cap: int | None = None, control: Control = QUIET
) -> list[Variant]:
    """What is shown where no plan is given: the plans of `default_plans`, pruned where they decompose for speed."""
    plans = list(default_plans(evaluator.module, None, budget, memory_cap))
    made = []
    for number, (name, plan) in enumerate(plans):
        part = control.part(number / len(plans), (number + 1) / len(plans))
        fast = plan.passes == BEST_PASSES and plan.scheduler != "memory"
        made.append(pruned(evaluator, plan, name, part) if fast else evaluator.evaluate(plan, name, part))
    return made


def pruned(evaluator: Evaluator, plan: Plan, name: str = "", control: Control = QUIET, effort: int = EFFORT) -> Variant:
    """The variant of `plan`, or a faster one of it with rows of sites left whole.

    Where all of them are slower than the module as loaded, nothing is decomposed, and if that does not help either
    nothing is changed but the order. Raises what `Evaluator.evaluate` raises.
    """
    plain = plain_plan(evaluator.module)
    base = evaluator.evaluate(plain, control=control.part(0.0, 0.1)).metrics.makespan
    best = evaluator.evaluate(plan, name, control.part(0.1, 0.2))
    size = sum(len(graph) for graph in best.program.graphs.values())
    search = _Search(evaluator, name, best, control.part(0.2, 0.9), effort // max(1, size))
    for attempt in _attempts(best):
        if not search.left:
            break
        search.offer(attempt)
    best = search.best
    whole = whole_plan(evaluator.module)
    for said, passes in (("whole", whole.passes), ("as loaded", plain.passes)):
        if best.metrics.makespan <= base:
            break
        found = evaluator.evaluate(replace(plan, passes=passes), f"{said}, {plan.scheduler}", control.part(0.9, 1.0))
        best = min(best, found, key=lambda variant: variant.metrics.makespan)
    return best


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
        rows = {*filter(None, given.get("forbid", "").split(";")), *self.rows}
        values: dict[str, str | None] = {"forbid": ";".join(sorted(rows)) or None}
        return edits.with_options(plan, "decompose", values | ({"chain": "off"} if self.chains else {}))


class _Search:
    """The best plan so far, and how many more may be tried."""

    def __init__(self, evaluator: Evaluator, name: str, best: Variant, control: Control, trials: int) -> None:
        self._evaluator = evaluator
        self._name = name
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
        self._control.step(min(1.0, self._done / (self._trials + 1)), f"trying {plan.passes}")
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
