"""The report as one HTML file: timelines, tables and reasons; no scripts, nothing fetched, fit for printing."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from jinja2 import Environment, StrictUndefined

from engine.chips.machine import Machine
from engine.cost.costs import Origin
from engine.export.svg import Strip, timelines_svg
from engine.ir.module import Module
from engine.passes.rows import rows_of
from engine.quantities import bytes_text, gain_text, time_text
from engine.session.variant import Variant

_SOURCES = {Origin.COMPILER: "compiler's estimate", Origin.MEASURED: "measured"}


def report_html(module: Module, machine: Machine, variants: Sequence[Variant]) -> str:
    """The whole file. Variant 0 is what the others are compared with."""
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {"time": time_text, "bytes": bytes_text}
    template = environment.from_string(files("engine.export").joinpath("report.html.jinja").read_text("utf-8"))
    candidates = next((v.candidates for v in reversed(variants) if v.candidates), ())
    return template.render(
        module=module,
        instructions=len(module.instructions),
        machine=machine,
        variants=[_variant(v, variants[0]) for v in variants],
        rows=rows_of(candidates),
        candidates=candidates,
        chosen=sum(c.chosen for c in candidates),
        fusions=[f for v in variants[-1:] for f in v.fusions if f.foreign],
        notes=list(dict.fromkeys(n for v in variants for n in v.notes)),
        picture=timelines_svg([Strip(f"{v.name} — {time_text(v.metrics.makespan)}", v.timeline) for v in variants]),
    )


def _variant(variant: Variant, base: Variant) -> dict[str, Any]:
    return {
        "name": variant.name,
        "plan": variant.plan,
        "budget": variant.schedule.budget,
        "metrics": variant.metrics,
        "change": "" if variant is base else gain_text(base.metrics.makespan, variant.metrics.makespan),
        "source": _SOURCES.get(variant.source, "model"),
    }
