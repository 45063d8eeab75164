"""Plans judged by the target's own compiler: of those that the model finds best, the one that it finds fastest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from engine.control import QUIET, Control
from engine.errors import UnsupportedError, WorkerError
from engine.execute.compiling import NO_OPTIONS, Unpredicted
from engine.execute.targets import check_installed
from engine.hlo.xla import XlaError
from engine.passes.pipeline import Pipeline
from engine.quantities import microseconds
from engine.session.evaluation import Evaluator
from engine.session.plan import Plan
from engine.session.production import LEFT_TO_THE_COMPILER, OURS, Produced, Production
from engine.session.tuning import Trial, Tuning

MOST = 4
"""Plans that a compiler is asked about."""


@dataclass(frozen=True, slots=True)
class Ruling:
    """What the compiler predicts for one program."""

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
    """What a compiler says of plans, the module as loaded first."""

    target: str
    versions: Mapping[str, str]
    rulings: tuple[Ruling, ...]

    @property
    def base(self) -> Ruling:
        return self.rulings[0]

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
    production: Production, evaluator: Evaluator, found: Tuning, *, most: int = MOST, control: Control = QUIET
) -> tuple[Tuning, Judgement]:
    """What the search found, with the plan as its best that the compiler finds fastest; and what it says of each.

    Plans that a compiler is given alike (it fuses and orders by itself) are asked about once, by the one that the model
    finds best. Raises UnsupportedError where the compiler is not installed.
    """
    check_installed(production.target)
    asked: list[Plan | None] = [None, *contenders(found.trials, most)]
    rulings, versions = [], dict[str, str]()
    for number, plan in enumerate(asked):
        part = control.part(number / len(asked), (number + 1) / len(asked))
        ruling, made = _rule(production, plan, part)
        rulings.append(ruling)
        versions = versions if made is None else dict(made.compiled.versions)
    judgement = Judgement(str(production.target), versions, tuple(rulings))
    chosen = judgement.best.plan
    best = found.base if chosen is None else evaluator.evaluate(chosen)
    return replace(found, best=best), judgement


def contenders(trials: Sequence[Trial], most: int) -> list[Plan]:
    """The best plan, by the model, of each program that a compiler would be given; the best of those first."""
    best: dict[str, Trial] = {}
    for trial in sorted((t for t in trials if t.metrics is not None), key=lambda t: t.makespan or 0):
        best.setdefault(_given(trial.plan), trial)
    return [trial.plan for trial in best.values()][:most]


def _given(plan: Plan) -> str:
    passes = Pipeline.parse(plan.passes).passes
    return str(Pipeline(tuple(step for step in passes if step.name not in LEFT_TO_THE_COMPILER)))


def _rule(production: Production, plan: Plan | None, control: Control) -> tuple[Ruling, Produced | None]:
    name = "as loaded" if plan is None else plan.passes
    control.step(0.0, f"compiling {name} for {production.target}")
    try:
        if plan is None:
            made = production.compiled(name, production.module, NO_OPTIONS, control=control)
        else:
            module = production.transformed(plan, control.part(0.0, 0.2)).module
            made = production.compiled(name, module, OURS[production.target.platform], control=control.part(0.2, 1.0))
    except (Unpredicted, UnsupportedError, WorkerError, XlaError) as reason:
        return Ruling(plan, None, why_not=str(reason)), None
    return Ruling(plan, made.cycles, made.variant.metrics.makespan, made.counts), made
