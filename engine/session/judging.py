"""Plans judged by the target's own compiler: those that the model finds best, or all of a search by its cycles."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from engine.control import QUIET, Control
from engine.errors import UnsupportedError, WorkerError
from engine.execute.compiling import ASYNCHRONOUS_WHOLE, DECOMPOSED_LATE, NO_OPTIONS, Options, Unpredicted
from engine.execute.targets import Target, check_installed
from engine.hlo.xla import XlaError
from engine.ir.module import Module
from engine.quantities import microseconds
from engine.session.choices import DIMENSIONS
from engine.session.evaluation import Evaluator
from engine.session.fairness import fair_base
from engine.session.plan import Plan, plain_plan
from engine.session.production import Production
from engine.session.production_tuning import tune_production
from engine.session.tuning import Trial, Tuning, fastest

MOST = 4
"""Programs of plans that a compiler is asked about."""
OWN: Mapping[str, tuple[tuple[str, Options], ...]] = MappingProxyType(
    {
        "tpu": (
            ("as loaded, asynchronous", ASYNCHRONOUS_WHOLE),
            ("as loaded, decomposed by the compiler", DECOMPOSED_LATE),
        ),
        "cuda": (("as loaded", NO_OPTIONS),),
    }
)
"""What a compiler is asked to make of the module as loaded, by platform."""


_Asked = tuple[str, Plan | None, Module, Options]
"""A name in words, the plan, what its passes made, and the compiler's options."""


@dataclass(frozen=True, slots=True)
class Ruling:
    """What the compiler predicts for one program."""

    name: str
    """What was compiled, in words."""
    plan: Plan | None
    """None for the module as loaded."""
    cycles: int | None
    """None where it predicted nothing."""
    makespan: int = 0
    """The same in picoseconds of the compiler's clock."""
    counts: bool = True
    """Whether the figure may be compared: not where permutes go the same way at once, which it takes for free."""
    why_not: str = ""


@dataclass(frozen=True)
class Judgement:
    """What a compiler says of programs: of the module as loaded, then of plans."""

    target: str
    versions: Mapping[str, str]
    rulings: tuple[Ruling, ...]

    @property
    def base(self) -> Ruling:
        """What the compiler makes of the module as loaded, the fastest of its own ways."""
        own = [r for r in self.rulings if r.plan is None]
        return min(own, key=lambda ruling: (ruling.cycles is None, ruling.cycles or 0))

    @property
    def best(self) -> Ruling:
        """The fastest that may be compared; the module as loaded where nothing was faster."""
        able = [r for r in self.rulings if r.cycles is not None and r.counts]
        return min(able, key=lambda ruling: ruling.cycles or 0, default=self.base)

    def as_json(self) -> dict[str, Any]:
        return {
            "target": self.target,
            "versions": dict(self.versions),
            "rulings": [
                {
                    "name": r.name,
                    "passes": None if r.plan is None else r.plan.passes,
                    "cycles": r.cycles,
                    "predicted_us": microseconds(r.makespan),
                    "counts": r.counts,
                    "why_not": r.why_not,
                }
                for r in self.rulings
            ],
        }


def judge(
    production: Production, evaluator: Evaluator, found: Tuning, *, control: Control = QUIET
) -> tuple[Tuning, Judgement]:
    """What the search found, with the plan as its best that the compiler finds fastest; and what it says of each.

    Plans that leave a compiler the same program (it fuses and orders by itself) are asked about once, by the one that
    the model finds best. Raises UnsupportedError where the compiler is not installed.
    """
    check_installed(production.target)
    known = contenders(production, found.trials, MOST, control.part(0.0, 0.1))
    asked = [*_own(production), *((plan.passes, plan, module, production.options(plan)) for plan, module in known)]
    judgement = _ask(production, asked, control.part(0.1, 1.0))
    chosen = judgement.best.plan
    if chosen is not None:
        best = found.best if chosen == found.best.plan else evaluator.evaluate(chosen)
        return replace(found, best=best), judgement
    cap = found.best.plan.memory_cap
    fits = cap is None or found.base.metrics.peak_memory <= cap
    return replace(found, best=found.base if fits else found.best), judgement


def searches_itself(target: Target, dimensions: Collection[str] = DIMENSIONS) -> bool:
    """Whether plans for `target` are searched by its compiler's cycles: that search has dimensions of its own, and a
    schedule to read them from."""
    return target.platform == "tpu" and frozenset(dimensions) == frozenset(DIMENSIONS)


def judge_loaded(production: Production, control: Control = QUIET) -> Judgement:
    """What the compiler makes of the module as loaded. Raises UnsupportedError where it is not installed."""
    check_installed(production.target)
    return _ask(production, _own(production), control)


def tune_by_compiler(
    production: Production,
    evaluator: Evaluator,
    loaded: Judgement,
    *,
    memory_cap: int | None = None,
    control: Control = QUIET,
) -> tuple[Tuning, Judgement]:
    """The plan of `tune_production`, and what the compiler says of all that was tried, beside what it says of the
    module as `loaded`; the fastest first.

    The variants are by the evaluator's costs, as is the only trial, the best plan: those of the search have the
    compiler's, and are in the judgement. Anytime: a cancel keeps what was found. Each of the compiler's trials is told
    of to `control` as it is made.
    """
    base = evaluator.evaluate(plain_plan(evaluator.module), "as loaded", control.part(0.0, 0.05))
    searched = tune_production(production, memory_cap=memory_cap, control=control.part(0.05, 1.0))
    possible = sorted((t for t in searched.trials if t.metrics is not None), key=lambda t: t.makespan or 0)
    refused = [t for t in searched.trials if t.metrics is None]
    tried = tuple(_ruling(trial, searched.clock) for trial in (*possible, *refused))
    judgement = replace(loaded, rulings=(*loaded.rulings, *tried))
    chosen = judgement.best.plan
    best = fastest(base, (), memory_cap, len(tried)) if chosen is None else evaluator.evaluate(chosen)
    trials = () if chosen is None else (Trial(chosen, best.metrics),)
    fair = fair_base(evaluator, base, [None, best.plan.budget])
    return Tuning(base, best, trials, searched.finished, fair=fair), judgement


def _ruling(trial: Trial, clock: float) -> Ruling:
    name = f"{trial.plan.passes} · {trial.plan.scheduler}"
    if trial.makespan is None:
        return Ruling(name, trial.plan, None, why_not=trial.why_not)
    return Ruling(name, trial.plan, round(trial.makespan * clock / 1e6), trial.makespan)


def _own(production: Production) -> list[_Asked]:
    return [(name, None, production.module, options) for name, options in OWN[production.target.platform]]


def _ask(production: Production, asked: Sequence[_Asked], control: Control) -> Judgement:
    rulings, versions = [], dict[str, str]()
    for number, (name, plan, module, options) in enumerate(asked):
        part = control.part(number / len(asked), (number + 1) / len(asked))
        part.step(0.0, f"compiling {name} for {production.target}")
        try:
            made = production.compiled(name, module, options, scheduled_only=True, control=part)
        except (Unpredicted, UnsupportedError, WorkerError, XlaError) as reason:
            rulings.append(Ruling(name, plan, None, why_not=str(reason)))
            continue
        versions = dict(made.compiled.versions)
        rulings.append(Ruling(name, plan, made.cycles, made.variant.metrics.makespan, made.counts))
    return Judgement(str(production.target), versions, tuple(rulings))


def contenders(
    production: Production, trials: Sequence[Trial], most: int, control: Control = QUIET
) -> list[tuple[Plan, Module]]:
    """The best plan, by the model, of each program that the compiler would be given, with that program; the best first.

    Texts of plans differ where programs do not: what ``auto`` comes to can also be named.
    """
    found: dict[bytes, tuple[Plan, Module]] = {}
    for trial in sorted((t for t in trials if t.metrics is not None), key=lambda t: t.makespan or 0):
        if len(found) >= most:
            break
        module = production.transformed(trial.plan, control).module
        program = hashlib.sha256(module.proto.SerializeToString(deterministic=True)).digest()
        found.setdefault(program, (trial.plan, module))
    return list(found.values())
