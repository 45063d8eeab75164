"""Reports for people: tables on standard output."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from rich import box
from rich.table import Table

from app.cli.paper import console, lines_of
from engine.chips.machine import Machine
from engine.cost.costs import Origin
from engine.ir.module import Module
from engine.passes.rows import Row, merged, rows_of
from engine.quantities import bytes_text, counted_text, gain_text, time_text
from engine.session.judging import Judgement
from engine.session.tuning import Tuning
from engine.session.variant import (
    UNLIKE,
    Variant,
    costs_in_words,
    gain_in_words,
    memory_warnings,
    unjudged_in_words,
    unlike_in_words,
    verdicts_in_words,
    with_verdicts,
)

_MOST_TRIALS = 10
_MOST_REASONS = 5
_FIGURES = (
    "\nmakespan",
    "",
    "\ncompute",
    "\ntransfers",
    "\nexposed",
    "peak\nmemory",
    "in\nflight",
    "\nbound",
    "\noverlap",
)
"""Headings of two lines: a page has no room for nine long ones beside each other."""
_MEANING = "comp to extra are of one execution of one site; gain is the sum over a row's sites and loop trips"
_ROOM = (110, 96)
"""Columns of a page below which the last of the figures is left out, and the one before it."""


def show_module(module: Module, machine: Machine) -> None:
    scheduled = "scheduled" if module.is_scheduled else "not scheduled"
    console().print(
        f"{module.name}: {counted_text(len(module.instructions), 'instruction')} in "
        f"{counted_text(len(module.computations), 'computation')}, "
        f"{counted_text(module.header.devices, 'device')}, {scheduled}\n"
        f"{machine.chip.title}, {machine.topology}"
    )


def show_candidates(variants: Sequence[Variant], module: Module) -> None:
    """One line for alike sites of the best of the variants that gives verdicts, and the verdict under it; times are of
    one execution, gains are the sum over the row."""
    verdicts = with_verdicts(variants)
    if verdicts is None:
        console().print(f"\n{unjudged_in_words(module, variants)}\n")
        return
    out = console()
    out.print(f"\n{counted_text(len(verdicts.candidates), 'collective')}, {verdicts_in_words(variants, verdicts)}\n")
    rows = [(_cells(alike), _verdict(alike)) for alike in merged(rows_of(verdicts.candidates))]
    heading = ("", "collective", "N", "comp", "comm", "beside", "ring", "extra", "gain")
    for line in lines_of(heading, rows, 2, out.width):
        out.print(line, soft_wrap=True)
    if any(candidate.gate for candidate in verdicts.candidates):
        out.print(f"\n{_MEANING}")
    out.print()


def _cells(alike: Sequence[Row]) -> tuple[str, ...]:
    first = alike[0].candidates[0]
    count = sum(len(row.candidates) for row in alike)
    times = f" ×{count}" if count > 1 else ""
    gate = first.gate
    terms = [time_text(t) for t in (gate.comp, gate.comm, gate.beside, gate.ring, gate.extra)] if gate else [""] * 5
    gain = time_text(sum(row.gain for row in alike)) if gate else ""
    return ("●" if first.chosen else "○", first.id + times, str(first.group_size), *terms, gain)


def _verdict(alike: Sequence[Row]) -> str:
    """Which sites besides the first, of what kind they are, and why they are decomposed or not."""
    first = alike[0].candidates[0]
    kind = first.kind if first.case in (None, "scatter") else f"{first.kind}, {first.case}"
    others = [row.candidates[0].id for row in alike[1:]]
    named = f"also {', '.join(others)}; " if others else ""
    trips = f", ×{first.trips} trips" if first.trips > 1 else ""
    return f"{named}{kind}{trips}: {first.reason}"


def show_variants(variants: Sequence[Variant]) -> None:
    """Variants against the first one, one line for those that differ in the scheduler's name alone. Every time is the
    model's unless its row says otherwise."""
    table = Table(
        box=box.SIMPLE_HEAD,
        title=f"variants, one step (times predicted by {costs_in_words(variants)})",
        title_justify="left",
        padding=(0, 0, 0, 1),
        show_edge=False,
        pad_edge=False,
    )
    table.add_column("\nvariant", overflow="fold")
    out = console()
    spared = sum(out.width < room for room in _ROOM)
    for name in _FIGURES[: len(_FIGURES) - spared]:
        table.add_column(name, justify="right", no_wrap=True)
    rows: dict[tuple[str, ...], list[str]] = {}
    for variant in variants:
        m, measured = variant.metrics, variant.source is Origin.MEASURED
        mark = "" if variant.source is Origin.MODEL else f" [{variant.source.name.lower()}]"
        cells = (
            time_text(m.makespan),
            "" if variant is variants[0] or measured else gain_in_words(variants[0], variant),
            time_text(m.compute),
            time_text(m.comm),
            time_text(m.exposed),
            "" if measured else f"{'▲ ' if variant.over_memory else ''}{bytes_text(m.peak_memory)}",
            "" if measured else f"{m.max_in_flight} of {_total(variant)}",
            "" if measured else time_text(m.lower_bound),
            f"{m.overlap_fraction:.0%}" if m.transfer_union else "",
        )
        rows.setdefault((variant.plan.passes, *cells), []).append(variant.name + mark)
    for (_, *shown), those in rows.items():
        table.add_row("; ".join(those), *shown[: len(shown) - spared])
    out.print(table)
    for said in (*_in_force(variants), *_unlike(variants)):
        out.print(said, markup=False)
    for text, names in memory_warnings(variants):
        out.print(f"▲ {'; '.join(names)}: {text}")


def _unlike(variants: Sequence[Variant]) -> Iterable[str]:
    """What is not priced as the first variant is."""
    found: dict[tuple[str, ...], list[str]] = {}
    for variant in variants[1:]:
        names = variant.priced_unlike(variants[0])
        if names and variant.source is not Origin.MEASURED:
            found.setdefault(names, []).append(variant.name)
    for names, those in found.items():
        yield f"{UNLIKE} {variants[0].name} and {'; '.join(those)}: {unlike_in_words(names)}"


def _in_force(variants: Sequence[Variant]) -> Iterable[str]:
    """Budgets that limit kinds as well as the total, for which the column has no room, and what is planned under them.

    The order of the module as loaded is under none.
    """
    found: dict[str, list[str]] = {}
    for variant in variants:
        budget = variant.schedule.budget
        if budget.by_kind and budget.total is not None and not variant.is_measured and variant is not variants[0]:
            found.setdefault(str(budget), []).append(variant.name)
    for budget_text, names in found.items():
        yield f"in flight at most {budget_text}" + (f": {'; '.join(names)}" if len(found) > 1 else "")


def _total(variant: Variant) -> str:
    """How many operations may be in flight in all; the whole budget where only kinds are limited."""
    budget = variant.schedule.budget
    return str(budget if budget.total is None else budget.total)


def show_trials(found: Tuning) -> None:
    """The best of what was tried, and one line for each reason why a plan is not possible."""
    possible = sorted((t for t in found.trials if t.metrics is not None), key=lambda t: t.makespan or 0)
    alike = Counter(time_text(t.makespan or 0) for t in possible)
    distinct = list({time_text(t.makespan or 0): t for t in reversed(possible)}.values())[::-1]
    if len(possible) > 1:
        count = min(len(distinct), _MOST_TRIALS)
        title = f"the best {count} times of what was tried, each with its first plan"
        if count == 1:
            title = "all that was tried takes the same time; its first plan"
        table = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left")
        table.add_column("plan", overflow="fold")
        for name in ("scheduler", "budget"):
            table.add_column(name, no_wrap=True)
        for name in ("makespan", "of as loaded", "plans"):
            table.add_column(name, justify="right", no_wrap=True)
        for trial in distinct[:_MOST_TRIALS]:
            makespan = trial.makespan or 0
            budget = "chip's" if trial.plan.budget is None else str(trial.plan.budget)
            gain = gain_text(found.base.metrics.makespan, makespan) + (f" {UNLIKE}" if trial.unlike else "")
            passes, took = (trial.plan.passes or "–").replace(",", ", "), time_text(makespan)
            table.add_row(passes, trial.plan.scheduler, budget, took, gain, str(alike[took]))
        console().print(table)
    for reason, count in Counter(t.why_not for t in found.trials if t.metrics is None).most_common(_MOST_REASONS):
        console().print(f"{count} not possible: {reason}")


def show_rulings(judgement: Judgement) -> None:
    """What a compiler predicts of the best plans."""
    table = Table(
        box=box.SIMPLE_HEAD, title=f"by the compiler for {judgement.target}, not measured", title_justify="left"
    )
    table.add_column("program", overflow="fold")
    for name in ("cycles", "", "predicted"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("", overflow="fold")
    base = judgement.base.cycles
    own = [ruling for ruling in judgement.rulings if ruling.plan is None]
    plans = [ruling for ruling in judgement.rulings if ruling.plan is not None]
    for ruling in (*own, *plans[:_MOST_TRIALS]):
        if ruling.cycles is None:
            table.add_row(ruling.name, "", "", "", ruling.why_not)
            continue
        gain = gain_text(base, ruling.cycles) if base and ruling.plan is not None else ""
        said = "" if ruling.counts else "two permutes go the same way at once: too good to be compared"
        table.add_row(ruling.name, f"{ruling.cycles:,}", gain, time_text(ruling.makespan), said)
    console().print(table)
