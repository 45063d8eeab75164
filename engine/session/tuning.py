"""Search for the best plan: one choice after the other, each tried with the best found for the rest.

Trying every combination would take hundreds of evaluations; choices act on different things (what is decomposed, how,
what is fused, in which order), so improving one at a time until nothing helps finds as much in a few dozen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from engine.chips.budget import Budget
from engine.control import QUIET, Cancelled, Control
from engine.errors import UnsupportedError
from engine.passes.rows import Row, rows_of
from engine.schedule.errors import Infeasible
from engine.session.evaluation import Evaluator
from engine.session.plan import AS_LOADED, DEFAULT_SCHEDULERS, Plan, plain_plan
from engine.session.variant import Variant


@dataclass(frozen=True, slots=True)
class Choices:
    """One point of the search."""

    decompose: tuple[tuple[str, str], ...] = ()
    """Options of `decompose` that differ from their defaults, as (name, value)."""
    force: frozenset[str] = frozenset()
    """Rows of sites that are decomposed although the gate says no."""
    forbid: frozenset[str] = frozenset()
    """Rows of sites that stay whole although the gate says yes."""
    kinds: str = "permute"
    """What `async-permute` makes asynchronous."""
    fuse: str = "overlap"
    """Policy of `fuse`; ``none`` leaves the pass out."""
    scheduler: str = "bottom-up"
    budget: Budget | None = None

    def plan(self, memory_cap: int | None) -> Plan:
        options = [f"{name}={value}" for name, value in self.decompose]
        options += [f"{name}={';'.join(sorted(rows))}" for name, rows in self._overrides() if rows]
        passes = [
            f"decompose{{{','.join(options)}}}" if options else "decompose",
            "async-permute" if self.kinds == "permute" else f"async-permute{{kinds={self.kinds}}}",
        ]
        if self.fuse != "none":
            passes.append(f"fuse{{policy={self.fuse}}}")
        return Plan(",".join(passes), self.scheduler, self.budget, memory_cap)

    def _overrides(self) -> tuple[tuple[str, frozenset[str]], ...]:
        return ("force", self.force), ("forbid", self.forbid)

    def turned(self, row: Row) -> Choices:
        """The same with the other verdict for one row of sites."""
        key, chosen = frozenset({row.key}), row.candidates[0].chosen
        force = self.force - key if chosen else self.force | key
        forbid = self.forbid | key if chosen else self.forbid - key
        # An override that is taken back leaves the row to the gate.
        if chosen and row.key in self.force:
            forbid = self.forbid
        if not chosen and row.key in self.forbid:
            force = self.force
        return replace(self, force=force, forbid=forbid)

    def with_option(self, name: str, value: str) -> Choices:
        """The same with one option of `decompose` set; ``auto`` is its default."""
        rest = tuple(pair for pair in self.decompose if pair[0] != name)
        return replace(self, decompose=rest if value == "auto" else (*rest, (name, value)))


@dataclass(frozen=True, slots=True)
class Trial:
    """One plan that was evaluated, or could not be."""

    plan: Plan
    makespan: int | None
    """Picoseconds, by the costs of the evaluator; None where the plan is not possible."""
    why_not: str = ""


@dataclass(frozen=True, eq=False)
class Tuning:
    """What a search found."""

    base: Variant
    """The module as loaded."""
    best: Variant
    """The fastest that was found; `base` itself where nothing was faster."""
    trials: tuple[Trial, ...]
    finished: bool
    """False where a time limit or a cancel ended the search; `best` is then the best so far."""


MOST_ROWS = 24
"""Rows of sites whose verdict is turned in each round."""

_AXES: Sequence[Callable[[Choices], Iterator[Choices]]] = (
    lambda c: (replace(c, scheduler=s) for s in ("bottom-up", "top-down", "memory")),
    lambda c: (replace(c, fuse=f) for f in ("overlap", "default", "auto", "none")),
    lambda c: (replace(c, kinds=k) for k in ("permute", "all")),
    lambda c: (c.with_option("chain", v) for v in ("auto", "on", "off")),
    lambda c: (c.with_option("ring", v) for v in ("auto", "one", "both")),
    lambda c: (c.with_option("unroll", v) for v in ("auto", "1", "2")),
    lambda c: (c.with_option("form", v) for v in ("auto", "rolled", "unrolled")),
    lambda c: (replace(c, budget=b) for b in (None, *(Budget(n) for n in (1, 2, 4, 8, 16)))),
)


def tune(
    evaluator: Evaluator,
    *,
    memory_cap: int | None = None,
    start: Choices | None = None,
    rounds: int = 2,
    control: Control = QUIET,
) -> Tuning:
    """The fastest plan found within `rounds` passes over all choices; anytime: a cancel keeps what was found.

    Raises Cancelled only when nothing was evaluated yet.
    """
    base = evaluator.evaluate(plain_plan(evaluator.module), "as loaded", control.part(0.0, 0.05))
    search = _Search(evaluator, memory_cap, base)
    finished = True
    try:
        _descend(search, start or Choices(), rounds, control.part(0.05, 1.0))
    except Cancelled:
        finished = False
    return Tuning(base, search.best, tuple(search.trials.values()), finished)


def tune_order(
    evaluator: Evaluator, scheduler: str | None = None, memory_cap: int | None = None, control: Control = QUIET
) -> Tuning:
    """The best order of the module's own instructions, by `scheduler` or by the best of all; nothing else is changed.

    Of two that take equally long the one that needs less memory is better.
    """
    base = evaluator.evaluate(AS_LOADED, "as loaded", control.part(0.0, 0.2))
    found = []
    trials = []
    for name in (scheduler,) if scheduler else DEFAULT_SCHEDULERS:
        plan = Plan("", name, None, memory_cap)
        try:
            variant = evaluator.evaluate(plan, control=control)
        except Infeasible as reason:
            trials.append(Trial(plan, None, str(reason)))
            continue
        found.append(variant)
        trials.append(Trial(plan, variant.metrics.makespan))
    # A scheduler that was asked for is used, whatever it gains.
    offered = found if scheduler and found else [base, *found]
    best = min(offered, key=lambda v: (v.metrics.makespan, v.metrics.peak_memory))
    return Tuning(base, best, tuple(trials), finished=True)


def _descend(search: _Search, at: Choices, rounds: int, control: Control) -> None:
    search.measure(at)
    for number in range(rounds):
        before = at
        part = control.part(number / rounds, (number + 1) / rounds)
        for step, axis in enumerate(_AXES):
            for option in axis(at):
                at = search.better(at, option, part, 0.5 * step / len(_AXES))
        for step, row in enumerate(search.contested(at)):
            at = search.better(at, at.turned(row), part, 0.5 + 0.5 * step / MOST_ROWS)
        if at == before:
            return


class _Search:
    """Evaluated points, so that none is evaluated twice, and the best of them."""

    def __init__(self, evaluator: Evaluator, memory_cap: int | None, base: Variant) -> None:
        self._evaluator = evaluator
        self._cap = memory_cap
        self.best = base
        self.trials: dict[Plan, Trial] = {}

    def measure(self, choices: Choices) -> float:
        """Makespan in picoseconds, infinite where the plan is not possible."""
        plan = choices.plan(self._cap)
        if plan not in self.trials:
            self.trials[plan] = self._try(plan)
        found = self.trials[plan].makespan
        return float("inf") if found is None else found

    def better(self, at: Choices, option: Choices, control: Control, fraction: float) -> Choices:
        """The faster of two, `at` where they are equal."""
        plan = option.plan(None)
        control.step(fraction, f"trying {plan.passes} · {plan.scheduler}")
        return option if self.measure(option) < self.measure(at) else at

    def contested(self, choices: Choices) -> tuple[Row, ...]:
        """Rows of sites whose verdict could be another, those with most at stake first."""
        candidates = self._evaluator.transform(choices.plan(self._cap)).candidates
        # Chains are turned as a whole, by the option of that name.
        sites = [c for c in candidates if c.gate is not None and c.kind != "chain"]
        rows = rows_of(sites)
        return tuple(sorted(rows, key=lambda row: -abs(row.gain))[:MOST_ROWS])

    def _try(self, plan: Plan) -> Trial:
        try:
            variant = self._evaluator.evaluate(plan)
        except (Infeasible, UnsupportedError) as reason:
            return Trial(plan, None, str(reason))
        if variant.metrics.makespan < self.best.metrics.makespan:
            self.best = variant
        return Trial(plan, variant.metrics.makespan)
