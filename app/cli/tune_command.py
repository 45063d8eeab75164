"""`lapstrake tune`: the whole way from a module to a bundle that its job runs."""

from __future__ import annotations

from argparse import Namespace

from app.cli import loading, tables
from app.cli.console import note, progress
from app.cli.main import BAD_ANSWER, DONE
from engine.control import Control
from engine.errors import UnsupportedError
from engine.execute.verifying import Verification, verify
from engine.export.bundle import bundle_files, write_bundle
from engine.export.captured import captured_file, read_capture
from engine.quantities import gain_text, time_text
from engine.session.evaluation import Evaluator
from engine.session.tuning import Trial, Tuning, tune, tune_order


def run(arguments: Namespace) -> int:
    """Search, verify, write; 1 when the numbers differ (nothing is written then), or nothing is faster and that was
    required."""
    with progress(arguments, limited=False) as control:
        file = captured_file(arguments.file, scheduled=arguments.order_only)
        module = loading.load(file, control.part(0.0, 0.05))
        capture = read_capture(file)
        evaluator = loading.evaluator(module, arguments)
        with progress(arguments) as limited:
            found = _search(evaluator, arguments, limited)
        verification, unverified = _verify(evaluator, found, arguments, control.part(0.7, 0.9))
        if verification is None or verification.equal:
            content = bundle_files(
                evaluator, found.best, found.base, verification, unverified, capture, control.part(0.9, 1.0)
            )
            write_bundle(arguments.output, content)
    _show(arguments, found, verification, unverified)
    if verification is not None and not verification.equal:
        print("No bundle was written: a plan that changes the numbers is no plan.")
        return BAD_ANSWER
    print(
        f"bundle: {arguments.output}" + ("" if capture else " (not captured: it cannot check which job it belongs to)")
    )
    return BAD_ANSWER if arguments.require_gain and found.best is found.base else DONE


def _search(evaluator: Evaluator, arguments: Namespace, control: Control) -> Tuning:
    plan = loading.plan(arguments)
    if arguments.order_only:
        return tune_order(evaluator, arguments.scheduler, loading.memory_cap(arguments), control)
    if plan is None:
        return tune(evaluator, memory_cap=loading.memory_cap(arguments), control=control)
    base = tune(evaluator, rounds=0, memory_cap=plan.memory_cap, control=control).base
    best = evaluator.evaluate(plan)
    return Tuning(base, best, (Trial(plan, best.metrics.makespan),), finished=True)


def _verify(
    evaluator: Evaluator, found: Tuning, arguments: Namespace, control: Control
) -> tuple[Verification | None, str]:
    if arguments.no_verify:
        return None, "verification was switched off"
    if arguments.order_only:
        return None, "an order of the same instructions changes no numbers"
    changed = evaluator.transform(found.best.plan).module
    try:
        return verify(evaluator.module, changed, seed=arguments.seed, control=control), ""
    except UnsupportedError as reason:
        return None, str(reason)


def _show(arguments: Namespace, found: Tuning, verification: Verification | None, unverified: str) -> None:
    for text in found.best.notes:
        note(arguments, f"note: {text}")
    possible = [t for t in found.trials if t.makespan is not None]
    stopped = "" if found.finished else ", stopped at the time limit"
    print(f"{len(found.trials)} plans tried, {len(found.trials) - len(possible)} not possible{stopped}")
    tables.show_variants([found.base] if found.best is found.base else [found.base, found.best])
    before, after = found.base.metrics.makespan, found.best.metrics.makespan
    if found.best is found.base:
        print(f"nothing was faster than the module as loaded ({time_text(before)})")
    else:
        plan = found.best.plan
        print(f"best: {plan.passes} | {plan.scheduler} | {found.best.schedule.budget}")
        print(f"{time_text(before)} → {time_text(after)} ({gain_text(before, after)}), predicted by the model")
    print(str(verification) if verification is not None else f"not verified: {unverified}")
