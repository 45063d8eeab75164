"""What memory holds when it is fullest, as a table and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich import box
from rich.table import Table

from app.cli.paper import console
from engine.quantities import bytes_text
from engine.session.variant import Variant
from engine.simulate.memory import Peak, peak_of
from engine.simulate.simulator import simulate_computations

SHOWN = 20
"""Buffers that the table lists; --json gives all."""
Peaks = Sequence[tuple[Variant, Peak]]


def peaks(variants: Sequence[Variant]) -> Peaks:
    """The peak of every variant that was simulated."""
    found = []
    for variant in variants:
        if variant.recording is None:
            runs = simulate_computations(variant.program, variant.schedule)
            entry = variant.program.module.proto.entry_computation_id
            found.append((variant, peak_of(variant.program, runs[entry])))
    return found


def show(found: Peaks) -> None:
    """A table a variant: its largest buffers at the peak, and until when each is needed."""
    out = console()
    for variant, peak in found:
        instructions = variant.program.module.instructions
        where = " > ".join(instructions[id_].name for id_ in peak.at)
        # Not the table's title: short names of buffers make a table so narrow that it would be wrapped.
        out.print(f"{variant.name}: {bytes_text(peak.size)} are live while {where} runs", markup=False)
        table = Table(box=box.SIMPLE_HEAD)
        table.add_column("buffer of", no_wrap=True)
        table.add_column("size", justify="right", no_wrap=True)
        table.add_column("last needed by", no_wrap=True)
        for holder in peak.holders[:SHOWN]:
            names = (instructions[id_].name for id_ in (holder.instruction, holder.last))
            first, last = names
            table.add_row(first, bytes_text(holder.size), last)
        out.print(table)
        rest = peak.holders[SHOWN:]
        if rest:
            out.print(f"and {len(rest)} more, {bytes_text(sum(holder.size for holder in rest))} (--json lists all)")


def as_json(found: Peaks) -> list[dict[str, Any]]:
    """Names of instructions, sizes in bytes; buffers are largest first and add up to the peak."""
    report = []
    for variant, peak in found:
        instructions = variant.program.module.instructions
        buffers = [
            {
                "instruction": instructions[holder.instruction].name,
                "bytes": holder.size,
                "last_needed_by": instructions[holder.last].name,
            }
            for holder in peak.holders
        ]
        at = [instructions[id_].name for id_ in peak.at]
        report.append({"name": variant.name, "bytes": peak.size, "at": at, "buffers": buffers})
    return report
