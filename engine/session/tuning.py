"""Search for the best plan: one choice after the other, each tried with the best found for the rest.

Trying every combination would take hundreds of evaluations; choices act on different things (what is decomposed, how,
what is fused, in which order), so improving one at a time until nothing helps finds as much in a few dozen. What was
found is then put in order by local search, the only scheduler that takes the time it is given.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from engine import options
from engine.chips.budget import Budget
from engine.control import QUIET, Cancelled, Control
from engine.errors import UnsupportedError, UsageError
from engine.passes.candidate import Candidate
from engine.passes.rows import Row, rows_of
from engine.quantities import bytes_text
from engine.schedule.errors import Infeasible
from engine.session.choices import AXES, DIMENSIONS, SITES, Choices, is_allowed
from engine.session.evaluation import Evaluator
from engine.session.fairness import fair_base, is_faster
from engine.session.plan import AS_LOADED, DEFAULT_SCHEDULERS, Plan, best_passes, plain_plan, whole_plan
from engine.session.pruning import pruned
from engine.session.variant import Variant
from engine.timeline.timeline import Metrics

MOST_ROWS = 24
"""Rows of sites whose verdict is turned in each round."""
POLISH = "improve"
"""The scheduler that the best plan is tried with in the end."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One plan that was evaluated, or could not be."""

    plan: Plan
    metrics: Metrics | None
    """By the costs of the evaluator; None where the plan is not possible."""
    why_not: str = ""
    unlike: tuple[str, ...] = ()
    """Instructions whose given time prices either this plan or the module as loaded, but not both: a difference of
    their times is then no gain."""

    @property
    def makespan(self) -> int | None:
        """Picoseconds."""
        return None if self.metrics is None else self.metrics.makespan


@dataclass(frozen=True, eq=False)
class Tuning:
    """What a search found."""

    base: Variant
    """The module as loaded."""
    best: Variant
    """The fastest that fits the memory cap and is priced as `base` is; `base` itself where nothing that fits was
    faster. Where only what is not priced alike is faster than `base`, that: a gain it is not."""
    trials: tuple[Trial, ...]
    finished: bool
    """False where a time limit or a cancel ended the search; `best` is then the best so far."""
    dimensions: tuple[str, ...] = ()
    """What was searched, in `DIMENSIONS`' order."""
    fair: Variant | None = None
    """What a compiler makes of the module by itself, where that is faster than `base`: the module whole, its
    collectives asynchronous."""

    @property
    def against(self) -> Variant:
        """What the best has to beat: the faster of the module as loaded, and of what a compiler makes of it."""
        return self.fair or self.base

    @property
    def gains(self) -> bool:
        """Whether the best is faster than that, by more than rounding."""
        return is_faster(self.best, self.against)


def without_decomposition(trials: Iterable[Trial]) -> Trial | None:
    """The fastest trial that leaves the program as it is, but for what compilers do by themselves: what a decomposed
    plan has to beat. None where none was tried."""
    own = ("async-permute", "fuse")
    whole = [t for t in trials if t.metrics and all(name in own for name, _ in options.split(t.plan.passes))]
    return min(whole, key=lambda trial: trial.makespan or 0, default=None)


def tune(
    evaluator: Evaluator,
    *,
    memory_cap: int | None = None,
    start: Choices | None = None,
    dimensions: Collection[str] = DIMENSIONS,
    rounds: int = 2,
    control: Control = QUIET,
) -> Tuning:
    """The fastest plan found within `rounds` passes over `dimensions`; the others stay as in `start`.

    Anytime: a cancel keeps what was found. Each Trial is told of to `control` as it is made. Raises Cancelled only when
    nothing was evaluated yet, and Infeasible where neither a plan nor the module as loaded fits `memory_cap`.
    """
    base = evaluator.evaluate(plain_plan(evaluator.module), "as loaded", control.part(0.0, 0.05))
    start = start or Choices.of(Plan(best_passes(evaluator.module)))
    search = _Search(evaluator, memory_cap, base, control.part(0.05, 1.0))
    finished = True
    try:
        _descend(search, start, dimensions, rounds)
    except Cancelled:
        finished = False
    searched = tuple(name for name in DIMENSIONS if name in dimensions)
    best = fastest(base, search.found, memory_cap, len(search.trials))
    # What the best could have had in flight, it could have had whole; a search that was stopped has no time for all.
    budgets = [start.budget, best.plan.budget, *(plan.budget for plan in search.trials if finished)]
    fair = fair_base(evaluator, base, budgets, memory_cap)
    return Tuning(base, best, tuple(search.trials.values()), finished, searched, fair)


def fastest(base: Variant, found: Iterable[Variant], memory_cap: int | None, tried: int) -> Variant:
    """The fastest of the module as loaded, where it fits the cap, and of what was found under it; of two that take
    equally long the one that needs less memory. Of what is not priced as the module as loaded is, only where nothing
    else is faster than that. Raises Infeasible where there is none."""
    fitting = [*([base] if _fits(base, memory_cap) else []), *found]
    if not fitting:
        least = base.metrics.peak_memory
        raise Infeasible(
            f"none of {tried} plans fits a memory cap of {bytes_text(memory_cap or 0)}, and the module as loaded takes "
            f"{bytes_text(least)} by the model: raise the cap, or leave it away",
            least_peak=least,
        )
    alike = [variant for variant in fitting if not variant.priced_unlike(base)]
    best = min(alike, key=_least, default=base)
    return min(fitting, key=_least) if best is base else best


def _least(variant: Variant) -> tuple[int, int]:
    return variant.metrics.makespan, variant.metrics.peak_memory


def _fits(variant: Variant, memory_cap: int | None) -> bool:
    return memory_cap is None or variant.metrics.peak_memory <= memory_cap


def tune_order(
    evaluator: Evaluator,
    scheduler: str | None = None,
    memory_cap: int | None = None,
    control: Control = QUIET,
    *,
    budget: Budget | None = None,
) -> Tuning:
    """The best order of the module's own instructions, by `scheduler` or by the best of all; nothing else is changed.

    Of two that take equally long the one that needs less memory is better. Raises Infeasible where none fits the cap.
    """
    base = evaluator.evaluate(AS_LOADED, "as loaded", control.part(0.0, 0.2))
    found = []
    trials = []
    for name in (scheduler,) if scheduler else DEFAULT_SCHEDULERS:
        plan = Plan("", name, budget, memory_cap)
        try:
            variant = evaluator.evaluate(plan, control=control)
        except Infeasible as reason:
            trials.append(Trial(plan, None, str(reason)))
        else:
            found.append(variant)
            trials.append(Trial(plan, variant.metrics, unlike=variant.priced_unlike(base)))
        control.tell(trials[-1])
    # A scheduler that was asked for is used, whatever it gains.
    best = found[0] if scheduler and found else fastest(base, found, memory_cap, len(trials))
    return Tuning(base, best, tuple(trials), finished=True, dimensions=("scheduler",))


def _descend(search: _Search, at: Choices, dimensions: Collection[str], rounds: int) -> None:
    given = at.budget
    search.measure(at)
    if SITES in dimensions:
        at = search.comparable(at)
        search.consider(replace(whole_plan(search.module, at.budget, search.cap), scheduler=at.scheduler))
    if {SITES, "chain"} <= set(dimensions):
        at = search.pruned(at)
    if {SITES, "scheduler"} <= set(dimensions) and search.module.is_scheduled:
        for scheduler in DEFAULT_SCHEDULERS:
            search.consider(Plan("", scheduler, at.budget, search.cap))
    axes = [axis for name, axis in AXES.items() if name in dimensions]
    for number in range(rounds):
        before = at
        for step, axis in enumerate(axes):
            search.reached((number + 0.5 * step / len(axes)) / rounds)
            for option in axis(at):
                if is_allowed(option.budget, search.chip, given):
                    at = search.better(at, option)
        rows = search.contested(at) if SITES in dimensions else ()
        for step, row in enumerate(rows):
            search.reached((number + 0.5 + 0.5 * step / MOST_ROWS) / rounds)
            at = search.better(at, at.turned(row))
        if at == before:
            break
    if rounds and "scheduler" in dimensions:
        search.better(at, replace(at, scheduler=POLISH))


def contested(candidates: Iterable[Candidate]) -> tuple[Row, ...]:
    """Rows of sites whose verdict could be another, those with most at stake first, MOST_ROWS of them."""
    # Chains are turned as a whole, by the option of that name.
    sites = [c for c in candidates if c.gate is not None and c.kind != "chain"]
    return tuple(sorted(rows_of(sites), key=lambda row: -abs(row.gain))[:MOST_ROWS])


_Rank = tuple[int, float]
"""How many given times price either a plan or the module as loaded alone, then picoseconds, infinite where the plan is
not possible: what cannot be compared is left first."""


class _Search:
    """Evaluated points, so that none is evaluated twice, and the best of them."""

    def __init__(self, evaluator: Evaluator, memory_cap: int | None, base: Variant, control: Control) -> None:
        self._evaluator = evaluator
        self.module = evaluator.module
        self.chip = evaluator.machine.chip
        self.cap = memory_cap
        self._control = control
        self._fraction = 0.0
        self._base = base
        self._best: dict[bool, Variant] = {}
        """The fastest plan so far, of those priced as the module as loaded is, and of the others."""
        self.trials: dict[Plan, Trial] = {}

    @property
    def found(self) -> tuple[Variant, ...]:
        """The fastest plans."""
        return tuple(self._best.values())

    def reached(self, fraction: float) -> None:
        """How far the search has come, 0..1."""
        self._fraction = fraction

    def measure(self, choices: Choices) -> _Rank:
        return self.consider(choices.plan(self.cap))

    def consider(self, plan: Plan) -> _Rank:
        self._control.step(self._fraction, f"trying {plan.passes} · {plan.scheduler}")
        if plan not in self.trials:
            self.trials[plan] = self._try(plan)
            self._control.tell(self.trials[plan])
        trial = self.trials[plan]
        return (sys.maxsize, float("inf")) if trial.makespan is None else (len(trial.unlike), trial.makespan)

    def better(self, at: Choices, option: Choices) -> Choices:
        """The better of two, `at` where they are equal."""
        return option if self.measure(option) < self.measure(at) else at

    def comparable(self, at: Choices) -> Choices:
        """`at`, or without decomposing those collectives whose given times price the module as loaded alone."""
        trial = self.trials[at.plan(self.cap)]
        if not trial.unlike:
            return at
        candidates = self._evaluator.transform(trial.plan).candidates
        rows = rows_of([c for c in candidates if c.chosen and c.kind != "chain" and c.id in trial.unlike])
        return self.better(at, replace(at, forbid=at.forbid | {row.key for row in rows}))

    def pruned(self, at: Choices) -> Choices:
        """The faster of `at`, and of the same without the rows of sites that do not pay in the simulator: a search is
        no worse than what is shown without one."""
        if self.trials[at.plan(self.cap)].metrics is None:
            return at
        control = self._control.silent()
        try:
            given = self._evaluator.evaluate(at.plan(self.cap), control=control)
            plan = pruned(self._evaluator, self._base, given, control).plan
        except Infeasible:
            return at
        self.consider(plan)
        decomposes = any(name == "decompose" for name, _ in options.split(plan.passes))
        return self.better(at, Choices.of(plan)) if decomposes else at

    def contested(self, choices: Choices) -> tuple[Row, ...]:
        """Rows of sites whose verdict could be another, those with most at stake first."""
        plan = choices.plan(self.cap)
        if self.trials[plan].metrics is None:
            return ()
        return contested(self._evaluator.transform(plan).candidates)

    def _try(self, plan: Plan) -> Trial:
        try:
            variant = self._evaluator.evaluate(plan, control=self._control.silent())
        except (Infeasible, UnsupportedError, UsageError) as reason:
            return Trial(plan, None, str(reason))
        unlike = variant.priced_unlike(self._base)
        best = self._best.get(bool(unlike))
        if best is None or variant.metrics.makespan < best.metrics.makespan:
            self._best[bool(unlike)] = variant
        return Trial(plan, variant.metrics, unlike=unlike)
