"""`lapstrake export`: the transformed module, its schedule, costs or timeline as files that other programs read."""

from __future__ import annotations

import sys
from argparse import Namespace

from app.cli import loading
from app.cli.console import note, progress
from app.cli.main import DONE
from engine.control import Control
from engine.errors import UsageError
from engine.export.captured import captured_file
from engine.export.contents import FORMATS, content_of
from engine.export.hlo import export_bytes
from engine.export.writing import check_apart, write_atomically
from engine.session.evaluation import Evaluator


def run(arguments: Namespace) -> int:
    """Write the module after the plan's passes, in the plan's order when a scheduler is named, or no plan is."""
    if arguments.output == "-" and FORMATS[arguments.to].binary and sys.stdout.isatty():
        raise UsageError(f"--to {arguments.to} is binary: name a file with -o, or send standard output to one")
    check_apart(arguments.output, (captured_file(arguments.file), *arguments.costs))
    with progress(arguments) as control:
        module = loading.load(arguments.file, control.part(0.0, 0.2))
        content, notes = _content(loading.evaluator(module, arguments), arguments, control.part(0.2, 1.0))
    for text in notes:
        note(arguments, f"note: {text}")
    if arguments.output == "-":
        sys.stdout.buffer.write(content)
    else:
        write_atomically(arguments.output, content)
    return DONE


def _content(evaluator: Evaluator, arguments: Namespace, control: Control) -> tuple[bytes, tuple[str, ...]]:
    plan, said = loading.plan_or_best(arguments, evaluator, control.part(0.0, 0.5))
    first = (said,) if said else ()
    # Passes without a scheduler are a module without an order; the plan that is taken where none is named has one.
    unordered = arguments.passes is not None and arguments.scheduler is None
    if unordered and arguments.to in ("hlo", "pb", "stablehlo"):
        result = evaluator.transform(plan, control.part(0.5, 0.8))
        return export_bytes(result.module, arguments.to, control=control.part(0.8, 1.0)), (*first, *result.notes)
    variant = evaluator.evaluate(plan, control=control.part(0.5, 0.8))
    content = content_of(variant, arguments.to, variant, evaluator.module, control.part(0.8, 1.0))
    return content, (*first, *variant.notes)
