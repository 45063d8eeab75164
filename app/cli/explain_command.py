"""`lapstrake explain`: why an instruction is where it is, why a transfer is exposed, why a site was left."""

from __future__ import annotations

from argparse import Namespace

from app.cli import loading
from app.cli.console import note, progress
from app.cli.main import DONE
from engine.session.explaining import explain


def run(arguments: Namespace) -> int:
    """Print the explanation, one paragraph a reason."""
    with progress(arguments) as control:
        module = loading.load(arguments.file, control.part(0.0, 0.2))
        evaluator = loading.evaluator(module, arguments)
        plan, said = loading.plan_or_best(arguments, evaluator, control.part(0.2, 0.8))
        variant = evaluator.evaluate(plan, control=control.part(0.8, 1.0))
    for text in filter(None, (said, *variant.notes)):
        note(arguments, f"note: {text}")
    print(explain(module, variant, arguments.instruction))
    return DONE
