"""What a job gets of a plan: modules, order, costs, trace, report, and the package that runs it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.resources import files

from engine.chips.machine import Machine
from engine.control import QUIET, Control
from engine.errors import LapstrakeError, UsageError
from engine.execute.verifying import Verification
from engine.export.captured import Capture, check_bundled, check_dumped, dumped
from engine.export.costs_text import costs_text
from engine.export.hlo import export_bytes
from engine.export.job_program import job_program
from engine.export.manifest import manifest, sealed, verified
from engine.export.perfetto import trace_bytes
from engine.export.report_html import report_html
from engine.export.routes import Kind, readme, undoing
from engine.export.schedule_text import schedule_text
from engine.export.tagging import fusions, grouped, names, orders, tagged
from engine.ir.module import Module
from engine.passes.pipeline import Pipeline
from engine.quantities import gain_text, time_text
from engine.session.evaluation import Evaluator
from engine.session.fairness import is_faster
from engine.session.judging import Judgement
from engine.session.plan import Plan
from engine.session.production import LEFT_TO_THE_COMPILER
from engine.session.tuning import Tuning
from engine.session.variant import Variant, costs_in_words, gain_in_words, unlike_in_words
from engine.simulate.simulator import simulate_computations

DECOMPOSES_NOTHING = (
    "the plan decomposes nothing: the job's compiler gets the program that it had, and makes collectives asynchronous "
    "by itself; only the order is the plan's"
)
"""Among the warnings of a bundle; nothing that a compiler could undo."""


@dataclass(frozen=True, eq=False)
class Contents:
    """A bundle's files, and what a user has to know of them."""

    files: Mapping[str, bytes]
    """By name."""
    warnings: tuple[str, ...]
    """What of the plan the target's compiler will undo, with the flags that stop it."""


def bundle_files(
    evaluator: Evaluator,
    found: Tuning,
    verification: Verification | None,
    unverified: str,
    capture: Capture | None,
    judgement: Judgement | None = None,
    control: Control = QUIET,
) -> Contents:
    """Every file of the bundle for the best plan found. `unverified` says why there is no `verification`; without a
    `capture` the module is taken for a bare dump.

    Raises what `check_bundled` and `check_dumped` do, and UsageError for passes that cannot reach the job.
    """
    check_bundled(evaluator.module)
    if capture is None:
        check_dumped(evaluator.module)
    known = capture or dumped(evaluator.module)
    made = _make(evaluator, found.best, order_only=known.scheduled is not None)
    warnings = made.warnings(evaluator.machine)
    control.step(0.3, "writing modules")
    content = _modules(evaluator.module, made)
    control.step(0.8, "writing reports")
    content |= _reports(evaluator, found, made, judgement)
    content |= _payload()
    content["README.md"] = readme(
        made.module.name,
        evaluator.module.header.num_partitions,
        _kind(known, order_only=made.order_only),
        _gain(found, made.shown, judgement),
        warnings,
    ).encode()
    told = manifest(evaluator, found, made.shown, known) | {
        "verification": verified(verification, unverified),
        "structure": not made.order_only,
        "changed": made.changed,
        "fusions": [] if made.order_only else fusions(made.shown.program),
        "warnings": list(warnings),
        "judged": None if judgement is None else judgement.as_json(),
    }
    content["manifest.json"] = sealed(told, content)
    return Contents(content, warnings)


@dataclass(frozen=True, eq=False)
class _Made:
    """What a plan makes of a module, as its bundle has it."""

    module: Module
    """What the job compiles, tagged; the module itself where only its order is the plan's."""
    shown: Variant
    """`module` under the passes that say how its compiler should do it, in the plan's order."""
    order_only: bool
    """Whether the job's compiler asks for nothing but the order."""
    changed: bool
    """Whether the job compiles another program than it had."""

    def warnings(self, machine: Machine) -> tuple[str, ...]:
        """What of the plan a compiler will undo; nothing where it has done everything else before it asks."""
        if self.order_only:
            return ()
        undone = undoing(self.shown.program, self.shown.schedule, machine)
        return undone if self.changed else (*undone, DECOMPOSES_NOTHING)


def _make(evaluator: Evaluator, best: Variant, *, order_only: bool) -> _Made:
    """Raises UsageError for passes that cannot reach the job."""
    if not order_only:
        made = evaluator.transform(replace(best.plan, passes=_structure(best.plan))).module
        changed = made.proto != evaluator.module.proto
        made = tagged(made)
        return _Made(made, _shown(evaluator.with_module(made), best), order_only=False, changed=changed)
    if best.plan.passes:
        raise UsageError(
            "a module that its compiler has scheduled can only be put in another order, but the plan has the passes "
            f"{best.plan.passes}: tune partitioned.hlo for them"
        )
    return _Made(evaluator.module, best, order_only=True, changed=False)


def _shown(evaluator: Evaluator, best: Variant) -> Variant:
    """What the rest of the best plan makes of the tagged module, in the very order that was found and told of.

    Raises LapstrakeError where that order is of other instructions.
    """
    plan = _rest(best.plan)
    program = evaluator.program_of(plan)
    made, wanted = ({c: graph.names for c, graph in p.graphs.items()} for p in (program, best.program))
    if made != wanted:
        raise LapstrakeError(
            f"{evaluator.module.name}: the passes {best.plan.passes} made other instructions for the bundle than the "
            "order that was found is of; no bundle was written: tune again, and report this if it comes again"
        )
    return evaluator.evaluate(plan, found=best.schedule)


def _modules(original: Module, made: _Made) -> dict[str, bytes]:
    """The modules before and after, and the order, in the forms that jobs and tools read."""
    program, schedule = made.shown.program, made.shown.schedule
    content = {
        "original.hlo.pb": export_bytes(original, "pb"),
        "tuned.hlo": export_bytes(program.module, "hlo", schedule),
        "tuned.hlo.pb": export_bytes(program.module, "pb", schedule),
        "order.json": _json((names if made.order_only else orders)(program, schedule)),
    }
    if not made.order_only:
        content["tuned.mlirbc"] = job_program(made.module)
        content["grouped.mlirbc"] = job_program(grouped(made.module, program, schedule))
    return content


def _reports(evaluator: Evaluator, found: Tuning, made: _Made, judgement: Judgement | None) -> dict[str, bytes]:
    """What people and other tools read of the plan."""
    shown, program = made.shown, made.shown.program
    compared = list(dict.fromkeys((found.base, found.against, found.best)))
    return {
        "schedule.pbtxt": schedule_text(program.module, simulate_computations(program, shown.schedule)).encode(),
        "costs.pbtxt": costs_text(program).encode(),
        "trace.perfetto.json.gz": trace_bytes(shown.timeline, program.module, f"{made.module.name}: {found.best.name}"),
        "report.html": report_html(evaluator.module, evaluator.machine, compared, found, judgement).encode(),
    }


def _kind(known: Capture, *, order_only: bool) -> Kind:
    if order_only:
        return Kind.ORDER
    if known.signature is not None:
        return Kind.CAPTURED
    return Kind.SCHEDULED if known.fingerprint["kind"] == "scheduled" else Kind.DUMPED


def _gain(found: Tuning, shown: Variant, judgement: Judgement | None) -> str:
    """What the plan gains, over what, by whose costs."""
    against, after = found.against, shown.metrics.makespan
    before, loaded = against.metrics.makespan, found.base.metrics.makespan
    text = f"{against.name} {time_text(before)}, with the plan {time_text(after)} ({gain_in_words(against, shown)})"
    if against is not found.base:
        text += f"; as loaded {time_text(loaded)} ({gain_in_words(found.base, shown)})"
    text += f"; predicted by {costs_in_words((found.base, against, shown))}."
    if judgement is not None and judgement.base.cycles and judgement.best.cycles:
        change = gain_text(judgement.base.cycles, judgement.best.cycles)
        text += (
            f" By the compiler for {judgement.target}: {judgement.base.name} {judgement.base.cycles:,} cycles, with "
            f"the plan {judgement.best.cycles:,} ({change})."
        )
    elif names := shown.priced_unlike(against):
        text += f" No gain can be read from that: {unlike_in_words(names)}."
    elif not is_faster(shown, against):
        text += " By that it gains nothing."
    return f"{text} Nothing of this was measured."


def _structure(plan: Plan) -> str:
    """Passes that change what a job runs; the others say how its compiler should do it."""
    return str(Pipeline(tuple(p for p in Pipeline.parse(plan.passes).passes if p.name not in LEFT_TO_THE_COMPILER)))


def _rest(plan: Plan) -> Plan:
    passes = Pipeline(tuple(p for p in Pipeline.parse(plan.passes).passes if p.name in LEFT_TO_THE_COMPILER))
    return Plan(str(passes), plan.scheduler, plan.budget, plan.memory_cap)


def _payload() -> dict[str, bytes]:
    payload = files("engine.export.payload")
    modules = payload.joinpath("lapstrake_runtime").iterdir()
    runtime = {f"lapstrake_runtime/{m.name}": m.read_bytes() for m in modules if m.name.endswith(".py")}
    return runtime | {"lapstrake_job.py": payload.joinpath("lapstrake_job.py").read_bytes()}


def _json(content: Mapping[str, list[str]]) -> bytes:
    return json.dumps(content, indent=1).encode()
