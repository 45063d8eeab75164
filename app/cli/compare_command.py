"""`lapstrake compare`: plans side by side, against the first one of each module, and modules against the first one."""

from __future__ import annotations

import json
import sys
from argparse import Namespace

from app.cli import loading, schema, tables
from app.cli.across import Part, relation_json, show_relation
from app.cli.console import progress
from app.cli.main import DONE
from engine.chips.budget import Budget
from engine.errors import UsageError
from engine.session.evaluation import default_plans
from engine.session.plan import Plan
from engine.session.pruning import default_variants
from engine.session.session import ModuleFile, labels


def run(arguments: Namespace) -> int:
    """Print one table a module; with several modules also how the others relate to the first one."""
    plans = [parse_variant(text) for text in arguments.variant]
    reports = []
    with progress(arguments) as control:
        share = 1.0 / len(arguments.files)
        for number, path in enumerate(arguments.files):
            part = control.part(number * share, (number + 1) * share)
            module = loading.load(path, part.part(0.0, 0.3))
            evaluator = loading.evaluator(module, arguments)
            if plans:
                named = [*default_plans(module, plans[0]), *(("", p) for p in plans[1:])]
                variants = [evaluator.evaluate(plan, name, part) for name, plan in named]
            else:
                variants = default_variants(evaluator, control=part.part(0.3, 1.0))
            reports.append((module, evaluator, variants))
    names = labels([ModuleFile(str(number), path) for number, path in enumerate(arguments.files)])
    parts = [Part(names[str(n)], module, variants) for n, (module, _, variants) in enumerate(reports)]
    if arguments.json:
        found = [dict(schema.report(m, e.machine, v)) for m, e, v in reports]
        for report, other in list(zip(found, parts, strict=True))[1:]:
            report["relation"] = relation_json(parts[0], other)
        json.dump(found, sys.stdout, indent=1)
        print()
        return DONE
    for module, evaluator, variants in reports:
        tables.show_module(module, evaluator.machine)
        tables.show_variants(variants)
    for other in parts[1:]:
        show_relation(parts[0], other)
    return DONE


def parse_variant(text: str) -> Plan:
    """``PASSES | SCHEDULER | BUDGET``; the last two may be missing. Raises UsageError."""
    pieces = [piece.strip() for piece in text.split("|")]
    if len(pieces) > 3:
        raise UsageError(f"a plan is 'PASSES | SCHEDULER | BUDGET', but {len(pieces)} parts came: '{text}'")
    passes, scheduler, budget = (*pieces, "", "")[:3]
    return Plan(passes, scheduler or "bottom-up", Budget.parse(budget) if budget else None)
