"""How modules of one comparison relate: the same plans against each other, and where the time went between them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich import box
from rich.table import Table

from app.cli.paper import console
from engine.ir.module import Module
from engine.quantities import gain_text, microseconds, signed_time_text, time_text
from engine.session.correspondence import correspond
from engine.session.matching import Match
from engine.session.pairing import are_apart
from engine.session.variant import Variant
from engine.timeline.difference import Difference, differences

_MOST = 12
"""Instructions listed: those that differ most."""
_ABSENT = "not there"
"""In place of the time in a module that has no such instruction."""


@dataclass(frozen=True)
class Part:
    """One of the compared modules."""

    label: str
    module: Module
    variants: Sequence[Variant]


def relate(first: Part, other: Part) -> Match:
    """How the last variants of two modules match."""
    across = correspond(first.module, other.module) if are_apart(first.module, other.module) else None
    return Match(first.variants[-1], other.variants[-1], across)


def show_relation(first: Part, other: Part) -> None:
    """Print `other` against `first`: makespans of the same plans, and the instructions whose time differs most."""
    match = relate(first, other)
    console().print(f"\n{other.label} against {first.label}: {_matched(first, other, match)}")
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("variant", overflow="fold")
    for name in (first.label, other.label, ""):
        table.add_column(name, justify="right", no_wrap=True)
    for one, two in _same_plans(first.variants, other.variants):
        before, after = one.metrics.makespan, two.metrics.makespan
        table.add_row(one.name, time_text(before), time_text(after), gain_text(before, after))
    console().print(table)
    rows = _differences(match)
    if rows:
        console().print(_listed(first, other, match, rows))


def relation_json(first: Part, other: Part) -> Mapping[str, Any]:
    """The same for programs."""
    match = relate(first, other)
    counts = (match.across.one.count, match.across.two.count) if match.across is not None else None
    return {
        "against": first.label,
        "matched_by": match.across.by if match.across is not None else "id",
        "matched": None if counts is None else [{"matched": count.matched, "of": count.all} for count in counts],
        "differences": [
            {
                "first": _names(first.module, match.base, match.in_base(row.key)),
                "other": _names(other.module, match.other, match.in_other(row.key)),
                "first_us": microseconds(row.base.stream),
                "other_us": microseconds(row.other.stream),
            }
            for row in _differences(match)
        ],
    }


def _matched(first: Part, other: Part, match: Match) -> str:
    if match.across is None:
        return "the same module"
    one, two = match.across.one.count, match.across.two.count
    return (
        f"by {match.across.by} {two} instructions of {other.label} have a counterpart, and {one} of {first.label}; the "
        "rest is in one alone"
    )


def _same_plans(first: Sequence[Variant], other: Sequence[Variant]) -> Iterable[tuple[Variant, Variant]]:
    theirs = {variant.name: variant for variant in other}
    return [(variant, theirs[variant.name]) for variant in first if variant.name in theirs]


def _differences(match: Match) -> Sequence[Difference]:
    """Of the instructions on which the compute stream spends more or less, the largest difference first."""
    found = differences(match.base.timeline, match.base_times, match.other.timeline, match.other_times)
    return [row for row in found if row.stream]


def _listed(first: Part, other: Part, match: Match, rows: Sequence[Difference]) -> Table:
    title = f"where the time of the compute stream went, waits included: {match.other.name}"
    table = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left")
    table.add_column("instruction", overflow="fold")
    for name in ("difference", first.label, other.label):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows[:_MOST]:
        mine = _named(_names(first.module, match.base, match.in_base(row.key)))
        theirs = _named(_names(other.module, match.other, match.in_other(row.key)))
        name = f"{mine} ↔ {theirs}" if mine and theirs and mine != theirs else mine or theirs
        sides = ((mine, row.base), (theirs, row.other))
        times = ((time_text(t.stream) if t.stream else "–") if there else _ABSENT for there, t in sides)
        table.add_row(name, signed_time_text(row.stream), *times)
    if rest := rows[_MOST:]:
        sums = (sum(row.base.stream for row in rest), sum(row.other.stream for row in rest))
        table.add_row(f"{len(rest):,} more", signed_time_text(sums[1] - sums[0]), *map(time_text, sums))
    return table


def _named(names: Sequence[str]) -> str:
    return names[0] + (f" and {len(names) - 1} more" if len(names) > 1 else "") if names else ""


def _names(module: Module, variant: Variant, ids: Iterable[int]) -> list[str]:
    """Names in the module as loaded, else in the variant, whose passes made it of nothing."""
    found = (module.instructions.get(i) or variant.program.module.instructions.get(i) for i in ids)
    return [instruction.name for instruction in found if instruction is not None]
