"""`lapstrake run`: the module as loaded and the plan, executed in turn on devices, timed, and profiled."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Sequence
from typing import Any

from rich import box
from rich.table import Table

from app.cli import loading, measured_report
from app.cli.console import note, progress
from app.cli.main import DONE
from app.cli.paper import console
from engine.chips.machine import Machine
from engine.control import Control
from engine.errors import UsageError
from engine.execute.timing import RunOptions
from engine.execute.verifying import check_runnable
from engine.export.profiles import profile_files, suffix_of
from engine.export.writing import write_atomically
from engine.ir.module import Module
from engine.quantities import gain_text, microseconds, time_text
from engine.session.evaluation import Evaluator
from engine.session.plan import plain_plan
from engine.session.running import Ran, Run, run_variants
from engine.session.variant import Variant


def run(arguments: Namespace) -> int:
    """Print the timings; what was assumed goes to standard error."""
    if arguments.profile:
        suffix_of(arguments.profile)  # before anything is run for nothing
    with progress(arguments) as control:
        module = loading.load(arguments.file, control.part(0.0, 0.1))
        _check_devices(module, arguments)
        check_runnable(
            module, module, arguments.platform, alone=arguments.alone
        )  # before plans are weighed for nothing
        evaluator = loading.evaluator(module, arguments)
        variants, said = _variants(evaluator, arguments, control.part(0.1, 0.3))
        found = run_variants(variants, _options(arguments), control.part(0.3, 1.0))
    written = []
    if arguments.profile:
        for path, content in profile_files(found, arguments.profile).items():
            write_atomically(path, content)
            written.append(path)
    measured = [ran.measured for ran in found.ran if ran.measured is not None]
    for text in dict.fromkeys((*filter(None, (said,)), *found.notes, *(n for m in measured for n in m.notes))):
        note(arguments, f"note: {text}")
    if arguments.json:
        json.dump(_as_json(module, evaluator.machine, found, written), sys.stdout, indent=1)
        print()
        return DONE
    _show(module, evaluator.machine, found)
    for m in measured[-1:]:
        measured_report.show(m)
    for path in written:
        print(f"profile: {path}")
    return DONE


def _options(arguments: Namespace) -> RunOptions:
    return RunOptions(
        platform=arguments.platform,
        repeats=arguments.repeats,
        warmup=arguments.warmup,
        seed=arguments.seed,
        inputs=arguments.inputs,
        profile=arguments.profile is not None,
        alone=arguments.alone,
        as_job=arguments.as_job,
        deadline=arguments.deadline,
    )


def _check_devices(module: Module, arguments: Namespace) -> None:
    needed = module.header.devices
    if (
        arguments.devices is not None
        and arguments.devices != needed
        and not (arguments.alone and arguments.devices == 1)
    ):
        raise UsageError(
            f"the module is partitioned for {needed} devices and runs on exactly as many; {arguments.devices} were "
            "asked for. Partition the program for another mesh to run it on another number, or take --alone for one "
            "device's compute alone"
        )


def _variants(evaluator: Evaluator, arguments: Namespace, control: Control) -> tuple[list[Variant], str]:
    """The module as loaded, then the plan, unless that is the same; and what is said of a plan that nobody named."""
    base = evaluator.evaluate(plain_plan(evaluator.module), "as loaded", control.part(0.0, 0.4))
    plan, said = loading.plan_or_best(arguments, evaluator, control.part(0.4, 0.8))
    if plan == base.plan:
        return [base], said
    return [base, evaluator.evaluate(plan, "", control.part(0.8, 1.0))], said


def _show(module: Module, machine: Machine, found: Run) -> None:
    out = console()
    where = f"{found.devices} {found.platform} device{'s' if found.devices != 1 else ''} ({found.kind})"
    alone = f", one device's compute alone of {module.header.devices}" if found.alone else ""
    repeats = len(found.ran[0].timing.times)
    out.print(f"{module.name}: measured on {where}{alone}, {repeats} executions of each, in turn")
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("\nvariant", overflow="fold")
    for name in ("\nmedian", "", "quartiles\napart", "\nfastest", f"predicted for\n{machine.chip.name}"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("\norder", overflow="fold")
    base = found.ran[0].timing.median
    for ran in found.ran:
        timing = ran.timing
        table.add_row(
            timing.name,
            time_text(timing.median),
            "" if ran is found.ran[0] else gain_text(base, timing.median),
            time_text(timing.spread),
            time_text(min(timing.times)),
            time_text(ran.variant.metrics.makespan),
            "" if timing.order is None else str(timing.order),
        )
    out.print(table)


def _as_json(module: Module, machine: Machine, found: Run, written: Sequence[str]) -> dict[str, Any]:
    return {
        "schema": 1,
        "module": module.name,
        "platform": found.platform,
        "devices": found.devices,
        "kind": found.kind,
        "alone": found.alone,
        "predicted_for": machine.chip.name,
        "variants": [_variant_json(ran) for ran in found.ran],
        "profiles": list(written),
        "notes": list(found.notes),
    }


def _variant_json(ran: Ran) -> dict[str, Any]:
    timing, order = ran.timing, ran.timing.order
    return {
        "name": timing.name,
        "source": "measured",
        "passes": ran.variant.plan.passes,
        "scheduler": ran.variant.plan.scheduler,
        "median_us": microseconds(timing.median),
        "spread_us": microseconds(timing.spread),
        "times_us": [microseconds(t) for t in timing.times],
        "predicted_us": microseconds(ran.variant.metrics.makespan),
        "order": None
        if order is None
        else {
            "kept": order.kept,
            "moved": list(order.moved),
            "gone": list(order.gone),
            "problem": order.problem,
            "whole": order.whole,
        },
        **({} if ran.measured is None else {"measured": measured_report.as_json(ran.measured)}),
    }
