"""A measured profile as columns: which instruction ran on which device, when, and for how long."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.ir.graph import Ints
from engine.timeline.timeline import LaneKind

PREDICTED = "Predicted by Lapstrake: nothing in this profile was measured."
"""What exports of predictions say of themselves."""

SYNCHRONOUS_LANE = "transfers, synchronous"
"""Name of the lane for transfers of CPU devices, which hold up their device."""

RUN_AS_JOB = "jit_lapstrake_run"
"""What a module is called that was run as a job would run it."""

ALONE = "One device computed alone: collectives were copies of its own data, and its results mean nothing."
"""What profiles of such runs say of themselves."""


@dataclass(frozen=True, slots=True)
class Line:
    """A row of a profile: a TPU's operations, a GPU's stream, one device's thunks on a CPU."""

    device: str
    """As the profile calls it: ``/device:TPU:0``; ``cpu 3`` for the fourth device of a CPU."""
    name: str
    kind: LaneKind
    """TRANSFER where every event lasts from an asynchronous start to its done."""


@dataclass(frozen=True, eq=False)
class Profile:
    """Events of HLO instructions, sorted by line, then start, then longest first. Columns of length e, read-only."""

    source: str
    """File as the user gave it, or what the run was: for messages."""
    platform: str
    """``cpu``, ``gpu`` or ``tpu``; empty where the profile does not tell."""
    lines: tuple[Line, ...]
    names: tuple[str, ...]
    """Distinct names of instructions, as the compiled module has them or, where the profile brings that module with
    the tags of a run of ours, as our module has them."""
    name: Ints
    """Index into `names`."""
    line: Ints
    """Index into `lines`."""
    module: Ints
    """Index into `modules`."""
    modules: tuple[str, ...]
    """Programs that ran, by the names that the profile has for them."""
    execution: Ints
    """Which execution of its program on its device, counted from 0; -1 where the profile does not tell."""
    start: Ints
    """Picoseconds from the first event of the profile."""
    duration: Ints
    """Picoseconds."""
    copies: npt.NDArray[np.bool_]
    """Whether the event is a copy, made by the compiler, of the named instruction's value."""
    part: Ints
    """Index into `parts`: which kernel of the instruction, where there are several."""
    parts: tuple[str, ...] = ("",)
    notes: tuple[str, ...] = ()
    """What a reader should know, each one sentence."""

    def __len__(self) -> int:
        return len(self.start)

    @property
    def devices(self) -> tuple[str, ...]:
        """Names of the devices, in the profile's order."""
        return tuple(dict.fromkeys(line.device for line in self.lines))


@dataclass(slots=True)
class Event:
    """One row on its way into a `Profile`. Times in picoseconds."""

    line: Line
    module: str
    name: str
    start: int
    duration: int
    part: str = ""
    execution: int = -1
    copy: bool = False


def profile_from(events: Sequence[Event], source: str, platform: str, notes: Sequence[str] = ()) -> Profile:
    """Columns of `events`, in any order."""
    lines: dict[Line, int] = {}
    names: dict[str, int] = {}
    modules: dict[str, int] = {}
    parts = {"": 0}
    for device in sorted({event.line.device for event in events}, key=_natural):
        for event in events:
            if event.line.device == device:
                lines.setdefault(event.line, len(lines))
    rows = np.array(
        [
            (
                lines[e.line],
                e.start,
                -e.duration,
                names.setdefault(e.name, len(names)),
                modules.setdefault(e.module, len(modules)),
                parts.setdefault(e.part, len(parts)),
                e.execution,
                e.copy,
            )
            for e in events
        ],
        dtype=np.int64,
    ).reshape(-1, 8)
    rows = rows[np.lexsort((rows[:, 2], rows[:, 1], rows[:, 0]))]
    begin = rows[:, 1].min() if len(rows) else 0
    columns = [rows[:, 3], rows[:, 0], rows[:, 4], rows[:, 6], rows[:, 1] - begin, -rows[:, 2], rows[:, 5]]
    name, line, module, execution, start, duration, part = (np.ascontiguousarray(column) for column in columns)
    copies = rows[:, 7].astype(np.bool_)
    for column in (name, line, module, execution, start, duration, part, copies):
        column.flags.writeable = False
    return Profile(
        source=source,
        platform=platform,
        lines=tuple(lines),
        names=tuple(names),
        name=name,
        line=line,
        module=module,
        modules=tuple(modules),
        execution=execution,
        start=start,
        duration=duration,
        copies=copies,
        part=part,
        parts=tuple(parts),
        notes=tuple(notes),
    )


def _natural(device: str) -> tuple[tuple[bool, int, str], ...]:
    """Sorts ``cpu 10`` after ``cpu 9``."""
    return tuple((piece.isdigit(), int(piece) if piece.isdigit() else 0, piece) for piece in re.split(r"(\d+)", device))
