"""The search for the plan that a production compiler finds fastest, in its own predicted cycles.

What is searched is the plans' space of `engine.session.choices`, but for what the compiler does itself. The compiler is
stopped behind its scheduler: a plan takes a second or two, most of it reading what the compiler made.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

from engine.control import QUIET, Cancelled, Control
from engine.errors import LapstrakeError, UnsupportedError, WorkerError
from engine.hlo.xla import XlaError
from engine.ir.module import Module
from engine.passes.passes import Result
from engine.passes.rows import Row
from engine.schedule.errors import Infeasible
from engine.session.choices import Choices
from engine.session.plan import Plan
from engine.session.production import PIN_BUDGET, Ordered, Produced, Production
from engine.session.tuning import MOST_ROWS, Trial, contested
from engine.timeline.timeline import Metrics

START = Choices(fuse="none", budget=PIN_BUDGET)
"""Fusing and making collectives asynchronous are left to the compiler."""


def _sites(at: Choices) -> Iterator[Choices]:
    for flatten, gate in product(("none", "contracting", "all"), ("auto", "off")):
        yield replace(at, flatten=flatten).with_option("gate", gate)


def _shapes(at: Choices) -> Iterator[Choices]:
    for chain, ring, unroll, form in product(("auto", "off"), ("auto", "one"), ("1", "2"), ("unrolled", "rolled")):
        yield (
            at.with_option("chain", chain)
            .with_option("ring", ring)
            .with_option("unroll", unroll)
            .with_option("form", form)
        )


def _blocks(at: Choices) -> Iterator[Choices]:
    for blocks in ("joined", "stacked", "separate"):
        yield at.with_option("blocks", blocks)


AXES: Sequence[Callable[[Choices], Iterator[Choices]]] = (_sites, _shapes, _blocks)
"""All combinations of each: what an einsum costs this compiler depends on how it is written, so no option helps
by itself."""

ALL = START.with_option("gate", "off")
STARTS = (START, ALL, ALL.with_option("blocks", "stacked"))
"""Verdicts of rows are turned one at a time: from the gate's on, and from everything decomposed. At last with blocks
stacked from the beginning: forms that need it are not found by the axes one after the other where a chain is good."""

FEW = (
    "flatten,decompose",
    "flatten,decompose{blocks=stacked}",
    "flatten,decompose{gate=off,blocks=stacked}",
    "flatten,decompose{gate=off,ring=both,blocks=stacked}",
    "flatten,decompose{gate=off,chain=off,ring=one,unroll=1,form=unrolled}",
    "flatten",
    "",
    "async-permute",
)
"""Passes of which the fastest are taken where none are named: what the gate decides; everything decomposed in each of
the forms that einsums can be cheap in for this compiler, whatever our own prices say; and nothing, at last with
gathers blocking, as the compiler has them by default."""

QUICK = ("as-loaded", "bottom-up", "top-down")
"""Schedulers whose orders are tried for every module; ``as-loaded`` keeps the compiler's own, but for permutes that go
the same way at once."""

THOROUGH = "improve"
"""Tried where the quick ones come within NEAR of the best so far."""

NEAR = 1.15

POLISH = "improve{work=15000000,seconds=60}"
"""The scheduler that the best plan is tried with in the end."""


class CompilersJudge:
    """Judges plans by the compiler's costs: what it makes of the plan's module, in the best order that our schedulers
    find for it, held to one permute each way at a time."""

    def __init__(self, production: Production) -> None:
        self._production = production
        self._results: dict[str, Result] = {}
        self._known: dict[bytes, tuple[str, Metrics] | LapstrakeError] = {}
        """By the module's content and the order's limits: the scheduler and what it takes, or why not."""
        self._best: int | None = None
        self.clock = 0.0
        """The compiler's cycles per microsecond; 0 before it predicted anything."""

    def transform(self, plan: Plan, control: Control = QUIET) -> Result:
        if plan.passes not in self._results:
            self._results[plan.passes] = self._production.transformed(plan, control)
        return self._results[plan.passes]

    def judge(self, plan: Plan) -> tuple[Plan, Metrics]:
        """The plan with the scheduler whose order is best, and what it takes then.

        Raises Infeasible, and UnsupportedError for what the compiler refuses or predicts no schedule for.
        """
        module = self.transform(plan).module
        key = hashlib.sha256(module.proto.SerializeToString(deterministic=True)).digest()
        key += f"{plan.budget} {plan.memory_cap} {sorted(self._production.options(plan))}".encode()
        if key not in self._known:
            self._known[key] = self._order(module, plan)
        known = self._known[key]
        if isinstance(known, LapstrakeError):
            raise known
        scheduler, metrics = known
        return replace(plan, scheduler=scheduler), metrics

    def polish(self, plan: Plan) -> tuple[Plan, Metrics]:
        """The plan in the order of POLISH, and what it takes then. Raises as `judge`."""
        polished = replace(plan, scheduler=POLISH)
        made = self._compiled(self.transform(plan).module, plan)
        return polished, self._production.ordered(made, polished).variant.metrics

    def _order(self, module: Module, plan: Plan) -> tuple[str, Metrics] | LapstrakeError:
        try:
            made = self._compiled(module, plan)
            self.clock = made.clock
            found = [self._production.ordered(made, replace(plan, scheduler=name)) for name in QUICK]
            if self._best is None or _makespan(_fastest(found)) < NEAR * self._best:
                found.append(self._production.ordered(made, replace(plan, scheduler=THOROUGH)))
        except (UnsupportedError, Infeasible) as reason:
            return reason
        fastest = _fastest(found)
        makespan = _makespan(fastest)
        self._best = makespan if self._best is None else min(self._best, makespan)
        return fastest.variant.plan.scheduler, fastest.variant.metrics

    def _compiled(self, module: Module, plan: Plan) -> Produced:
        options = self._production.options(plan)
        try:
            return self._production.compiled(plan.passes, module, options, scheduled_only=True)
        except (WorkerError, XlaError) as reason:
            raise UnsupportedError(str(reason)) from None


@dataclass(frozen=True, slots=True)
class Searched:
    """What a search found."""

    trials: tuple[Trial, ...]
    finished: bool
    """False where a time limit or a cancel ended it."""
    clock: float = 0.0
    """The compiler's cycles per microsecond; 0 where it predicted nothing."""

    @property
    def best(self) -> Trial | None:
        """The fastest; None where no plan was possible."""
        possible = [trial for trial in self.trials if trial.metrics is not None]
        return min(possible, key=lambda trial: trial.makespan or 0, default=None)


def tune_production(
    production: Production, *, rounds: int = 2, memory_cap: int | None = None, control: Control = QUIET
) -> Searched:
    """Plans of our passes and schedulers that take ever fewer of the compiler's cycles, with one permute each way at a
    time: FEW, then from each of STARTS all of each axis, then the other verdict for each row of sites, until a round
    changes nothing or `rounds` are over; the best of all then in one more order.

    Anytime: a cancel keeps what was found. Each Trial is told of to `control` as it is made.
    """
    judge = CompilersJudge(production)
    search = _Search(judge, memory_cap)
    finished = True
    try:
        search.control = control.part(0.0, 0.05)
        search.few()
        for number, start in enumerate(STARTS):
            search.control = control.part(max(0.05, number / len(STARTS)), (number + 1) / len(STARTS))
            search.descend(start, rounds)
        search.polish()
    except Cancelled:
        finished = False
    return Searched(tuple(search.trials.values()), finished, judge.clock)


def first_plan(production: Production, *, memory_cap: int | None = None, control: Control = QUIET) -> Searched:
    """The best of FEW by the compiler's cycles, each in the best order of QUICK and perhaps THOROUGH.

    Anytime: a cancel keeps what was found. Each Trial is told of to `control` as it is made.
    """
    judge = CompilersJudge(production)
    search = _Search(judge, memory_cap)
    search.control = control
    finished = True
    try:
        search.few()
    except Cancelled:
        finished = False
    return Searched(tuple(search.trials.values()), finished, judge.clock)


class _Search:
    """Plans that were judged, so that none is judged twice."""

    def __init__(self, judge: CompilersJudge, memory_cap: int | None) -> None:
        self.trials: dict[Plan, Trial] = {}
        self.control = QUIET
        self._judge, self._cap = judge, memory_cap

    def few(self) -> None:
        """Try FEW."""
        for number, passes in enumerate(FEW):
            self._measure(Plan(passes, START.scheduler, PIN_BUDGET, self._cap), number / len(FEW))

    def descend(self, at: Choices, rounds: int) -> None:
        for number in range(rounds):
            before = at
            for step, axis in enumerate(AXES):
                for option in axis(at):
                    at = self._better(at, option, (number + 0.5 * step / len(AXES)) / rounds)
            for step, row in enumerate(self._rows(at)):
                at = self._better(at, at.turned(row), (number + 0.5 + 0.5 * step / MOST_ROWS) / rounds)
            if at == before:
                return

    def polish(self) -> None:
        """Try the best plan in one more order."""
        best = Searched(tuple(self.trials.values()), finished=True).best
        if best is not None:
            self.control.step(1.0, f"ordering {best.plan.passes}")
            polished = Trial(*self._judge.polish(best.plan))
            self.trials[polished.plan] = polished
            self.control.tell(polished)

    def _better(self, at: Choices, option: Choices, fraction: float) -> Choices:
        """The faster of two, `at` where they are equal."""
        before, after = at.plan(self._cap), option.plan(self._cap)
        return option if self._measure(after, fraction) < self._measure(before, fraction) else at

    def _measure(self, plan: Plan, fraction: float) -> float:
        """Picoseconds, infinite where the plan is not possible."""
        if plan not in self.trials:
            self.control.step(fraction, f"compiling {plan.passes}")
            self.trials[plan] = self._try(plan)
            self.control.tell(self.trials[plan])
        makespan = self.trials[plan].makespan
        return float("inf") if makespan is None else makespan

    def _rows(self, at: Choices) -> Sequence[Row]:
        return contested(self._judge.transform(at.plan(self._cap)).candidates)

    def _try(self, plan: Plan) -> Trial:
        try:
            return Trial(*self._judge.judge(plan))
        except (Infeasible, UnsupportedError) as reason:
            return Trial(plan, None, str(reason))


def _fastest(found: Sequence[Ordered]) -> Ordered:
    return min(found, key=_makespan)


def _makespan(ordered: Ordered) -> int:
    return ordered.variant.metrics.makespan
