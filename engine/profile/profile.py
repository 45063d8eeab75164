"""A measured profile as columns: which instruction ran on which device, when, and for how long."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.ir.graph import Ints
from engine.timeline.timeline import LaneKind


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
    execution: Ints
    """Which execution of the program on its device, counted from 0."""
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

    @property
    def executions(self) -> int:
        """How often the program ran on the device that ran it most."""
        return int(self.execution.max()) + 1 if len(self) else 0
