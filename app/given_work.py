"""The window's jobs about files that the user gave besides the module: costs, schedules, profiles."""

from __future__ import annotations

from dataclasses import dataclass, replace

from engine.control import Control
from engine.cost.imports import parse_costs
from engine.hlo.decoding import unzipped
from engine.ir.module import Module
from engine.session.compiled import compiler_variant
from engine.session.given import GivenFile, Recording, RecordingKind, content_of, take
from engine.session.plan import MachineSpec, Plan
from engine.session.variant import Variant


def take_costs(path: str, *, control: Control) -> GivenFile:
    """A file of costs as it is now. Raises InputError for anything else."""
    control.step(0.0, f"reading {path}")
    file, data = take(path)
    parse_costs(data, path)
    return file


def take_recording(path: str, *, control: Control) -> GivenFile:
    """A schedule or a profile as it is now; what it holds is read when it is shown."""
    control.step(0.0, f"reading {path}")
    return take(path)[0]


@dataclass(frozen=True, eq=False)
class Recorded:
    """A recording as a variant."""

    variant: Variant


def read_recording(
    module: Module, spec: MachineSpec, plan: Plan, recording: Recording, name: str, *, control: Control
) -> Recorded:
    """The variant that a recording shows: of the module that `plan` makes of `module`, or of the compiler's own."""
    control.step(0.0, f"reading {recording.file.name}")
    data = content_of(recording.file)
    if recording.kind == RecordingKind.SCHEDULE:
        return Recorded(_schedule(module, spec, recording, data, name, control))
    raise NotImplementedError


def _schedule(
    module: Module, spec: MachineSpec, recording: Recording, data: bytes, name: str, control: Control
) -> Variant:
    text = unzipped(data, recording.file.path).decode("utf-8", "replace")
    title = name or f"compiler: {recording.file.name}"
    variant = compiler_variant(text, recording.file.path, spec, title, control, loaded=module)
    return replace(variant, recording=recording)
