"""`lapstrake compile`: what a production compiler makes of the module, and of the plan for it, without a device."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich import box
from rich.table import Table

from app.cli import loading, schema
from app.cli.console import note, progress
from app.cli.main import BAD_ANSWER, DONE
from app.cli.paper import console
from engine.errors import UsageError
from engine.execute.targets import Target, check_installed
from engine.export.writing import write_atomically
from engine.quantities import gain_text, microseconds, time_text
from engine.session.plan import Plan
from engine.session.production import LEFT_TO_THE_COMPILER, PIN_BUDGET, Produced, Production, produce
from engine.session.production_tuning import FEW, Searched, first_plan, tune_production
from engine.session.worth import Worth, weigh

DEFAULT_PLAN = Plan("flatten,decompose", "bottom-up", PIN_BUDGET)
"""The compiler makes permutes asynchronous and fuses by itself."""

SEARCHING = 0.7
"""Share of the work that a search is; without --tune it is one over a few plans, where none is named."""


def run(arguments: Namespace) -> int:
    """Print the compiler's variants; 1 when it predicts no schedule at all."""
    if arguments.tune and _is_named(arguments):
        raise UsageError("--tune finds passes and a scheduler: --passes, --scheduler and --budget cannot come with it")
    plan, tried = _plan(arguments), None
    target = Target.parse(arguments.target)
    searches = arguments.tune or (target.platform == "tpu" and not _is_named(arguments))
    with progress(arguments, limited=not searches) as control:
        module = loading.load(arguments.file, control.part(0.0, 0.05))
        production = Production(module, target, arguments.mesh, arguments.deadline)
        if searches:
            check_installed(target)
            search = tune_production if arguments.tune else first_plan
            with progress(arguments) as limited:
                tried = search(production, memory_cap=plan.memory_cap, control=limited.part(0.05, SEARCHING))
            plan = plan if tried.best is None else tried.best.plan
        found, missing = produce(
            production,
            plan,
            scheduled_only=not arguments.output,
            control=control.part(SEARCHING if searches else 0.05, 1.0),
        )
    for text in dict.fromkeys((*production.machine.notes, *missing, *(n for p in found for n in p.variant.notes))):
        note(arguments, f"note: {text}")
    if arguments.output:
        _write(Path(arguments.output), found)
    if arguments.json:
        report = schema.report(module, production.machine, [p.variant for p in found])
        said = _compiler(production, found, missing)
        if tried is not None:
            said["search"] = _search(tried, weigh(found))
        json.dump({**report, "compiler": said}, sys.stdout, indent=1)
        print()
    else:
        _show(production, found)
        if tried is not None:
            _show_search(tried, weigh(found))
    return DONE if found else BAD_ANSWER


def _is_named(arguments: Namespace) -> bool:
    """Whether any part of a plan is."""
    return (arguments.passes, arguments.scheduler, arguments.budget) != (None, None, None)


def _plan(arguments: Namespace) -> Plan:
    """The plan that was named; what of it was not is as in DEFAULT_PLAN."""
    return Plan(
        DEFAULT_PLAN.passes if arguments.passes is None else arguments.passes,
        arguments.scheduler or DEFAULT_PLAN.scheduler,
        loading.budget(arguments) or DEFAULT_PLAN.budget,
        loading.memory_cap(arguments),
    )


def _show_search(tried: Searched, worth: Worth) -> None:
    stopped = "" if tried.finished else ", stopped at the time limit"
    possible = sum(trial.makespan is not None for trial in tried.trials)
    if 0 < len(tried.trials) <= len(FEW):
        _show_trials(tried)
    print(f"{len(tried.trials)} plans tried, {len(tried.trials) - possible} not possible{stopped}")
    if tried.best is None:
        print("no plan was possible")
        return
    plan = tried.best.plan
    if worth.nothing:
        print(f"nothing is gained: {_why_nothing(worth)}")
    print(
        f'{"the fastest of ours" if worth.nothing else "ours"}: --passes "{plan.passes}" --scheduler {plan.scheduler}'
    )


def _show_trials(tried: Searched) -> None:
    """Every plan of a short list with what it takes, one permute each way at a time."""
    table = Table(box=box.SIMPLE_HEAD, title="plans tried, by the compiler's own costs", title_justify="left")
    table.add_column("passes")
    table.add_column("order", no_wrap=True)
    table.add_column("cycles", justify="right", no_wrap=True)
    for trial in tried.trials:
        passes = trial.plan.passes or "none"
        if trial.makespan is None:
            table.add_row(passes, "", "not possible")
        else:
            table.add_row(passes, trial.plan.scheduler, f"{round(trial.makespan * tried.clock / 1e6):,}")
    console().print(table)


def _why_nothing(worth: Worth) -> str:
    """In words, where nothing is worth more than a plan."""
    own = worth.own
    assert own is not None
    good = "" if own.counts else f", with {own.each_way} permutes one way at a time, which it takes for free"
    asked = " and ".join(f"{name}={value}" for name, value in own.compiled.options.items())
    how = f", by its options {asked}" if asked else ""
    ours = "none of ours was predicted" if worth.ours is None else f"our fastest plan {worth.ours.cycles:,}"
    return f"{own.variant.name} takes {own.cycles:,} cycles without a plan{how}{good}; {ours}"


def _show(production: Production, found: Sequence[Produced]) -> None:
    target = production.target
    out = console()
    out.print(f"{production.module.name} on {target}, compiled without a device; no time here was measured")
    if not found:
        out.print("the compiler predicted no schedule: nothing in the module is asynchronous")
        return
    versions = ", ".join(f"{name} {number}" for name, number in found[0].compiled.versions.items())
    out.print(f"{versions}; passes left to it: {', '.join(LEFT_TO_THE_COMPILER)}")
    table = Table(box=box.SIMPLE_HEAD, title="by the compiler's own costs, and by our model", title_justify="left")
    table.add_column("variant", no_wrap=True)
    for name in ("cycles", "waiting", "predicted", "", "our model", "each way", "link load", "compiled in"):
        table.add_column(name, justify="right", no_wrap=True)
    base = found[0]
    for produced in found:
        makespan = produced.variant.metrics.makespan
        table.add_row(
            produced.variant.name,
            f"{produced.cycles:,}",
            f"{produced.waiting:,}",
            time_text(makespan),
            "" if produced is base else gain_text(base.variant.metrics.makespan, makespan),
            time_text(produced.model.makespan),
            f"{produced.each_way}{'' if produced.counts else ' !'}",
            f"{produced.link_load:.1f}",
            f"{produced.compiled.seconds:.1f} s",
        )
    out.print(table)
    if not all(produced.counts for produced in found):
        out.print(
            "! two permutes go the same way at once, which the compiler's prediction takes for free: "
            "its figure is too good"
        )


def _compiler(production: Production, found: Sequence[Produced], missing: Sequence[str]) -> dict[str, Any]:
    return {
        "target": str(production.target),
        "versions": dict(found[0].compiled.versions) if found else {},
        "missing": list(missing),
        "variants": [
            {
                "name": produced.variant.name,
                "cycles": produced.cycles,
                "waiting_cycles": produced.waiting,
                "cycles_per_microsecond": produced.clock,
                "model_makespan_us": microseconds(produced.model.makespan),
                "permutes_each_way": produced.each_way,
                "link_load": produced.link_load,
                "counts": produced.counts,
                "pinned": list(produced.compiled.pinned),
                "compile_seconds": round(produced.compiled.seconds, 3),
            }
            for produced in found
        ],
    }


def _search(tried: Searched, worth: Worth) -> dict[str, Any]:
    return {
        "finished": tried.finished,
        "nothing_gained": worth.nothing,
        "without_a_plan": None if worth.own is None else worth.own.variant.name,
        "trials": [
            {
                "passes": trial.plan.passes,
                "scheduler": trial.plan.scheduler,
                "predicted_us": None if trial.makespan is None else microseconds(trial.makespan),
                "why_not": trial.why_not,
            }
            for trial in tried.trials
        ],
    }


def _write(folder: Path, found: Sequence[Produced]) -> None:
    """Each variant's optimised HLO and predicted schedule. Raises UsageError where `folder` cannot be one."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{folder}: a folder for the compiler's modules was expected: {error}") from None
    for produced in found:
        stem = "".join(c if c.isalnum() else "-" for c in produced.variant.name).strip("-").replace("--", "-")
        write_atomically(str(folder / f"{stem}.hlo"), produced.compiled.text.encode())
        write_atomically(str(folder / f"{stem}.schedule.txt"), produced.compiled.schedule.encode())
