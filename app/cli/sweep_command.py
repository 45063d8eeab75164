"""`lapstrake sweep`: one plan over budgets, bandwidths, unrolls, rings, or numbers of partitions."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Iterable, Sequence

from rich import box
from rich.table import Table

from app.cli import loading
from app.cli.console import note, progress
from app.cli.main import DONE
from app.cli.paper import console
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
        json.dump({"schema": 1, "over": quantity, "rows": [_as_json(row) for row in rows]}, sys.stdout, indent=1)
        print()
    else:
        _show(quantity, rows)
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


def _show(quantity: str, rows: Sequence[Row]) -> None:
    table = Table(box=box.SIMPLE_HEAD, title="times predicted by the model, one step", title_justify="left")
    table.add_column(quantity, no_wrap=True)
    for name in ("as loaded", "makespan", "", "exposed", "peak memory", "in flight"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("", overflow="fold")
    best = None if quantity == Quantity.PARTITIONS else knee(rows)
    for row in rows:
        found = row.metrics
        if found is None:
            table.add_row(row.value, time_text(row.base.makespan), "", "", "", "", "", row.problem)
            continue
        table.add_row(
            row.value,
            time_text(row.base.makespan),
            time_text(found.makespan),
            gain_text(row.base.makespan, found.makespan) + (f" {UNLIKE}" if row.unlike else ""),
            time_text(found.exposed),
            bytes_text(found.peak_memory),
            f"{found.max_in_flight} of {row.budget}",
            "◂ within 1 % of the best" if row is best else "",
        )
    console().print(table)
    for said in _unlike(rows):
        console().print(said, markup=False)


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
