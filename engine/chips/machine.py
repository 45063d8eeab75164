"""A machine: so many chips of one kind, wired in one way, and how the job numbers them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engine.chips.chip import Chip
from engine.chips.topology import Floats, Link, Load, Topology, classes_of
from engine.ir.graph import Ints


@dataclass(frozen=True, eq=False)
class Machine:
    """Chips, their wiring and the job's device order. Read-only."""

    chip: Chip
    devices: int
    topology: Topology
    position: Ints
    """Chip of `topology` on which each of the job's devices lies, shape [devices]."""
    mesh: tuple[tuple[str, int], ...] = ()
    """Names and sizes of the job's mesh axes, slowest first."""
    notes: tuple[str, ...] = ()
    """What was inferred (mesh axes from replica groups, …), each one sentence for the user."""

    @property
    def links(self) -> tuple[Link, ...]:
        """Link classes; link loads of costs are numbered by this."""
        return classes_of(self.topology).links

    @property
    def hbm_bandwidth(self) -> float:
        """Bytes per second that one device reaches at most."""
        return self.chip.hbm_bandwidth * self.chip.units.hbm_efficiency

    @property
    def copy_bandwidth(self) -> float:
        """Bytes per second of a copy between HBM and another memory of the device, which is how matmuls are fed."""
        return self.chip.hbm_bandwidth * self.chip.units.matmul_hbm_efficiency

    def load(self, sources: Ints, targets: Ints, size: Floats | float) -> Load:
        """Load of transfers between the job's devices, `size` bytes each, by class of links."""
        carried = self.carry(sources, targets, size)
        return Load(classes_of(self.topology).heaviest(carried.bytes), carried.latency)

    def carry(self, sources: Ints, targets: Ints, size: Floats | float) -> Load:
        """The same on every physical link."""
        sizes = np.broadcast_to(np.asarray(size, np.float64), sources.shape)
        return self.topology.carry(self.position[sources], self.position[targets], sizes)
