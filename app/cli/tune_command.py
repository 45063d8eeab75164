"""`lapstrake tune`: the whole way from a module to a bundle that its job runs."""

from __future__ import annotations

from argparse import Namespace

from app.cli import loading, tables
from app.cli.console import note, progress
from app.cli.main import BAD_ANSWER, DONE
from engine.control import Control
from engine.errors import UsageError
from engine.execute.targets import Target, check_installed
from engine.export.bundle import check_bundled
from engine.export.captured import captured_file, read_capture
from engine.export.tuned import Bundled, write_tuned
from engine.quantities import gain_text, time_text
from engine.session.choices import DIMENSIONS, Choices, parse_dimensions
from engine.session.evaluation import Evaluator
from engine.session.judging import Judgement, judge, judge_loaded, searches_itself, tune_by_compiler
from engine.session.plan import plain_plan
from engine.session.production import Production
from engine.session.tuning import Trial, Tuning, tune, tune_order, without_decomposition
from engine.session.variant import costs_in_words


def run(arguments: Namespace) -> int:
    """Search, judge, verify, write; 1 when the numbers differ (nothing is written then), or nothing is faster and that
    was required."""
    judgement = None
    with progress(arguments, limited=False) as control:
        file = captured_file(arguments.file, scheduled=arguments.order_only)
        module = loading.load(file, control.part(0.0, 0.05))
        capture = read_capture(file)
        check_bundled(module)
        if arguments.order_only and capture is None:
            raise UsageError(
                f"{arguments.file}: --order-only needs a folder that lapstrake capture wrote: what a compiler made of "
                "the job is known again by what was captured with it"
            )
        production = None
        evaluator = loading.evaluator(module, arguments)
        if arguments.target:
            target = Target.parse(arguments.target)
            check_installed(target)
            production = Production(module, target, arguments.mesh)
            evaluator = Evaluator(module, production.spec, evaluator.imports)
        with progress(arguments) as limited:
            if production is not None and _by_cycles(production, arguments):
                loaded = judge_loaded(production, limited.part(0.05, 0.1))
                cap, searching = loading.memory_cap(arguments), limited.part(0.1, 0.7)
                found, judgement = tune_by_compiler(production, evaluator, loaded, memory_cap=cap, control=searching)
            else:
                found = _search(evaluator, arguments, limited)
        if production is not None and judgement is None:
            found, judgement = judge(production, evaluator, found, control=control.part(0.4, 0.7))
        made = write_tuned(
            evaluator,
            found,
            arguments.output,
            capture,
            check=not arguments.no_verify,
            seed=arguments.seed,
            judgement=judgement,
            control=control.part(0.7, 1.0),
        )
    _show(arguments, found, judgement, made)
    if not made.written:
        print("No bundle was written: a plan that changes the numbers is no plan.")
        return BAD_ANSWER
    print(f"bundle: {made.path}")
    if capture is None and module.is_scheduled:
        print(
            "made from what a compiler had scheduled, which no job can be compared with: the job runs its own step. "
            "Make it from a dump right after partitioning, or from what lapstrake capture wrote"
        )
    elif capture is None:
        print("made from a bare dump: the job compiles its step once more at its start, to compare it")
    return BAD_ANSWER if arguments.require_gain and found.best is found.base else DONE


def _by_cycles(production: Production, arguments: Namespace) -> bool:
    """Whether the compiler judges every plan, not the model's best alone."""
    named = loading.plan(arguments) is not None
    if arguments.order_only or (named and not arguments.search):
        return False
    return searches_itself(production.target, parse_dimensions(arguments.search) if arguments.search else DIMENSIONS)


def _search(evaluator: Evaluator, arguments: Namespace, control: Control) -> Tuning:
    plan, cap = loading.plan(arguments), loading.memory_cap(arguments)
    if arguments.order_only:
        return tune_order(evaluator, arguments.scheduler, cap, control)
    if plan is None or arguments.search:
        start = Choices(budget=loading.budget(arguments)) if plan is None else Choices.of(plan)
        dimensions = parse_dimensions(arguments.search) if arguments.search else DIMENSIONS
        return tune(evaluator, memory_cap=cap, start=start, dimensions=dimensions, control=control)
    base = evaluator.evaluate(plain_plan(evaluator.module), "as loaded", control.part(0.0, 0.5))
    best = evaluator.evaluate(plan, control=control.part(0.5, 1.0))
    return Tuning(base, best, (Trial(plan, best.metrics),), finished=True)


def _show(arguments: Namespace, found: Tuning, judgement: Judgement | None, made: Bundled) -> None:
    for text in found.best.notes:
        note(arguments, f"note: {text}")
    by_cycles = [] if judgement is None else [r for r in judgement.rulings if r.plan is not None]
    alike = found.trials if len(found.trials) >= len(by_cycles) else by_cycles
    possible = [t for t in alike if t.makespan]
    stopped = "" if found.finished else ", stopped at the time limit"
    searched = f" over {', '.join(found.dimensions)}" if found.dimensions else ""
    print(f"{len(alike)} plans tried{searched}, {len(alike) - len(possible)} not possible{stopped}")
    tables.show_trials(found)
    tables.show_variants([found.base] if found.best is found.base else [found.base, found.best])
    before, after = found.base.metrics.makespan, found.best.metrics.makespan
    if judgement is not None:
        tables.show_rulings(judgement)
    if found.best is found.base:
        whose = "the model" if judgement is None else f"the compiler for {judgement.target}"
        print(f"nothing was faster than the module as loaded, by {whose} ({time_text(before)} by the model)")
    else:
        plan = found.best.plan
        print(f"best: {plan.passes} | {plan.scheduler} | {found.best.schedule.budget}")
        whose = costs_in_words([found.base, found.best])
        print(f"{time_text(before)} → {time_text(after)} ({gain_text(before, after)}), predicted by {whose}")
        if judgement is not None and judgement.base.cycles and judgement.best.cycles:
            fewer = gain_text(judgement.base.cycles, judgement.best.cycles)
            print(
                f"{judgement.base.cycles:,} → {judgement.best.cycles:,} cycles ({fewer}), predicted by the compiler "
                f"for {judgement.target}"
            )
        whole = without_decomposition(found.trials)
        if whole is not None and plan.passes != whole.plan.passes:
            alone = whole.makespan or 0
            print(
                f"without decomposition, its collectives asynchronous as compilers make them, it takes "
                f"{time_text(alone)} ({gain_text(before, alone)})"
            )
    print(made.verdict)
    for text in made.warnings:
        print(f"may be undone: {text}")
