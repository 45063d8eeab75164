"""Plans become variants: run the passes, price the result, put it in order, simulate it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from engine.chips.budget import Budget
from engine.chips.chip import Chip, Exclusive
from engine.chips.inference import machine_for
from engine.chips.library import load_chip
from engine.chips.machine import Machine
from engine.control import QUIET, Control
from engine.cost.carrying import Loaded
from engine.cost.imports import ImportedCosts
from engine.cost.program import Program
from engine.cost.programs import prepare
from engine.ir.module import Module
from engine.ir.opcodes import COLLECTIVES
from engine.passes.passes import Context, Result
from engine.passes.pipeline import Pipeline
from engine.schedule.binding import held_back
from engine.schedule.problem import Schedule, Scheduler
from engine.schedule.programs import schedule_program
from engine.schedule.proof import proven_bound
from engine.schedule.registry import parse_scheduler
from engine.session.plan import (
    DEFAULT_SCHEDULERS,
    WHOLE,
    MachineSpec,
    Plan,
    best_passes,
    plain_plan,
    waits_as_compiled,
    whole_plan,
)
from engine.session.variant import Variant
from engine.simulate.simulator import makespan_of, simulate

DEFAULT_TRIAL = "bottom-up"
"""Scheduler by which passes try things that are to hold for any scheduler: plans that share passes share the result.
Schedulers that search for some seconds begin from what it made best, too."""


@dataclass
class Evaluator:
    """Evaluates plans of one module on one machine; what plans share is computed once.

    `evaluate` raises UsageError for plans that name unknown parts, and `Infeasible` where no order fits the plan's
    budget or memory cap.
    """

    module: Module
    spec: MachineSpec = field(default_factory=MachineSpec)
    imports: tuple[ImportedCosts, ...] = ()
    chip: Chip | None = None
    """Another chip than the one that `spec` names: one with changed figures, as studies try them."""
    machine: Machine = field(init=False)
    _loaded: Loaded | None = field(init=False, default=None)
    _results: dict[str, Result] = field(init=False, default_factory=dict)
    _programs: dict[str, Program] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        chip = self.chip or load_chip(self.spec.chip)
        self.machine = machine_for(self.module, chip, self.spec.topology, self.spec.mesh)
        loaded = Loaded(self.module, self.machine, self.imports)
        self._loaded = loaded if loaded.given_by else None

    def evaluate(self, plan: Plan, name: str = "", control: Control = QUIET, found: Schedule | None = None) -> Variant:
        """The variant that `plan` makes; `name` defaults to the plan in words. `found` is the schedule that its
        scheduler found before, of the same instructions: a search that took its time is not done anew."""
        pipeline = Pipeline.parse(plan.passes)
        scheduler, budget = self._means(plan)
        result, key = self._transform(pipeline, scheduler, budget, control.part(0.0, 0.3))
        program = self._price(key, result, control.part(0.3, 0.5))
        schedule = found
        if schedule is None:
            schedule = schedule_program(
                program, scheduler, budget, memory_cap=plan.memory_cap, keep=True, control=control.part(0.5, 0.8)
            )
        simulation = simulate(program, schedule, control=control.part(0.8, 1.0))
        runs = simulation.runs
        return Variant(
            name=name or describe(plan),
            machine=self.spec,
            plan=plan,
            program=program,
            candidates=result.candidates,
            fusions=result.fusions,
            schedule=schedule,
            timeline=simulation.timeline,
            metrics=simulation.metrics,
            notes=_distinct(
                self.module.notes, self.machine.notes, result.notes, program.notes, self._over(budget), _kept(schedule)
            ),
            held=held_back(program, schedule, runs),
            proven=proven_bound(program, schedule, runs),
        )

    def with_module(self, module: Module) -> Evaluator:
        """An evaluator of another module on the same machine, with the same costs; it may be made of this one."""
        made = Evaluator(module, self.spec, self.imports)
        made.machine, made._loaded = self.machine, self._loaded
        return made

    def transform(self, plan: Plan, control: Control = QUIET) -> Result:
        """What the plan's passes make of the module; nothing is scheduled."""
        result, _ = self._transform(Pipeline.parse(plan.passes), *self._means(plan), control)
        return replace(result, notes=_distinct(self.module.notes, self.machine.notes, result.notes))

    def program_of(self, plan: Plan, control: Control = QUIET) -> Program:
        """What `evaluate` puts in order: the module after the plan's passes, priced."""
        result, key = self._transform(Pipeline.parse(plan.passes), *self._means(plan), control.part(0.0, 0.6))
        return self._price(key, result, control.part(0.6, 1.0))

    def _means(self, plan: Plan) -> tuple[Scheduler, Budget]:
        return parse_scheduler(plan.scheduler), self.machine.chip.budget(plan.budget)

    def _over(self, budget: Budget) -> tuple[str, ...]:
        """What is said of a budget that lets more be in flight than a chip has by itself that may not have it."""
        chip = self.machine.chip
        own = chip.default_budget.total
        if chip.exclusive is Exclusive.NEVER or own is None or (budget.total is not None and budget.total <= own):
            return ()
        return (
            f"The budget {budget} lets more be in flight than the {own} of {chip.title}: its compiler keeps to that "
            "unless --xla_gpu_experimental_parallel_collective_overlap_limit is raised, and NCCL communicators that "
            "share devices can then deadlock.",
        )

    def _transform(
        self, pipeline: Pipeline, scheduler: Scheduler, budget: Budget, control: Control
    ) -> tuple[Result, str]:
        """What the passes make, and the key under which it is kept."""
        if not pipeline.tries:
            scheduler, budget = parse_scheduler(DEFAULT_TRIAL), self.machine.chip.default_budget
        elif hasattr(scheduler, "seconds"):  # a clock would decide what the passes make, and each try take as long
            scheduler = parse_scheduler(DEFAULT_TRIAL)
        key = f"{pipeline} {scheduler} {budget}"

        fastest: tuple[int, Program] | None = None

        def trial(module: Module) -> int:
            nonlocal fastest
            control.step(0.5, "trying")
            program = self._prepared(module)
            makespan = makespan_of(program, schedule_program(program, scheduler, budget))
            if fastest is None or makespan < fastest[0]:
                fastest = makespan, program
            return makespan

        if key not in self._results:
            # Passes one by one, so that plans that differ in a later one share what the earlier ones made.
            made, last = Result(self.module), pipeline.passes[-1:]
            if len(pipeline.passes) > 1:
                made, _ = self._transform(Pipeline(pipeline.passes[:-1]), scheduler, budget, control.part(0.0, 0.5))
                control = control.part(0.5, 1.0)
            # Where no times are given, passes decide by the model and need nothing priced.
            priced = self._prepared if self._loaded is not None else None
            context = Context(self.machine, control, trial, priced)
            self._results[key] = made.then(Pipeline(last).run(made.module, context))
            if fastest is not None and fastest[1].module is self._results[key].module:
                self._programs[key] = fastest[1]  # what was tried and kept is priced already
        return self._results[key], key

    def _price(self, key: str, result: Result, control: Control) -> Program:
        if key not in self._programs:
            control.step(0.0, "pricing instructions")
            self._programs[key] = self._prepared(result.module)
        return self._programs[key]

    def _prepared(self, module: Module) -> Program:
        # What passes make carries no estimates where the module as loaded carried none.
        estimates = self._loaded is not None
        return prepare(module, self.machine, imports=self.imports, estimates=estimates, loaded=self._loaded)


def describe(plan: Plan) -> str:
    """A plan in a few words: ``decompose, async-permute · bottom-up``."""
    passes = ", ".join(p.name for p in Pipeline.parse(plan.passes).passes)
    return f"{passes} · {plan.scheduler}" if passes else plan.scheduler


DECOMPOSED = "decomposed"
UNDECOMPOSED = f"nothing {DECOMPOSED}"
"""What a default plan is called first, before its scheduler: by what its gate is there for, and where it lets nothing
through."""


def truly_named(variant: Variant) -> Variant:
    """`variant`, where it has a default plan's name, called by what the plan did."""
    named, comma, rest = variant.name.partition(", ")
    if not comma or named not in (DECOMPOSED, UNDECOMPOSED):
        return variant
    named = DECOMPOSED if any(c.chosen for c in variant.candidates) else UNDECOMPOSED
    return replace(variant, name=f"{named}, {rest}")


def default_plans(
    module: Module, plan: Plan | None, budget: Budget | None = None, memory_cap: int | None = None
) -> Iterable[tuple[str, Plan]]:
    """Names and plans of a report: the module as loaded, then `plan`, or the best passes under each scheduler and what
    a compiler gets without decomposition, where the module as loaded is not that already.

    A name is empty where the plan speaks for itself.
    """
    yield "as loaded", plain_plan(module)
    if plan is not None:
        yield "", plan
        return
    for scheduler in DEFAULT_SCHEDULERS:
        yield f"{DECOMPOSED}, {scheduler}", Plan(best_passes(module), scheduler, budget, memory_cap)
    if not waits_as_compiled(module) and not COLLECTIVES.isdisjoint(module.by_opcode):
        yield WHOLE, whole_plan(module, budget, memory_cap)


def _kept(schedule: Schedule) -> tuple[str, ...]:
    """What is said of computations that stay in the module's own order."""
    if not schedule.kept:
        return ()
    counted = "1 computation stays" if len(schedule.kept) == 1 else f"{len(schedule.kept)} computations stay"
    return (f"{counted} in the order that the module carries: the one of {schedule.scheduler} is slower.",)


def _distinct(*groups: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(note for group in groups for note in group))
