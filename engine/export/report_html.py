"""The report as one HTML file: timelines, tables and reasons; no scripts, nothing fetched, fit for printing."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from engine.chips.machine import Machine
from engine.cost.costs import Origin
from engine.export.svg import Strip, timelines_svg
from engine.ir.module import Module
from engine.passes.rows import merged, rows_of
from engine.quantities import bytes_text, gain_text, time_text
from engine.session.judging import Judgement
from engine.session.notes import by_kind
from engine.session.tuning import Trial, Tuning
from engine.session.variant import (
    UNLIKE,
    Variant,
    collectives_in,
    costs_in_words,
    gain_in_words,
    memory_warnings,
    notes_of,
    unjudged_in_words,
    unlike_in_words,
    verdicts_in_words,
    with_verdicts,
)

_SOURCES = {Origin.COMPILER: "compiler's estimate", Origin.MEASURED: "measured"}


def report_html(
    module: Module,
    machine: Machine,
    variants: Sequence[Variant],
    search: Tuning | None = None,
    judgement: Judgement | None = None,
) -> str:
    """The whole file. Variant 0 is what the others are compared with; `search` is how the last one was found."""
    from jinja2 import Environment, StrictUndefined  # late: the window seldom writes a report, and starts sooner

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {"time": time_text, "bytes": bytes_text}
    template = environment.from_string(files("engine.export").joinpath("report.html.jinja").read_text("utf-8"))
    verdicts = variants[-1] if search is not None and variants[-1].candidates else with_verdicts(variants)
    candidates = () if verdicts is None else verdicts.candidates
    shown = variants if search is None or verdicts is None else [verdicts]
    return template.render(
        module=module,
        instructions=len(module.instructions),
        machine=machine,
        variants=_merged([_variant(v, variants[0]) for v in variants]),
        base=variants[0].name,
        rows=merged(rows_of(candidates)),
        warnings=memory_warnings(variants),
        collectives=len(candidates) or collectives_in(module),
        unjudged=unjudged_in_words(module, variants).capitalize(),
        decomposed="" if verdicts is None else verdicts_in_words(shown, verdicts, "“”"),
        fusions=[f for v in variants[-1:] for f in v.fusions if f.foreign],
        costs=costs_in_words(variants),
        search=search,
        trials=sorted(search.trials, key=_slowest_last) if search is not None else (),
        judgement=judgement,
        headline="" if search is None else _headline(search),
        notes=by_kind(notes_of(variants)),
        picture=timelines_svg([Strip(f"{v.name} — {time_text(v.metrics.makespan)}", v.timeline) for v in variants]),
    )


def _headline(search: Tuning) -> str:
    """What the best of a search gains, over what its compiler does by itself."""
    against, best, base = search.against, search.best, search.base
    before, after, loaded = (v.metrics.makespan for v in (against, best, base))
    change = gain_in_words(against, best)
    also = "" if against is base else f"; as loaded {time_text(loaded)} ({gain_in_words(base, best)})"
    return f"{against.name} {time_text(before)}, with the plan {time_text(after)} ({change}){also}"


def _slowest_last(trial: Trial) -> tuple[bool, int]:
    return trial.makespan is None, trial.makespan or 0


def _merged(shown: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row for variants that differ in their names and schedulers alone, as far as figures are shown."""
    rows: dict[object, dict[str, Any]] = {}
    for one in shown:
        row = rows.setdefault(_figures(one), one | {"name": "", "plans": []})
        row["name"] = "; ".join(filter(None, (row["name"], one["name"])))
        row["plans"] = [*row["plans"], *one["plans"]]
    return list(rows.values())


def _figures(one: dict[str, Any]) -> tuple[object, ...]:
    """What a row says but for its name and its schedulers."""
    m = one["metrics"]
    times = tuple(map(time_text, (m.makespan, m.compute, m.comm, m.exposed, m.lower_bound)))
    rest = (bytes_text(m.peak_memory), m.max_in_flight, str(one["budget"]))
    return one["plans"][0].passes, times, rest, one["change"], one["source"], one["memory_warning"]


def _variant(variant: Variant, base: Variant) -> dict[str, Any]:
    compared = variant is not base and variant.compares_with(base)
    change = gain_text(base.metrics.makespan, variant.metrics.makespan) if compared else ""
    names = variant.priced_unlike(base) if compared else ()
    return {
        "name": variant.name,
        "plans": [variant.plan],
        "budget": variant.schedule.budget,
        "metrics": variant.metrics,
        "change": f"{change} {UNLIKE} {unlike_in_words(names)}" if names else change,
        "measured": variant.is_measured,
        "source": _SOURCES.get(variant.source, "model"),
        "memory_warning": variant.memory_warning,
    }
