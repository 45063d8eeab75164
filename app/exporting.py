"""What the Export tab's jobs run in their worker processes. Nothing here imports Qt."""

from __future__ import annotations

from dataclasses import dataclass

from app.work import evaluator_of
from engine.control import Control
from engine.errors import UsageError
from engine.execute.targets import Target
from engine.export.captured import read_capture
from engine.export.contents import content_of
from engine.export.routes import undoing
from engine.export.tuned import Bundled, write_tuned
from engine.export.writing import write_atomically
from engine.ir.module import Module
from engine.schedule.problem import Schedule
from engine.session.choices import Choices
from engine.session.evaluation import Evaluator
from engine.session.fairness import fair_base
from engine.session.judging import Judgement, judge, judge_loaded, tune_by_compiler
from engine.session.plan import MachineSpec, Plan, plain_plan
from engine.session.production import Production
from engine.session.tuning import Trial, Tuning, tune, tune_order
from engine.session.variant import Variant, costs_in_words


@dataclass(frozen=True, slots=True)
class Begun:
    """Told before the first trial: what the others are compared with."""

    makespan: int
    """Of the module as loaded, in picoseconds."""
    costs: str
    """Whose costs these are."""


@dataclass(frozen=True, slots=True)
class Found:
    """How a search ended. Its trials were told of on the way."""

    best: Plan | None
    """None where nothing was faster than what the compiler makes of the module by itself."""
    finished: bool
    dimensions: tuple[str, ...]
    judgement: Judgement | None = None
    """Of the compiler by whose cycles was searched; the trials have its costs then, not the model's."""
    against: tuple[str, int] | None = None
    """What the best had to beat by the model, and its makespan in picoseconds; None where a compiler judged."""
    schedule: Schedule | None = None
    """Of `best`: the bundle holds what the search told of."""


def write_variant(
    module: Module, variant: Variant, to: str, path: str, *, control: Control
) -> tuple[int, tuple[str, ...]]:
    """Bytes written, and what of the plan the target's compiler will undo where it is given the module."""
    base = variant
    if to == "report":
        base = evaluator_of(module, variant.machine).evaluate(plain_plan(module), "as loaded", control.part(0.0, 0.5))
    content = content_of(variant, to, base, module, control.part(0.5, 0.9))
    control.step(0.95, f"writing {path}")
    write_atomically(path, content)
    given = to in ("hlo", "pb", "stablehlo") and bool(variant.schedule.orders)
    return len(content), undoing(variant.program, variant.schedule, variant.program.machine) if given else ()


def search(
    module: Module,
    spec: MachineSpec,
    start: Plan,
    dimensions: tuple[str, ...],
    memory_cap: int | None,
    seconds: float | None,
    order_only: bool,  # positional as all that a job is started with
    *,
    control: Control,
) -> Found:
    """Search from a plan; tells of a Begun, then of each Trial."""
    evaluator = evaluator_of(module, spec)
    base = evaluator.evaluate(plain_plan(module), "as loaded", control.part(0.0, 0.05))
    control.tell(Begun(base.metrics.makespan, costs_in_words([base])))
    limited = control.part(0.05, 1.0).within(seconds)
    if order_only:
        found = tune_order(evaluator, None, memory_cap, limited)
    else:
        choices = Choices.of(start)
        found = tune(evaluator, memory_cap=memory_cap, start=choices, dimensions=dimensions, control=limited)
    against = (found.against.name, found.against.metrics.makespan)
    best = found.best.plan if found.gains else None
    return Found(
        best, found.finished, found.dimensions, against=against, schedule=found.best.schedule if best else None
    )


def search_compiler(
    module: Module,
    spec: MachineSpec,
    target: str,
    memory_cap: int | None,
    seconds: float | None,
    *,
    control: Control,
) -> Found:
    """Search by a compiler's cycles; tells of a Begun where it predicts the module as loaded, then of each Trial, all
    by its costs."""
    limited = control.within(seconds)
    production = _production(module, spec, target)
    loaded = judge_loaded(production, limited.part(0.0, 0.05))
    if loaded.base.cycles is not None:
        control.tell(Begun(loaded.base.makespan, f"the compiler for {target}"))
    evaluator = evaluator_of(module, spec)
    found, judgement = tune_by_compiler(
        production, evaluator, loaded, memory_cap=memory_cap, control=limited.part(0.05, 1.0)
    )
    best = None if found.best is found.base else found.best.plan
    return Found(best, found.finished, found.dimensions, judgement, schedule=found.best.schedule if best else None)


def ask_compiler(
    module: Module, spec: MachineSpec, trials: tuple[Trial, ...], target: str, *, control: Control
) -> tuple[Plan | None, Judgement]:
    """The plan that a target's compiler finds fastest, None for the module as loaded; and what it says of each."""
    evaluator = evaluator_of(module, spec)
    found = _tuning(evaluator, trials, None)
    judged, judgement = judge(_production(module, spec, target), evaluator, found, control=control)
    return (None if judged.best is found.base else judged.best.plan), judgement


def _production(module: Module, spec: MachineSpec, target: str) -> Production:
    known = Target.parse(target)
    if known.known.chip != spec.chip:
        raise UsageError(
            f"the plans are for {spec.chip}, {target} has {known.known.chip}: choose that chip in the plan line"
        )
    return Production(module, known, spec.mesh, imports=evaluator_of(module, spec).imports)


def write_bundle_of(
    module: Module,
    spec: MachineSpec,
    plan: Plan,
    trials: tuple[Trial, ...],
    found: Found | None,
    path: str,
    check: bool,  # positional as all that a job is started with
    judgement: Judgement | None,
    *,
    control: Control,
) -> Bundled:
    """Verify and bundle a plan; `trials`, by the model, and `found` are the search that led to it, if one did."""
    evaluator = evaluator_of(module, spec)
    control.step(0.0, "planning")
    tuning = _tuning(evaluator, trials, found, plan)
    capture = read_capture(module.source.path) if module.source is not None else None
    return write_tuned(
        evaluator, tuning, path, capture, check=check, judgement=judgement, control=control.part(0.1, 1.0)
    )


def _tuning(evaluator: Evaluator, trials: tuple[Trial, ...], found: Found | None, plan: Plan | None = None) -> Tuning:
    base = evaluator.evaluate(plain_plan(evaluator.module), "as loaded")
    known = found.schedule if found is not None and found.best == plan else None
    best = base if plan is None else evaluator.evaluate(plan, found=known)
    finished, dimensions = (True, ()) if found is None else (found.finished, found.dimensions)
    # Every budget that was tried is one that the plan could have had.
    budgets = [None, best.plan.budget, *(trial.plan.budget for trial in trials)]
    return Tuning(base, best, trials, finished, dimensions, fair_base(evaluator, base, budgets))
