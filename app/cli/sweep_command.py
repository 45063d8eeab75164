"""`lapstrake sweep`: one plan over a range of budgets, bandwidths, unrolls or rings."""

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
from engine.export.plot import Series, plot_svg
from engine.export.writing import write_atomically
from engine.quantities import bytes_text, gain_text, microseconds, time_text
from engine.session.plan import MachineSpec
from engine.session.sweeping import Range, Row, knee, sweep


def run(arguments: Namespace) -> int:
    """Print a line for each value, the smallest that is within 1 % of the best marked."""
    over = Range.parse(arguments.over)
    with progress(arguments) as control:
        module = loading.load(arguments.file, control.part(0.0, 0.1))
        spec = MachineSpec(arguments.chip, arguments.topology, arguments.mesh)
        plan = loading.plan_or_best(arguments)
        rows = sweep(module, spec, plan, over, loading.imports(arguments.costs), control.part(0.1, 1.0))
    if arguments.plot:
        write_atomically(arguments.plot, _plot(over, rows).encode())
    if arguments.json:
        json.dump(
            {"schema": 1, "over": str(over.quantity), "rows": [_as_json(row) for row in rows]}, sys.stdout, indent=1
        )
        print()
    else:
        _show(over, rows)
    return DONE


def _as_json(row: Row) -> dict[str, object]:
    found = row.metrics
    return {
        "value": row.value,
        "base_makespan_us": microseconds(row.base.makespan),
        "makespan_us": microseconds(found.makespan) if found else None,
        "exposed_comm_us": microseconds(found.exposed) if found else None,
        "peak_memory_bytes": found.peak_memory if found else None,
        "max_in_flight": found.max_in_flight if found else None,
        "problem": row.problem,
    }


def _show(over: Range, rows: Sequence[Row]) -> None:
    table = Table(box=box.SIMPLE_HEAD, title="times predicted by the model, one step", title_justify="left")
    table.add_column(str(over.quantity), no_wrap=True)
    for name in ("as loaded", "makespan", "", "exposed", "peak memory", "in flight"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("", overflow="fold")
    best = knee(rows)
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
            str(found.max_in_flight),
            "◂ within 1 % of the best" if row is best else "",
        )
    console().print(table)


def _plot(over: Range, rows: Sequence[Row]) -> str:
    possible = [row for row in rows if row.metrics is not None]
    labels = [row.value for row in possible]
    series = [
        Series("makespan", [r.metrics.makespan for r in possible if r.metrics]),
        Series("exposed", [r.metrics.exposed for r in possible if r.metrics]),
        Series("as loaded", [r.base.makespan for r in possible]),
    ]
    return plot_svg(f"over {over.quantity} (predicted by the model)", labels, series)
