"""`lapstrake report`: what could be decomposed, what was, and what each variant gains."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Sequence

from app.cli import loading, schema, tables
from app.cli.console import note, progress
from app.cli.main import BAD_ANSWER, DONE
from engine.control import Control
from engine.export.report_html import report_html
from engine.export.svg import Strip, timelines_svg
from engine.export.writing import write_atomically
from engine.ir.module import Module
from engine.quantities import time_text
from engine.session.evaluation import Evaluator, default_plans
from engine.session.variant import Variant


def run(arguments: Namespace) -> int:
    """Print the report; 1 when ``--require-gain`` finds none."""
    with progress(arguments) as control:
        module = loading.load(arguments.file, control.part(0.0, 0.3))
        evaluator = loading.evaluator(module, arguments)
        variants = evaluate_all(evaluator, arguments, control.part(0.3, 1.0))
    if arguments.html:
        write_atomically(arguments.html, report_html(module, evaluator.machine, variants).encode())
    if arguments.plot:
        strips = [Strip(f"{v.name} — {time_text(v.metrics.makespan)}", v.timeline) for v in variants]
        write_atomically(arguments.plot, timelines_svg(strips).encode())
    if arguments.json:
        json.dump(schema.report(module, evaluator.machine, variants), sys.stdout, indent=1)
        print()
    else:
        show(arguments, module, evaluator, variants)
    return BAD_ANSWER if arguments.require_gain and not _gains(variants) else DONE


def evaluate_all(evaluator: Evaluator, arguments: Namespace, control: Control) -> list[Variant]:
    """Variant 0 and those that the arguments ask for."""
    plans = list(
        default_plans(
            evaluator.module, loading.plan(arguments), loading.budget(arguments), loading.memory_cap(arguments)
        )
    )
    share = 1.0 / len(plans)
    return [
        evaluator.evaluate(plan, name, control.part(k * share, (k + 1) * share)) for k, (name, plan) in enumerate(plans)
    ]


def show(arguments: Namespace, module: Module, evaluator: Evaluator, variants: Sequence[Variant]) -> None:
    """The report as tables on standard output; what was inferred goes to standard error."""
    for text in dict.fromkeys(n for v in variants for n in v.notes):
        note(arguments, f"note: {text}")
    tables.show_module(module, evaluator.machine)
    tables.show_candidates(next((v.candidates for v in reversed(variants) if v.candidates), ()))
    tables.show_variants(variants)


def _gains(variants: Sequence[Variant]) -> bool:
    return any(v.metrics.makespan < variants[0].metrics.makespan for v in variants[1:])
