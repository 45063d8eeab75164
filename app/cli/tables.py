"""Reports for people: tables on standard output."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich import box
from rich.console import Console
from rich.table import Table

from engine.chips.machine import Machine
from engine.cost.costs import Origin
from engine.ir.module import Module
from engine.passes.candidate import Candidate
from engine.passes.rows import Row, rows_of
from engine.quantities import bytes_text, gain_text, time_text
from engine.session.variant import Variant

_PIPE_WIDTH = 200
"""Columns where standard output is no terminal."""


class _Console(Console):
    """Leaves a reader that went away to `main`, which knows the exit status for it."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def console() -> Console:
    made = _Console(highlight=False)
    return made if made.is_terminal else _Console(highlight=False, width=_PIPE_WIDTH)


def show_module(module: Module, machine: Machine) -> None:
    scheduled = "scheduled" if module.is_scheduled else "not scheduled"
    console().print(
        f"{module.name}: {len(module.instructions):,} instructions in {len(module.computations):,} computations, "
        f"{module.header.devices} devices, {scheduled}\n"
        f"{machine.chip.title}, {machine.topology}"
    )


def show_candidates(candidates: Sequence[Candidate]) -> None:
    """One line for alike sites; times are of one execution, gains are the sum over the row."""
    if not candidates:
        console().print("\nno collectives\n")
        return
    rows = rows_of(candidates)
    chosen = sum(c.chosen for c in candidates)
    table = Table(
        box=box.SIMPLE_HEAD, title=f"{len(candidates)} collectives, {chosen} decomposed", title_justify="left"
    )
    for name in ("", "collective", "kind", "N"):
        table.add_column(name, no_wrap=True)
    for name in ("comp", "comm", "ring", "extra", "gain"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("verdict", overflow="fold")
    for row in rows:
        table.add_row(*_cells(row))
    console().print(table)


def _cells(row: Row) -> Iterable[str]:
    first = row.candidates[0]
    times = f" ×{len(row.candidates)}" if len(row.candidates) > 1 else ""
    kind = first.kind if first.case in (None, "scatter") else f"{first.kind}, {first.case}"
    gate = first.gate
    terms = [time_text(t) for t in (gate.comp, gate.comm, gate.ring, gate.extra)] if gate else [""] * 4
    gain = time_text(row.gain) if gate else ""
    return ("●" if first.chosen else "○", first.id + times, kind, str(first.group_size), *terms, gain, first.reason)


def show_variants(variants: Sequence[Variant]) -> None:
    """Variants against the first one. Every time is the model's unless its row says otherwise."""
    table = Table(box=box.SIMPLE_HEAD, title=f"variants, one step ({_times_of(variants)})", title_justify="left")
    table.add_column("variant", overflow="fold")
    for name in ("makespan", "", "compute", "transfers", "exposed", "overlap", "peak memory", "in flight", "bound"):
        table.add_column(name, justify="right", no_wrap=True)
    base = variants[0].metrics.makespan
    for variant in variants:
        m = variant.metrics
        mark = "" if variant.source is Origin.MODEL else f" [{variant.source.name.lower()}]"
        table.add_row(
            variant.name + mark,
            time_text(m.makespan),
            "" if variant is variants[0] else gain_text(base, m.makespan),
            time_text(m.compute),
            time_text(m.comm),
            time_text(m.exposed),
            f"{m.overlap_fraction:.0%}" if m.transfer_union else "",
            bytes_text(m.peak_memory),
            f"{m.max_in_flight} of {_total(variant)}",
            time_text(m.lower_bound),
        )
    console().print(table)


def _total(variant: Variant) -> str:
    """How many operations may be in flight in all; the whole budget where only kinds are limited."""
    budget = variant.schedule.budget
    return str(budget if budget.total is None else budget.total)


def _times_of(variants: Sequence[Variant]) -> str:
    """Whose times the variants are simulated with."""
    found: set[int] = set()
    for variant in variants:
        for costs in variant.program.costs.values():
            found.update(costs.origin.tolist())
    names = {Origin.COMPILER: "a compiler's estimates", Origin.MEASURED: "measurements", Origin.TABLE: "a table"}
    others = [name for origin, name in names.items() if origin in found]
    return "times predicted by the model" + (f", in part from {' and '.join(others)}" if others else "")
