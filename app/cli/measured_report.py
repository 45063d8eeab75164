"""A measured profile beside the prediction, as a table and as JSON."""

from __future__ import annotations

from typing import Any

from rich import box
from rich.table import Table

from app.cli.paper import console
from engine.quantities import microseconds, time_text
from engine.session.measured import Measured, Observation

SHOWN = 20
"""Instructions that the table lists; --json gives all."""


def show(measured: Measured) -> None:
    """Instructions that took longest, predicted and measured, and what in the profile is unknown."""
    out = console()
    chip = measured.predicted.program.machine.chip.name
    shown = [o for o in measured.observations if o.measured][:SHOWN]
    table = Table(
        box=box.SIMPLE_HEAD,
        title=f"{measured.variant.name}: {measured.matched:,} of {measured.events:,} events belong to "
        "instructions; those that took longest, in one step",
        title_justify="left",
    )
    table.add_column("instruction", no_wrap=True)
    for name in ("runs", "measured", f"predicted for {chip}", "error"):
        table.add_column(name, justify="right", no_wrap=True)
    for observation in shown:
        kind = " (transfer)" if observation.transfer else ""
        table.add_row(
            observation.name + kind,
            str(observation.executions),
            time_text(observation.measured),
            time_text(observation.predicted),
            error_text(observation),
        )
    out.print(table)
    rest = sum(1 for o in measured.observations if o.measured) - len(shown)
    if rest > 0:
        out.print(f"and {rest} more (--json lists all)")
    missing = sum(1 for o in measured.observations if not o.measured)
    if missing:
        out.print(f"{missing} instructions that were predicted to take time are not in the profile")
    for unknown in measured.unmatched[:SHOWN]:
        out.print(f"unknown: {unknown.name}, {unknown.count:,} events, {time_text(unknown.time)} in all")
    if len(measured.unmatched) > SHOWN:
        out.print(f"and {len(measured.unmatched) - SHOWN} more names that no instruction has")


def error_text(observation: Observation) -> str:
    """Of the prediction: ``−38 %`` is a prediction too short."""
    error = observation.error
    if error is None:
        return ""
    if abs(error) >= 9.995:
        return f"×{error + 1:,.0f}"
    return f"{'−' if error < 0 else '+'}{abs(error):.0%}".replace("%", " %")


def as_json(measured: Measured) -> dict[str, Any]:
    """Times in microseconds of all executions in one step; `error` is (predicted - measured) / measured."""
    return {
        "variant": measured.predicted.name,
        "platform": measured.platform,
        "overlap_shown": measured.overlaps,
        "events": measured.events,
        "matched": measured.matched,
        "executions": measured.executions,
        "makespan_us": microseconds(measured.variant.metrics.makespan),
        "predicted_makespan_us": microseconds(measured.predicted.metrics.makespan),
        "unmatched": [{"name": u.name, "events": u.count, "time_us": microseconds(u.time)} for u in measured.unmatched],
        "instructions": [
            {
                "name": o.name,
                "transfer": o.transfer,
                "executions": o.executions,
                "measured_us": microseconds(o.measured),
                "predicted_us": microseconds(o.predicted),
                "error": o.error,
            }
            for o in measured.observations
        ],
        "notes": list(measured.notes),
    }
