"""`lapstrake verify`: the original and the transformed module on devices, number against number."""

from __future__ import annotations

import json
import sys
from argparse import Namespace

from app.cli import loading
from app.cli.console import note, progress
from app.cli.main import BAD_ANSWER, DONE
from engine.execute.verifying import Verification, check_runnable, verify
from engine.export.captured import check_dumped
from engine.quantities import counted_text


def run(arguments: Namespace) -> int:
    """Print the comparison; 1 when the numbers differ by more than the tolerance."""
    with progress(arguments) as control:
        module = loading.load(arguments.file, control.part(0.0, 0.1))
        check_dumped(module)
        check_runnable(module, module, arguments.platform)  # before the plan is made in vain
        evaluator = loading.evaluator(module, arguments)
        plan, said = loading.plan_or_best(arguments, evaluator, control.part(0.1, 0.2))
        result = evaluator.transform(plan, control.part(0.2, 0.3))
        found = verify(
            module,
            result.module,
            devices=arguments.devices,
            seed=arguments.seed,
            seeds=arguments.seeds,
            platform=arguments.platform,
            inputs=arguments.inputs,
            deadline=arguments.deadline,
            control=control.part(0.3, 1.0),
        )
    changed = sum(c.chosen for c in result.candidates)
    if arguments.json:
        json.dump({"schema": 1, "passes": plan.passes, "decomposed": changed, **found.as_json()}, sys.stdout, indent=1)
        print()
    else:
        for text in filter(None, (said, *result.notes, *found.notes)):
            note(arguments, f"note: {text}")
        counted = counted_text(len(result.candidates), "collective")
        print(f"{module.name}: {changed} of {counted} decomposed by {plan.passes}")
        print(_sentence(found))
    return DONE if found.equal else BAD_ANSWER


def _sentence(found: Verification) -> str:
    return str(found)
