"""The JSON that `report --json` prints: schema 1, stable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.chips.machine import Machine
from engine.cost.costs import Origin
from engine.ir.module import Module
from engine.passes.candidate import Candidate
from engine.quantities import microseconds
from engine.session.variant import Variant, best_of, collectives_in, notes_of, unjudged_in_words, with_verdicts

_SOURCES = {Origin.COMPILER: "compiler", Origin.MEASURED: "measured"}
_ORIGINS = {**_SOURCES, Origin.MODEL: "model", Origin.TABLE: "table"}


def report(module: Module, machine: Machine, variants: Sequence[Variant]) -> dict[str, Any]:
    """The whole report. Candidates are those of the best variant that has any, which `candidates_of` names;
    `best` names the best of all, which decomposes none of them where that is another one."""
    verdicts = with_verdicts(variants)
    return {
        "schema": 1,
        "module": _module(module),
        "machine": {
            "chip": machine.chip.name,
            "topology": str(machine.topology),
            "mesh": dict(machine.mesh),
            "inferred": list(machine.notes),
        },
        "candidates": [_candidate(c, module) for c in (verdicts.candidates if verdicts else ())],
        "candidates_of": verdicts.name if verdicts else None,
        "unjudged": None if verdicts else unjudged_in_words(module, variants),
        "best": best_of(variants).name,
        "variants": [_variant(v, variants[0]) for v in variants],
        "notes": list(notes_of(variants)),
    }


def _module(module: Module) -> dict[str, Any]:
    return {
        "name": module.name,
        "instructions": len(module.instructions),
        "computations": len(module.computations),
        "collectives": collectives_in(module),
        "partitions": module.header.devices,
        "scheduled": module.is_scheduled,
    }


def _candidate(candidate: Candidate, module: Module) -> dict[str, Any]:
    gate = candidate.gate
    terms = (gate.comp, gate.comm, gate.beside, gate.ring, gate.extra, gate.gain) if gate else (None,) * 6
    names = ("comp_us", "comm_us", "beside_us", "ring_us", "extra_us", "gain_us")
    return {
        "id": candidate.id,
        "kind": candidate.kind,
        "collective": module.instructions[candidate.collective].name,
        "einsums": [module.instructions[e].name for e in candidate.einsums],
        "group_size": candidate.group_size,
        "case": candidate.case,
        "chosen": candidate.chosen,
        "reason": candidate.reason,
        **{name: None if term is None else microseconds(term) for name, term in zip(names, terms, strict=True)},
        "comp_from": None if gate is None else [_ORIGINS[origin] for origin in gate.comp_from],
        "comm_from": None if gate is None else [_ORIGINS[origin] for origin in gate.comm_from],
        "variant": candidate.variant,
        "trips": candidate.trips,
        "row": candidate.row,
    }


def _variant(variant: Variant, base: Variant) -> dict[str, Any]:
    """What a profile does not tell is null where the variant was measured."""
    metrics, measured = variant.metrics, variant.source is Origin.MEASURED
    return {
        "name": variant.name,
        "source": _SOURCES.get(variant.source, "model"),
        "passes": variant.plan.passes,
        "scheduler": variant.plan.scheduler,
        "budget": str(variant.schedule.budget),
        "makespan_us": microseconds(metrics.makespan),
        "compute_us": microseconds(metrics.compute),
        "comm_us": microseconds(metrics.comm),
        "exposed_comm_us": microseconds(metrics.exposed),
        "overlap_fraction": metrics.overlap_fraction,
        "peak_memory_bytes": None if measured else metrics.peak_memory,
        "over_hbm_bytes": None if measured else variant.over_memory,
        "max_in_flight": None if measured else metrics.max_in_flight,
        "flops_utilization": None if measured else metrics.flops_utilization,
        "lower_bound_us": None if measured else microseconds(metrics.lower_bound),
        "priced_unlike_first": [] if measured else list(variant.priced_unlike(base)),
    }
