"""`lapstrake sweep`: one plan over budgets, bandwidths, unrolls, rings, or numbers of partitions."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Sequence

from rich import box
from rich.table import Table

from app.cli import loading
from app.cli.console import progress
from app.cli.main import DONE
from app.cli.tables import console
from engine.control import Control
from engine.errors import UsageError
from engine.export.plot import Series, plot_svg
from engine.export.writing import write_atomically
from engine.quantities import bytes_text, gain_text, microseconds, time_text
from engine.session.plan import MachineSpec
from engine.session.sweeping import Quantity, Range, Row, knee, sweep, sweep_partitions


def run(arguments: Namespace) -> int:
    """Print a line for each value, the smallest that is within 1 % of the best marked."""
    over = None if arguments.over == Quantity.PARTITIONS else Range.parse(arguments.over)
    quantity = str(over.quantity if over else Quantity.PARTITIONS)
    if over and len(arguments.files) > 1:
        raise UsageError(f"a sweep over {quantity} takes one FILE, but {len(arguments.files)} came")
    with progress(arguments) as control:
        rows = _rows(over, arguments, control)
    if arguments.plot:
        write_atomically(arguments.plot, _plot(quantity, rows).encode())
    if arguments.json:
        json.dump({"schema": 1, "over": quantity, "rows": [_as_json(row) for row in rows]}, sys.stdout, indent=1)
        print()
    else:
        _show(quantity, rows)
    return DONE


def _rows(over: Range | None, arguments: Namespace, control: Control) -> Sequence[Row]:
    spec = MachineSpec(arguments.chip, arguments.topology, arguments.mesh)
    share = 0.3 / len(arguments.files)
    modules = [loading.load(path, control.part(k * share, (k + 1) * share)) for k, path in enumerate(arguments.files)]
    plan = loading.plan_or_best(arguments, modules[0])
    if over is None:
        return sweep_partitions(modules, spec, plan, control.part(0.3, 1.0))
    return sweep(modules[0], spec, plan, over, loading.imports(arguments.costs), control.part(0.3, 1.0))


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
            gain_text(row.base.makespan, found.makespan),
            time_text(found.exposed),
            bytes_text(found.peak_memory),
            f"{found.max_in_flight} of {row.budget}",
            "◂ within 1 % of the best" if row is best else "",
        )
    console().print(table)


def _plot(quantity: str, rows: Sequence[Row]) -> str:
    possible = [row for row in rows if row.metrics is not None]
    labels = [row.value for row in possible]
    series = [
        Series("makespan", [r.metrics.makespan for r in possible if r.metrics]),
        Series("exposed", [r.metrics.exposed for r in possible if r.metrics]),
        Series("as loaded", [r.base.makespan for r in possible]),
    ]
    return plot_svg(f"over {quantity} (predicted by the model)", labels, series)
