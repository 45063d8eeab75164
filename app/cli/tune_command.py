"""`lapstrake tune`: the whole way from a module to a bundle that its job runs."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import replace

from app.cli import loading, tune_report
from app.cli.console import progress
from app.cli.main import BAD_ANSWER, DONE
from engine.control import Cancelled, Control
from engine.errors import UsageError
from engine.execute.targets import Target, check_installed
from engine.export.bundle_folder import check_place
from engine.export.captured import (
    captured_file,
    check_bundled,
    check_dumped,
    check_one_function,
    check_source,
    read_capture,
)
from engine.export.tuned import write_tuned
from engine.session.choices import DIMENSIONS, Choices, parse_dimensions
from engine.session.evaluation import Evaluator
from engine.session.fairness import fair_base, with_fusion
from engine.session.judging import judge, judge_loaded, searches_itself, tune_by_compiler
from engine.session.plan import Plan, best_passes, plain_plan
from engine.session.production import Production
from engine.session.tuning import Trial, Tuning, tune, tune_order


def run(arguments: Namespace) -> int:
    """Search, judge, verify, write; 1 when the numbers differ (nothing is written then), or nothing is faster and that
    was required."""
    _check(arguments)
    judgement = None
    with progress(arguments, limited=False) as control:
        file = captured_file(arguments.file, scheduled=arguments.order_only)
        module = loading.load(file, control.part(0.0, 0.05))
        capture = read_capture(file)
        check_bundled(module)
        if capture is None:
            check_dumped(module)
        check_place(arguments.output)
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
            production = Production(module, target, arguments.mesh, imports=evaluator.imports)
            evaluator = Evaluator(module, production.spec, evaluator.imports)
        with progress(arguments) as limited:
            if production is not None and _by_cycles(production, arguments):
                loaded = judge_loaded(production, limited.part(0.05, 0.1))
                cap, searching = loading.memory_cap(arguments), limited.part(0.1, 0.7)
                found, judgement = tune_by_compiler(production, evaluator, loaded, memory_cap=cap, control=searching)
            else:
                found = _searched(evaluator, arguments, limited)
        if production is not None and judgement is None:
            found, judgement = judge(production, evaluator, found, control=control.part(0.4, 0.7))
        faster = found.gains if judgement is None else judgement.best.plan is not None
        wanted = faster or _is_named(arguments) or arguments.bundle_anyway
        if not wanted or tune_report.nothing_possible(found):
            tune_report.show(arguments, found, judgement)
            tune_report.show_nothing_faster(found, judgement, "--scheduler" if arguments.order_only else "--passes")
            return BAD_ANSWER if arguments.require_gain else DONE
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
    tune_report.show(arguments, found, judgement)
    tune_report.show_best(found, judgement, faster=faster)
    tune_report.show_bundle(made, module, capture)
    if not made.written:
        return BAD_ANSWER
    return BAD_ANSWER if arguments.require_gain and not faster else DONE


def _check(arguments: Namespace) -> None:
    """Before anything is read. Raises UsageError for what does not go together."""
    check_source(arguments.file)
    check_one_function(arguments.file)
    if arguments.search is not None:
        parse_dimensions(arguments.search)
    if not arguments.order_only:
        return
    for option, given in (("passes", arguments.passes), ("search", arguments.search), ("target", arguments.target)):
        if given is not None:
            raise UsageError(
                f"--order-only keeps the instructions that the job's compiler made, so it does not go with --{option}: "
                "leave one of the two out (--scheduler, --budget and --memory-cap it takes)"
            )


def _is_named(arguments: Namespace) -> bool:
    """Whether a plan was asked for, and not a search: it is bundled whatever it gains."""
    return (arguments.passes is not None or arguments.scheduler is not None) and arguments.search is None


def _by_cycles(production: Production, arguments: Namespace) -> bool:
    """Whether the compiler judges every plan, not the model's best alone."""
    if _is_named(arguments):
        return False
    return searches_itself(production.target, _dimensions(arguments))


def _dimensions(arguments: Namespace) -> frozenset[str]:
    return frozenset(DIMENSIONS) if arguments.search is None else parse_dimensions(arguments.search)


def _searched(evaluator: Evaluator, arguments: Namespace, control: Control) -> Tuning:
    """What `_search` finds. Raises UsageError where the time limit passed before anything was."""
    try:
        return _search(evaluator, arguments, control)
    except Cancelled:
        if arguments.time_limit is None:
            raise
        raise UsageError(
            f"--time-limit {arguments.time_limit:g} s passed before one plan was tried: a longer one was expected"
        ) from None


def _search(evaluator: Evaluator, arguments: Namespace, control: Control) -> Tuning:
    plan, cap, budget = (
        loading.plan(arguments, evaluator.module),
        loading.memory_cap(arguments),
        loading.budget(arguments),
    )
    if arguments.order_only:
        return tune_order(evaluator, arguments.scheduler, cap, control, budget=budget)
    if not _is_named(arguments):
        start = Choices.of(plan or Plan(best_passes(evaluator.module), budget=budget))
        return tune(evaluator, memory_cap=cap, start=start, dimensions=_dimensions(arguments), control=control)
    assert plan is not None
    plan, said = with_fusion(plan, evaluator.module)
    base = evaluator.evaluate(plain_plan(evaluator.module), "as loaded", control.part(0.0, 0.3))
    fair = fair_base(evaluator, base, [budget], cap, control.part(0.3, 0.6))
    best = evaluator.evaluate(plan, control=control.part(0.6, 1.0))
    best = replace(best, notes=(*best.notes, said)) if said else best
    return Tuning(base, best, (Trial(plan, best.metrics, unlike=best.priced_unlike(base)),), finished=True, fair=fair)
