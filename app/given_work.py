"""The window's jobs about files that the user gave besides the module: costs, schedules, profiles."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from app.kept import keep
from app.work import evaluate
from engine.control import Control
from engine.cost.imports import parse_costs
from engine.cost.scheduled_module import read_scheduled_module
from engine.hlo.decoding import unzipped
from engine.ir.module import Module
from engine.profile.held import held_module
from engine.profile.reading import profile_from_bytes
from engine.session.belonging import check_devices, cost_doubts, profile_doubts, schedule_doubts
from engine.session.compiled import found_again, predicted_variant
from engine.session.given import GivenFile, Recording, RecordingKind, content_of, take
from engine.session.measured import Measured, measured_variant
from engine.session.plan import MachineSpec, Plan
from engine.session.variant import Variant

_LISTED = 8
"""Names in a note; the log lists more, and the pane Differences up to a thousand."""
_LOGGED = 200
"""Names in the log."""


def take_costs(
    path: str, module: Module, names: tuple[frozenset[str], ...], *, control: Control
) -> tuple[GivenFile, tuple[str, ...]]:
    """A file of costs as it is now, and what speaks against its being of `module`, whose variants have those `names`.

    Raises InputError for anything else, and for costs of another module.
    """
    control.step(0.0, f"reading {path}")
    file, data = take(path)
    costs = parse_costs(data, path)
    control.step(0.7, f"looking for its names in {module.name}")
    devices = 0
    if costs.schedule is not None:
        text = unzipped(data, path).decode("utf-8", "replace")
        devices = read_scheduled_module(text, path).module.header.devices
    return file, cost_doubts(costs, devices, names, module, file.name)


def take_schedule(path: str, *, control: Control) -> GivenFile:
    """A compiler's schedule as it is now; what it holds is read when it is shown."""
    control.step(0.0, f"reading {path}")
    return take(path)[0]


def take_profile(path: str, known: tuple[frozenset[str], ...], *, control: Control) -> tuple[GivenFile, int]:
    """A profile as it is now, and which of several modules was run: `known` are the names of their instructions.

    The first of those that have as many of the profile's events as any. Raises InputError for what is no profile.
    """
    control.step(0.0, f"reading {path}")
    file, data = take(path)
    profile = profile_from_bytes(data, path)
    control.step(0.7, "looking for the module that was run")
    events = np.bincount(profile.name, minlength=len(profile.names)).tolist()
    counts = [sum(n for name, n in zip(profile.names, events, strict=True) if name in names) for names in known]
    return file, counts.index(max(counts)) if counts else 0


def take_module(path: str, folder: str, *, control: Control) -> GivenFile:
    """The compiled module that a profile brings along, as a file in `folder`. Raises InputError where it has none."""
    control.step(0.0, f"looking for the module in {path}")
    _, data = take(path)
    proto = held_module(unzipped(data, path), path)
    name = "".join(c if c.isalnum() else "_" for c in proto.hlo_module.name)
    return keep(folder, proto.SerializeToString(deterministic=True), f".{name}.hlo.pb")


@dataclass(frozen=True, eq=False)
class Recorded:
    """A recording as a variant."""

    variant: Variant
    measured: Measured | None = None
    """What a profile says besides; None for a schedule."""
    doubts: tuple[str, ...] = ()
    """What speaks against its being of the module."""

    def __str__(self) -> str:
        """In a sentence, with everything that did not match, for the log."""
        measured = self.measured
        if measured is None:
            return " ".join(note for note in self.variant.notes if "found in the module" in note)
        said = f"{measured.matched:,} of {measured.events:,} events belong to an instruction of the module"
        names = _unmatched(measured)
        more = f" and {len(names) - _LOGGED:,} more" if len(names) > _LOGGED else ""
        left = ", ".join(names[:_LOGGED]) + more
        return f"{said}; no instruction is called {left}" if left else said


def read_recording(
    module: Module, spec: MachineSpec, plan: Plan, recording: Recording, name: str, *, control: Control
) -> Recorded:
    """The variant that a recording shows: of the module that `plan` makes of `module`, or of the compiler's own."""
    control.step(0.0, f"reading {recording.file.name}")
    data = content_of(recording.file)
    if recording.kind == RecordingKind.SCHEDULE:
        return _schedule(module, spec, recording, data, name, control)
    predicted = evaluate(module, spec, plan, "", control=control.part(0.0, 0.5))
    control.step(0.5, f"reading {recording.file.name}")
    profile = profile_from_bytes(data, recording.file.path)
    title = name or f"measured: {recording.file.name}"
    measured = measured_variant(predicted, profile, name=title, control=control.part(0.6, 1.0))
    doubts = profile_doubts(measured, len(profile.devices), module, recording.file.name)
    notes = (*doubts, *measured.variant.notes, *_left(measured))
    variant = replace(measured.variant, recording=recording, notes=notes)
    return Recorded(variant, replace(measured, variant=variant), doubts)


def _schedule(
    module: Module, spec: MachineSpec, recording: Recording, data: bytes, name: str, control: Control
) -> Recorded:
    text = unzipped(data, recording.file.path).decode("utf-8", "replace")
    title = name or f"compiler: {recording.file.name}"
    scheduled = read_scheduled_module(text, recording.file.path)
    check_devices(scheduled.module.header.devices, module, recording.file.name, "a compiler's schedule")
    variant = predicted_variant(scheduled, spec, title, control, loaded=module)
    found, timed = found_again(variant.program, variant.timeline)
    doubts = schedule_doubts(scheduled.module.name, module, recording.file.name, found, timed)
    return Recorded(replace(variant, recording=recording, notes=(*doubts, *variant.notes)), doubts=doubts)


def _left(measured: Measured) -> tuple[str, ...]:
    """A note about what matched nothing, if anything."""
    names = _unmatched(measured)
    if not names:
        return ()
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return (f"Of the profile, no instruction is called {', '.join(names[:_LISTED])}{more}.",)


def _unmatched(measured: Measured) -> tuple[str, ...]:
    return tuple(f"{one.name} ×{one.count:,}" for one in measured.unmatched)
