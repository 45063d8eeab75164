"""A compiler's predicted schedule as a variant beside ours: its order, its costs, its module."""

from __future__ import annotations

from engine.chips.inference import machine_for
from engine.chips.library import load_chip
from engine.control import QUIET, Control
from engine.cost.scheduled_module import read_scheduled_module
from engine.session.plan import AS_LOADED, MachineSpec
from engine.session.variant import Variant
from engine.simulate.replay import Replay, replay


def compiler_variant(
    text: str, path: str, spec: MachineSpec, name: str = "compiler", control: Control = QUIET
) -> Variant:
    """The variant of a ScheduleProto's `text`; `path` is for messages.

    Its module is the one inside the schedule. Its times are the compiler's, with the waits inside loops that the
    compiler's own totals leave out; a note says what these come to. Raises InputError where the text is damaged.
    """
    scheduled = read_scheduled_module(text, path)
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
        notes=(*scheduled.module.notes, *played.program.notes, *_totals(played)),
    )


def _totals(played: Replay) -> tuple[str, ...]:
    """One note a computation with loops: what the compiler prints for it, and what it takes."""
    return tuple(
        f"The compiler's total of {total.computation} is {total.compiler / 1e6:,.0f} µs without the waits inside its "
        f"loops; with them it takes {total.whole / 1e6:,.0f} µs."
        for total in played.totals
        if total.runs_loops
    )
