"""`lapstrake sweep`: one plan over budgets, bandwidths, unrolls, rings, or numbers of partitions."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Iterable, Sequence
from dataclasses import replace

from app.cli import loading
from app.cli.console import note, progress
from app.cli.main import DONE
from app.cli.paper import console, lines_of
from engine.chips.budget import Budget
from engine.control import Control
from engine.errors import UsageError
from engine.export.plot import Series, plot_svg
from engine.export.writing import check_writable, write_atomically
from engine.ir.module import Module
from engine.quantities import bytes_text, gain_text, microseconds, time_text
from engine.session.plan import MachineSpec, Plan
from engine.session.sweeping import Quantity, Range, Row, knee, sweep, sweep_partitions
from engine.session.variant import UNLIKE, unlike_in_words

_PLANS = 4
"""How many plans are tried where none is named."""


def run(arguments: Namespace) -> int:
    """Print a line for each value, the smallest that is within 1 % of the best marked."""
    over = None if arguments.over == Quantity.PARTITIONS else Range.parse(arguments.over)
    quantity = str(over.quantity if over else Quantity.PARTITIONS)
    if over and len(arguments.files) > 1:
        raise UsageError(f"a sweep over {quantity} takes one FILE, but {len(arguments.files)} came")
    if arguments.plot:
        check_writable(arguments.plot)
    with progress(arguments) as control:
        rows, said = _rows(over, arguments, control)
    for text in said:
        note(arguments, f"note: {text}")
    if arguments.plot:
        write_atomically(arguments.plot, _plot(quantity, rows).encode())
    if arguments.json:
        made = [_as_json(row) for row in rows]
        if over is None:
            made = [{"file": file, **row} for file, row in zip(arguments.files, made, strict=True)]
        json.dump({"schema": 1, "over": quantity, "rows": made}, sys.stdout, indent=1)
        print()
    else:
        _show(quantity, rows, arguments.files)
    return DONE


def _rows(over: Range | None, arguments: Namespace, control: Control) -> tuple[Sequence[Row], Sequence[str]]:
    """What was found, and what is said of plans that nobody named: of several modules each has its own."""
    spec = MachineSpec(arguments.chip, arguments.topology, arguments.mesh)
    count = len(arguments.files)
    # The plan is chosen among a few: each takes about as long as a value.
    begun = 0.5 if over is None else _PLANS / (_PLANS + len(over.values))
    plans: list[Plan] = []
    said: list[str] = []
    modules: list[Module] = []
    for number, path in enumerate(arguments.files):
        part = control.part(begun * number / count, begun * (number + 1) / count)
        module = loading.load(path, part.part(0.0, 0.5))
        evaluator = loading.evaluator(module, arguments)
        decomposes = over is not None and over.quantity in (Quantity.RING, Quantity.UNROLL)
        plan, text = loading.plan_or_best(arguments, evaluator, part.part(0.5, 1.0), decomposes=decomposes)
        modules.append(module)
        plans.append(plan)
        said += [f"{path}: {text}" if count > 1 else text] if text else []
    if over is None:
        return sweep_partitions(modules, spec, plans, control.part(begun, 1.0)), said
    found = sweep(modules[0], spec, plans[0], over, loading.imports(arguments.costs), control.part(begun, 1.0))
    return found, said


def _as_json(row: Row) -> dict[str, object]:
    found = row.metrics
    return {
        "value": row.value,
        "base_makespan_us": microseconds(row.base.makespan),
        "budget": row.budget or None,
        "makespan_us": microseconds(found.makespan) if found else None,
        "exposed_comm_us": microseconds(found.exposed) if found else None,
        "peak_memory_bytes": found.peak_memory if found else None,
        "max_in_flight": found.max_in_flight if found else None,
        "priced_unlike": list(row.unlike),
        "problem": row.problem,
    }


def _show(quantity: str, rows: Sequence[Row], files: Sequence[str]) -> None:
    """A line for each row, and under it the file, where each row has its own, and why no order fits."""
    partitions = quantity == Quantity.PARTITIONS
    best = None if partitions else knee(rows)
    heading = (quantity, "as loaded", "makespan", "", "exposed", "peak memory", "in flight", "")
    texts = [row.problem for row in rows]
    if partitions:
        texts = [f"{file}: {text}" if text else file for file, text in zip(files, texts, strict=True)]
    lines = [(_cells(row, "◂" if row is best else ""), text) for row, text in zip(rows, texts, strict=True)]
    out = console()
    out.print("times predicted by the model, one step\n")
    for line in lines_of(heading, lines, 1, out.width):
        out.print(line, soft_wrap=True)
    out.print()
    if best is not None:
        out.print("◂ the first within 1 % of the best")
    for said in (*_kinds(rows), *_unlike(rows)):
        out.print(said)


def _cells(row: Row, mark: str) -> tuple[str, ...]:
    found, loaded = row.metrics, time_text(row.base.makespan)
    if found is None:
        return row.value, loaded, *[""] * 6
    budget = Budget.parse(row.budget)
    return (
        row.value,
        loaded,
        time_text(found.makespan),
        gain_text(row.base.makespan, found.makespan) + (f" {UNLIKE}" if row.unlike else ""),
        time_text(found.exposed),
        bytes_text(found.peak_memory),
        f"{found.max_in_flight} of {row.budget if budget.total is None else budget.total}",
        mark,
    )


def _kinds(rows: Sequence[Row]) -> Iterable[str]:
    """Limits by kind below the total, for which the column has no room: a sentence for all values that share them."""
    found: dict[str, list[str]] = {}
    possible = [row for row in rows if row.metrics is not None]
    for row in possible:
        budget = Budget.parse(row.budget)
        if budget.by_kind and budget.total is not None:
            found.setdefault(str(replace(budget, total=None)), []).append(row.value)
    for limits, values in found.items():
        which = f" at {', '.join(values)}" if len(values) < len(possible) else ""
        yield f"in flight at most {limits} of these kinds{which}"


def _unlike(rows: Sequence[Row]) -> Iterable[str]:
    """What is not priced as the module as loaded is: a sentence for all values of which the same holds."""
    found: dict[tuple[str, ...], list[str]] = {}
    for row in rows:
        if row.unlike:
            found.setdefault(row.unlike, []).append(row.value)
    for names, values in found.items():
        which = f" at {', '.join(values)}" if len(values) < len(rows) else ""
        yield f"{UNLIKE} as loaded and the plan{which}: {unlike_in_words(names)}"


def _plot(quantity: str, rows: Sequence[Row]) -> str:
    possible = [row for row in rows if row.metrics is not None]
    labels = [row.value for row in possible]
    series = [
        Series("makespan", [r.metrics.makespan for r in possible if r.metrics]),
        Series("exposed", [r.metrics.exposed for r in possible if r.metrics]),
        Series("as loaded", [r.base.makespan for r in possible]),
    ]
    return plot_svg(f"over {quantity} (predicted by the model)", labels, series)
