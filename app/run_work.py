"""The window's jobs that run variants on devices, or have them compiled; devices are touched in processes of theirs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.kept import keep
from app.work import evaluator_of
from engine.control import Control
from engine.execute.devices import Platform, platforms_found
from engine.execute.targets import Target
from engine.execute.timing import RunOptions
from engine.execute.verifying import Verification, verify
from engine.ir.module import Module
from engine.session.given import GivenFile
from engine.session.plan import MachineSpec, Plan
from engine.session.production import Produced, Production, produce
from engine.session.running import Run, run_variants
from engine.session.variant import Variant
from views.runs.runner import CompiledRow


def look(*, control: Control) -> tuple[Platform, ...]:
    """The platforms of this machine."""
    return platforms_found(control=control)


def verify_variant(
    module: Module, transformed: Module, seed: int, seeds: int, platform: str, inputs: str | None, *, control: Control
) -> Verification:
    """A variant's module against the one as loaded, number against number."""
    return verify(module, transformed, seed=seed, seeds=seeds, platform=platform, inputs=inputs, control=control)


@dataclass(frozen=True, eq=False)
class Timed:
    """A run, and its profiles as files, by the variants' order; None where none was asked for."""

    run: Run
    profiles: tuple[GivenFile | None, ...]


def run(variants: tuple[Variant, ...], options: RunOptions, folder: str, *, control: Control) -> Timed:
    """Time variants against each other; profiles go into `folder`."""
    found = run_variants(variants, options, control)
    profiles = (ran.timing.profile for ran in found.ran)
    return Timed(found, tuple(keep(folder, profile, ".xplane.pb") if profile else None for profile in profiles))


@dataclass(frozen=True, eq=False)
class Compilation:
    """What a production compiler made of a module and a plan."""

    rows: tuple[CompiledRow, ...]
    """Without keys."""
    schedules: tuple[GivenFile, ...]
    """The compiler's predicted schedules, by row."""
    machine: MachineSpec
    """That was compiled for."""
    notes: tuple[str, ...]
    """What is missing, and why; versions."""


def compile_plan(
    module: Module, plan: Plan, target: str, spec: MachineSpec, folder: str, *, control: Control
) -> Compilation:
    """The compiler's variants of a module and a plan; their schedules go into `folder`. Of `spec`, which the plan was
    made for, the mesh holds, and the costs by which the plan's passes decide."""
    production = Production(module, Target.parse(target), spec.mesh, imports=evaluator_of(module, spec).imports)
    found, missing = produce(production, plan, scheduled_only=True, control=control)
    schedules = tuple(keep(folder, made.compiled.schedule.encode(), ".schedule.txt") for made in found)
    versions = ", ".join(f"{name} {number}" for name, number in found[0].compiled.versions.items()) if found else ""
    notes = (*production.machine.notes, *missing, *((f"Compiled by {versions}.",) if versions else ()))
    return Compilation(tuple(map(_row, found)), schedules, production.spec, _distinct(notes))


def _row(made: Produced) -> CompiledRow:
    return CompiledRow(
        key="",
        name=made.variant.name,
        cycles=made.cycles,
        waiting=made.waiting,
        predicted=made.variant.metrics.makespan,
        model=made.model.makespan,
        counts=made.counts,
        link_load=made.link_load,
        seconds=made.compiled.seconds,
    )


def _distinct(notes: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(notes))
