"""When each instruction runs: the result of a simulation or a measurement, as numpy columns."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from engine.cost.costs import Origin
from engine.ir.graph import Ints
from engine.timeline.folds import Folds, no_folds


class Category(IntEnum):
    """What a slice is drawn as."""

    EINSUM = 0
    ELEMENTWISE = 1
    """Element-wise and all other compute."""
    COPY = 2
    """Copies, transposes and other layout changes."""
    PERMUTE = 3
    COLLECTIVE = 4
    """Every collective but permutes."""
    EXPOSED = 5
    """A gap on a compute lane in which the next instruction waits for a transfer."""
    LOOP = 6
    """The frame around the iterations of a loop, or around a call."""


class LaneKind(IntEnum):
    COMPUTE = 0
    TRANSFER = 1


@dataclass(frozen=True, slots=True)
class Lane:
    """A row of slices that do not overlap, but for nested frames."""

    name: str
    """As shown: ``compute``, ``ICI x+``, ``NVLink``."""
    kind: LaneKind


@dataclass(frozen=True, eq=False)
class Curve:
    """A step function of time."""

    time: Ints
    """Picoseconds at which the value changes, ascending."""
    value: Ints
    """The value from that time on."""

    @property
    def peak(self) -> int:
        return int(self.value.max()) if len(self.value) else 0


@dataclass(frozen=True, eq=False)
class Timeline:
    """Slices as columns of length s, sorted by lane, then start, then longest first. Read-only.

    Times are integer picoseconds from the start of the entry computation. Iterations of a loop that are not expanded
    are covered by the loop's frame (`Category.LOOP`, with `repeat` its trip count): the frame holds the slices of the
    expanded iterations at their true times, and `folds` says where the others are.
    """

    instruction: Ints
    """Instruction id; -1 where a slice stands for none."""
    lane: npt.NDArray[np.int16]
    """Index into `lanes`."""
    start: Ints
    duration: Ints
    category: npt.NDArray[np.uint8]
    depth: npt.NDArray[np.uint8]
    """How many frames the slice lies in."""
    repeat: Ints
    """Trip count of a frame, else 1."""
    iteration: Ints
    """Which iteration of the innermost frame a slice belongs to, counted from 0."""
    waits_for: Ints
    """For an exposed gap the instruction id of the start (or blocking collective) it waits for, else -1."""
    lanes: tuple[Lane, ...]
    in_flight: Curve
    """Asynchronous operations in flight."""
    memory: Curve
    """Bytes live, parameters included."""
    makespan: int
    source: Origin = Origin.MODEL
    folds: Folds = field(default_factory=no_folds)

    def __len__(self) -> int:
        return len(self.start)


@dataclass(frozen=True, slots=True)
class Metrics:
    """One execution of the entry computation, loops multiplied by their trip counts. Times in picoseconds."""

    makespan: int
    compute: int
    """Busy time of compute."""
    comm: int
    """Sum of transfer durations."""
    exposed: int
    """Time in which no compute stream is busy and the next instruction waits for a transfer."""
    transfer_union: int
    """Length of the union of all transfer intervals."""
    peak_memory: int
    """Bytes."""
    max_in_flight: int
    flops: int
    flops_utilization: float
    """`flops` over makespan × the chip's peak for the dtype of most of them, 0..1."""
    lower_bound: int
    """No schedule of this module on this machine can be faster, under the same cost model."""

    @property
    def overlap_fraction(self) -> float:
        """1 - exposed / union of the transfer intervals; 1 when there are no transfers."""
        return 1.0 - self.exposed / self.transfer_union if self.transfer_union else 1.0
