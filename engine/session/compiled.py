"""A compiler's predicted schedule as a variant beside ours: its order, its costs, its module."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from engine.chips.inference import machine_for
from engine.chips.library import load_chip
from engine.control import QUIET, Control
from engine.cost.program import Program
from engine.cost.scheduled_module import ScheduledModule
from engine.ir.module import Module
from engine.session.aligning import aligned
from engine.session.plan import AS_LOADED, MachineSpec
from engine.session.variant import Variant
from engine.simulate.replay import Replay, replay
from engine.timeline.timeline import Timeline


def predicted_variant(
    scheduled: ScheduledModule,
    spec: MachineSpec,
    name: str = "compiler",
    control: Control = QUIET,
    loaded: Module | None = None,
) -> Variant:
    """The variant of what a compiler predicted. With `loaded`, the module that the compiler was given, its instructions
    get their origins there, so that it can be compared with our variants.

    Its module is the one inside the schedule. Its times are the compiler's, with the waits inside loops that the
    compiler's own totals leave out; a note says what these come to.
    """
    if loaded is not None:
        scheduled = replace(scheduled, module=aligned(scheduled.module, loaded))
    machine = machine_for(scheduled.module, load_chip(spec.chip), spec.topology, spec.mesh)
    played = replay(scheduled, machine, control)
    return Variant(
        name=name,
        machine=spec,
        plan=AS_LOADED,
        program=played.program,
        candidates=(),
        schedule=played.schedule,
        timeline=played.simulation.timeline,
        metrics=played.simulation.metrics,
        notes=(*scheduled.module.notes, *played.program.notes, *_totals(played), *_found(played, loaded)),
    )


def found_again(program: Program, timeline: Timeline) -> tuple[int, int]:
    """How many instructions that take time come from the module as loaded, and how many there are."""
    timed = np.unique(timeline.instruction[(timeline.duration > 0) & (timeline.instruction >= 0)])
    return sum(int(id_) in program.module.origins for id_ in timed), len(timed)


def _found(played: Replay, loaded: Module | None) -> tuple[str, ...]:
    """What of the compiler's module was found again in the one that it was given."""
    if loaded is None:
        return ()
    found, timed = found_again(played.program, played.simulation.timeline)
    return (
        f"{found} of {timed} instructions that take time in the compiler's module were found in the module as "
        "loaded, by name or op_name; the others stand for themselves where variants are compared.",
    )


def _totals(played: Replay) -> tuple[str, ...]:
    """One note a computation with loops: what the compiler prints for it, and what it takes."""
    return tuple(
        f"The compiler's total of {total.computation} is {total.compiler / 1e6:,.0f} µs without the waits inside its "
        f"loops; with them it takes {total.whole / 1e6:,.0f} µs."
        for total in played.totals
        if total.runs_loops
    )
