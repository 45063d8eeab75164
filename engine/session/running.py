"""Runs variants on devices, against each other, and puts what was measured beside what was predicted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from engine.control import QUIET, Control
from engine.cost.program import Program
from engine.errors import UsageError
from engine.execute.timing import DEFAULT, Entrant, RunOptions, Timing, measure
from engine.ir.graph import Graph
from engine.ir.module import Module
from engine.profile.reading import profile_from_bytes
from engine.schedule.problem import Schedule
from engine.session.measured import Measured, measured_variant
from engine.session.variant import Variant


@dataclass(frozen=True, eq=False)
class Ran:
    """One variant's run."""

    variant: Variant
    """As predicted."""
    timing: Timing
    measured: Measured | None = None
    """Its profile, read back; None where none was asked for."""


@dataclass(frozen=True, eq=False)
class Run:
    """Variants of one module that were run in turn."""

    ran: tuple[Ran, ...]
    platform: str
    devices: int
    kind: str
    """What the runtime calls a device."""
    alone: bool
    """Whether one device computed alone; see `RunOptions.alone`."""
    notes: tuple[str, ...] = ()


def run_variants(variants: Sequence[Variant], options: RunOptions = DEFAULT, control: Control = QUIET) -> Run:
    """Run the modules of `variants`, all made from the same one, on the devices of a platform, each in its order.

    Raises UsageError for variants of different modules and wrong options, UnsupportedError for what cannot run there
    (by name; too large, with the bytes; too few devices, with what can be done instead), InputError for inputs that
    cannot be read or are all zero, WorkerError for a crash, a deadlock, no memory, or no end within the deadline,
    Cancelled.
    """
    if not variants:
        raise UsageError("at least one variant to run was expected, but none came")
    inlined = options.as_job or options.platform != "cpu"
    entrants = [Entrant(v.name, v.program.module, orders_of(v.program, v.schedule, inlined=inlined)) for v in variants]
    found = measure(entrants, options, control.part(0.0, 0.9))
    ran = []
    for variant, timing in zip(variants, found.timings, strict=True):
        measured = None
        if timing.profile:
            profile = profile_from_bytes(timing.profile, f"the run of {variant.name}")
            measured = measured_variant(
                variant, profile, name=f"{variant.name}, measured", control=control.part(0.9, 1.0)
            )
        ran.append(Ran(variant, timing, measured))
    return Run(tuple(ran), found.platform, found.devices, found.kind, found.alone, found.notes)


def orders_of(program: Program, schedule: Schedule, *, inlined: bool = False) -> Mapping[str, Sequence[str]]:
    """Computation name → names of its instructions in the order of `schedule`; a done is ``START/done``.

    With `inlined` a fusion stands for what is in it: compilers decide anew what they fuse.
    """
    return {
        graph.name: list(_names(program, graph, schedule.orders[computation].nodes.tolist(), inlined))
        for computation, graph in program.graphs.items()
    }


def _names(program: Program, graph: Graph, nodes: Sequence[int], inlined: bool) -> Iterator[str]:
    for node in nodes:
        partner = int(graph.partner[node])
        if 0 <= partner < node:
            yield f"{graph.names[partner]}/done"
        elif inlined and graph.opcodes[node] == "fusion":
            yield from _inside(program.module, int(graph.ids[node]))
        else:
            yield graph.names[node]


def _inside(module: Module, fusion: int) -> Iterator[str]:
    for inner in module.computations[module.instructions[fusion].called_computation_ids[0]].instructions:
        if inner.opcode == "fusion":
            yield from _inside(module, inner.id)
        else:
            yield inner.name
