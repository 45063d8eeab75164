"""What the window's jobs run in their worker processes. Nothing here imports Qt."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from engine.control import Cancelled, Control
from engine.cost.imports import ImportedCosts, parse_costs
from engine.cost.program import Program
from engine.errors import LapstrakeError
from engine.export.captured import check_bundled, check_dumped, with_mesh
from engine.hlo.partitions import awaits_partitioning
from engine.hlo.reading import read_here
from engine.ir.module import JobMesh, Module, Source
from engine.passes.pipeline import Pipeline
from engine.schedule.explaining import paragraphs
from engine.schedule.problem import Schedule
from engine.session.correspondence import Correspondence, correspond
from engine.session.evaluation import Evaluator, default_plans, truly_named
from engine.session.fairness import best_order
from engine.session.given import GivenFile, content_of
from engine.session.pairing import are_apart, paired_names
from engine.session.plan import MachineSpec, Plan, best_passes, plain_plan
from engine.session.pruning import pruned
from engine.session.session import Asked, Facts
from engine.session.variant import Variant
from engine.simulate.simulator import SimulationOptions, simulate
from engine.timeline.timeline import Metrics
from views.hlo_text.lines import Printed, printed

if TYPE_CHECKING:
    from engine.layout.outline import Outline
    from engine.layout.picture import Picture, Skeleton

_KEPT = 4
_LEAST = b"""HloModule least
ENTRY e {
  a = f32[8,8] parameter(0)
  b = f32[8,8] dot(a, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT c = f32[8,8] add(b, a)
}
"""
_evaluators: dict[tuple[Source | str, JobMesh | None, MachineSpec], Evaluator] = {}
_imports: dict[GivenFile, ImportedCosts] = {}


def warm(*, control: Control) -> None:
    """Read and plan the least of modules: what every other job needs is imported then, and nobody waits for it."""
    module = read_here(_LEAST, "warm")
    Evaluator(module).evaluate(plain_plan(module), control=control)


def evaluate(module: Module, spec: MachineSpec, plan: Plan, name: str, *, control: Control) -> Variant:
    """The variant that a plan makes. Evaluators are kept: plans that share passes share their work."""
    return evaluator_of(module, spec).evaluate(plan, name, control)


def prune(module: Module, spec: MachineSpec, plan: Plan, name: str, *, control: Control) -> Variant:
    """The variant that a plan makes, without the sites that do not pay in the simulator."""
    evaluator = evaluator_of(module, spec)
    base = evaluator.evaluate(plain_plan(module), control=control.part(0.0, 0.1))
    given = evaluator.evaluate(plan, name, control.part(0.1, 0.3))
    return truly_named(pruned(evaluator, base, given, control.part(0.3, 1.0)))


def order_best(module: Module, spec: MachineSpec, plan: Plan, name: str, *, control: Control) -> Variant:
    """The variant that a plan makes in the best of the default schedulers' orders."""
    return best_order(evaluator_of(module, spec), plan, name, control)


def explain_place(
    module: Module, spec: MachineSpec, plan: Plan, schedule: Schedule, instruction: int, *, control: Control
) -> tuple[str, ...]:
    """Paragraphs on where the scheduler put an instruction of what `plan` makes, and why."""
    program = evaluator_of(module, spec).program_of(plan, control.part(0.0, 0.8))
    return explain_in(program, schedule, instruction, control=control.part(0.8, 1.0))


def explain_in(program: Program, schedule: Schedule, instruction: int, *, control: Control) -> tuple[str, ...]:
    """The same of a program that no plan makes, such as a compiler's."""
    control.step(0.0, "explaining")
    return paragraphs(program, schedule, instruction)


def unfold(
    module: Module, spec: MachineSpec, plan: Plan, name: str, iteration: tuple[int, int], *, control: Control
) -> Variant:
    """A variant whose timeline shows one more iteration: (instruction id of the loop, number from 0)."""
    variant = evaluate(module, spec, plan, name, control=control.part(0.0, 0.6))
    options = SimulationOptions(expand=(iteration,))
    shown = simulate(variant.program, variant.schedule, options, control.part(0.6, 1.0))
    return replace(variant, timeline=shown.timeline)


def predict(module: Module, asked: tuple[Asked, ...], *, control: Control) -> tuple[Metrics | str, ...]:
    """Figures of several plans of one module, in their order; where a plan has none, the reason in its place."""
    found: list[Metrics | str] = []
    for number, (_, spec, plan) in enumerate(asked):
        part = control.part(number / len(asked), (number + 1) / len(asked))
        try:
            found.append(evaluate(module, spec, plan, "", control=part).metrics)
        except Cancelled:
            raise
        except LapstrakeError as error:
            found.append(str(error))
    return tuple(found)


def outline(after: Module, before: Module | None, *, control: Control) -> Outline:
    """A module folded for the graph, or two together."""
    from engine.layout.outlining import outline_of  # late, with networkx: nobody's first picture waits for it

    return outline_of(after, before, control)


def outline_steps(
    module: Module, spec: MachineSpec, plan: Plan, before: int, after: int, *, control: Control
) -> Outline:
    """The module after so many passes of a plan, and before the last of them, together."""
    from engine.layout.outlining import outline_of  # late, as above

    passes = Pipeline.parse(plan.passes).passes
    made = [
        evaluator_of(module, spec).transform(replace(plan, passes=str(Pipeline(passes[:count]))), control).module
        for count in (before, after)
    ]
    return outline_of(made[1], made[0], control.part(0.6, 1.0))


def arrange_graph(skeleton: Skeleton, *, control: Control) -> Picture:
    """What is shown of a graph, laid out."""
    from engine.layout.picture import arrange  # late, as above

    return arrange(skeleton, control)


def print_text(module: Module, beside: Module | None, *, control: Control) -> Printed:
    """HLO text of a module, aligned with that of another one if given."""
    from engine.hlo.printing import print_here  # late: only this job needs XLA's printer

    control.step(0.1, f"printing {module.name}")
    text = print_here(module).splitlines()
    other = print_here(beside).splitlines() if beside is not None else None
    control.step(0.5, "comparing" if beside is not None else "looking for definitions")
    names = paired_names(beside, module) if beside is not None and are_apart(beside, module) else None
    return printed(text, other, names)


def match(one: Module, two: Module, *, control: Control) -> Correspondence:
    """Which instructions of two modules stand for each other."""
    return correspond(one, two, control)


def load(data: bytes, path: str, *, control: Control) -> tuple[Module, Facts]:
    """A module from the bytes of a file, and what is said about it."""
    module = with_mesh(read_here(data, path, control))
    control.step(0.9, "counting")
    return module, facts_of(module)


def first_plans(module: Module) -> Iterator[tuple[str, Plan]]:
    """What is shown first: the module as loaded, decomposed, and what a compiler gets without decomposition."""
    for name, plan in default_plans(module, None):
        if plan.scheduler not in ("memory", "top-down"):
            yield name, plan


def facts_of(module: Module) -> Facts:
    """What is said about a module as loaded."""
    return Facts(
        name=module.name,
        instructions=sum(len(c.instructions) for c in module.proto.computations),
        computations=len(module.proto.computations),
        partitions=module.header.devices,
        scheduled=module.is_scheduled,
        sha256=module.source.sha256 if module.source is not None else "",
        whole=module.header.num_partitions > 1 and awaits_partitioning(module),
        notes=module.notes,
        plans=tuple(first_plans(module)),
        best_passes=best_passes(module),
        unbundled=_refused(check_bundled, module),
        undumped=_refused(check_dumped, module),
        names={i.id: i.name for c in module.proto.computations for i in c.instructions},
    )


def _refused(check: Callable[[Module], None], module: Module) -> str:
    """Why a check does not let a module pass; empty where it does."""
    try:
        check(module)
    except LapstrakeError as error:
        return str(error)
    return ""


def evaluator_of(module: Module, spec: MachineSpec) -> Evaluator:
    # The same bytes in another folder may be of a job with another mesh.
    key = (module.source or module.name, module.job_mesh, spec)
    if key not in _evaluators:
        while len(_evaluators) >= _KEPT:
            del _evaluators[next(iter(_evaluators))]
        _evaluators[key] = Evaluator(module, spec, tuple(map(_costs, spec.costs)))
    return _evaluators[key]


def _costs(file: GivenFile) -> ImportedCosts:
    if file not in _imports:
        while len(_imports) >= _KEPT:
            del _imports[next(iter(_imports))]
        _imports[file] = parse_costs(content_of(file), file.path)
    return _imports[file]
