"""`lapstrake export`: the transformed module as files that XLA and jobs read."""

from __future__ import annotations

import sys
from argparse import Namespace

from app.cli import loading
from app.cli.console import note, progress
from app.cli.main import DONE
from engine.errors import UsageError
from engine.export.hlo import export_bytes
from engine.export.writing import write_atomically


def run(arguments: Namespace) -> int:
    """Write the module after the plan's passes, in the plan's order when a scheduler is named."""
    plan = loading.plan_or_best(arguments)
    with progress(arguments) as control:
        module = loading.load(arguments.file, control.part(0.0, 0.2))
        evaluator = loading.evaluator(module, arguments)
        if arguments.scheduler is None:
            result = evaluator.transform(plan, control.part(0.2, 0.8))
            made, schedule, notes = result.module, None, result.notes
        else:
            variant = evaluator.evaluate(plan, control=control.part(0.2, 0.8))
            made, schedule, notes = variant.program.module, variant.schedule, variant.notes
        control.step(0.8, "writing")
        content = export_bytes(made, arguments.to, schedule)
    for text in notes:
        note(arguments, f"note: {text}")
    if arguments.output != "-":
        write_atomically(arguments.output, content)
        return DONE
    if arguments.to != "hlo" and sys.stdout.isatty():
        raise UsageError(f"--to {arguments.to} is binary: name a file with -o, or send standard output to one")
    sys.stdout.buffer.write(content)
    return DONE
