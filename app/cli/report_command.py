"""`lapstrake report`: what could be decomposed, what was, and what each variant gains."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Sequence

from app.cli import disturbed_report, loading, measured_report, memory_report, schema, tables
from app.cli.console import note, progress
from app.cli.main import BAD_ANSWER, DONE
from engine.control import Control
from engine.cost.costs import Origin
from engine.export.captured import captured_file
from engine.export.report_html import report_html
from engine.export.svg import Strip, timelines_svg
from engine.export.writing import check_apart, check_writable, write_atomically
from engine.ir.module import Module
from engine.profile.reading import read_profile
from engine.quantities import time_text
from engine.session.evaluation import Evaluator
from engine.session.fairness import is_faster
from engine.session.measured import Measured, best_match, measured_variant
from engine.session.notes import by_kind
from engine.session.plan import AS_LOADED, plain_plan
from engine.session.pruning import default_variants
from engine.session.variant import UNLIKE, Variant, notes_of
from engine.simulate.disturbances import parse_disturbance


def run(arguments: Namespace) -> int:
    """Print the report; 1 when ``--require-gain`` finds none."""
    disturbance = parse_disturbance(arguments.stragglers) if arguments.stragglers else None
    for path in filter(None, (arguments.html, arguments.plot)):
        check_apart(path, (captured_file(arguments.file), *arguments.costs))
        check_writable(path)
    with progress(arguments) as control:
        module = loading.load(arguments.file, control.part(0.0, 0.3))
        evaluator = loading.evaluator(module, arguments)
        variants = evaluate_all(evaluator, arguments, control.part(0.3, 0.8))
        measured = _measured(evaluator, variants, arguments, control.part(0.8, 0.9))
        peaks = memory_report.peaks(variants) if arguments.memory else []
        spreads = disturbed_report.disturb(variants, disturbance, control.part(0.9, 1.0)) if disturbance else []
    if measured is not None:
        variants.append(measured.variant)
    if arguments.html:
        write_atomically(arguments.html, report_html(module, evaluator.machine, variants).encode())
    if arguments.plot:
        strips = [Strip(f"{v.name} — {time_text(v.metrics.makespan)}", v.timeline) for v in variants]
        write_atomically(arguments.plot, timelines_svg(strips).encode())
    if arguments.json:
        report = schema.report(module, evaluator.machine, variants)
        if measured is not None:
            report["measured"] = measured_report.as_json(measured)
        if peaks:
            report["memory"] = memory_report.as_json(peaks)
        if spreads:
            report["stragglers"] = disturbed_report.as_json(spreads, arguments.stragglers)
        json.dump(report, sys.stdout, indent=1)
        print()
    else:
        show(arguments, module, evaluator, variants)
        if measured is not None:
            measured_report.show(measured)
        memory_report.show(peaks)
        if spreads:
            disturbed_report.show(spreads, arguments.stragglers)
    if not arguments.require_gain or _gains(variants):
        return DONE
    unlike = any(v.metrics.makespan < variants[0].metrics.makespan for v in variants[1:] if not v.is_measured)
    said = f"; what is marked {UNLIKE} is not priced as that is" if unlike else ""
    note(arguments, f"note: no variant is faster than the module as loaded{said}")
    return BAD_ANSWER


def evaluate_all(evaluator: Evaluator, arguments: Namespace, control: Control) -> list[Variant]:
    """Variant 0 and those that the arguments ask for."""
    budget, memory_cap = loading.budget(arguments), loading.memory_cap(arguments)
    given = loading.plan(arguments, evaluator.module)
    if given is None:
        return default_variants(evaluator, budget, memory_cap, control)
    plain = evaluator.evaluate(plain_plan(evaluator.module), "as loaded", control.part(0.0, 0.5))
    return [plain, evaluator.evaluate(given, "", control.part(0.5, 1.0))]


def _measured(
    evaluator: Evaluator, variants: Sequence[Variant], arguments: Namespace, control: Control
) -> Measured | None:
    """The profile that ``--measured`` names, beside the variant that was run: the one that knows most of its events."""
    if not arguments.measured:
        return None
    control.step(0.0, f"reading {arguments.measured}")
    profile = read_profile(arguments.measured)
    raw = [] if variants[0].plan == AS_LOADED else [evaluator.evaluate(AS_LOADED, "as loaded, not fused")]
    run = best_match([*variants, *raw], profile)
    return measured_variant(run, profile, name=f"{run.name}, measured", control=control.part(0.3, 1.0))


def show(arguments: Namespace, module: Module, evaluator: Evaluator, variants: Sequence[Variant]) -> None:
    """The report as tables on standard output; what was inferred goes to standard error."""
    for kind in by_kind(notes_of(variants)):
        for text in kind.shown:
            note(arguments, f"note: {text}")
        if kind.counted:
            note(arguments, f"note: {kind.counted} (--json lists all)")
    tables.show_module(module, evaluator.machine)
    tables.show_candidates(variants, module)
    tables.show_variants(variants)


def _gains(variants: Sequence[Variant]) -> bool:
    predicted = [v for v in variants if v.source is not Origin.MEASURED]
    return any(is_faster(v, predicted[0]) for v in predicted[1:])
