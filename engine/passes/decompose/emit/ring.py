"""The logical ring in HLO: which position a device has, which shard an offset is, and a shift around the ring."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from engine.hlo.hlo_pb2 import SourceTarget
from engine.ir import groups as replica_groups
from engine.ir.build import Builder
from engine.ir.edit import Instruction
from engine.ir.groups import Groups, Mode
from engine.passes.decompose.rings.plans import Slot


@dataclass(frozen=True, slots=True)
class Pace:
    """How a slot's shard moves on from one loop iteration to the next."""

    iteration: Instruction
    """Counts iterations from 0."""
    delta: int
    """Positions to the right per iteration."""
    trips: int


@dataclass(frozen=True, eq=False, slots=True)
class Ring:
    """The rings of one collective; all groups at once."""

    groups: Groups
    devices: int
    """How many partitions (or replicas) the module has."""
    _pairs: dict[int, list[SourceTarget]] = field(default_factory=dict)

    @property
    def size(self) -> int:
        return self.groups.size

    @property
    def by_partition(self) -> bool:
        return self.groups.mode is Mode.PARTITION

    def position(self, builder: Builder) -> Instruction:
        """This device's position in its group, s32: by arithmetic where groups are regular, else from a table."""
        device = builder.device_id(replica=not self.by_partition)
        digits = replica_groups.digits(self.groups)
        if digits is None:
            return builder.lookup(builder.table(replica_groups.positions(self.groups, self.devices)), device)
        total: Instruction | None = None
        for digit in digits:
            high = builder.divide_index(device, digit.stride)
            # Ids end below stride * modulus for the outermost digit: no remainder is needed there.
            if digit.stride * digit.modulus < self.devices:
                high = builder.wrap_index(high, digit.modulus)
            part = builder.scale_index(high, digit.weight)
            total = part if total is None else builder.sum_index(total, part)
        return builder.index(0) if total is None else total

    def shard(self, builder: Builder, position: Instruction, slot: Slot, pace: Pace | None = None) -> Instruction:
        """(position + offset) mod N, where the offset moves on with the iteration inside a loop."""
        size = self.size
        start = slot.offset % size
        if pace is None:
            return position if start == 0 else builder.wrap_index(builder.add_index(position, start), size)
        moved = builder.scale_index(pace.iteration, abs(pace.delta))
        if pace.delta >= 0:
            number = builder.sum_index(builder.add_index(position, start), moved)
        else:
            # Enough turns on top for the difference not to become negative.
            turns = -(-abs(pace.delta) * pace.trips // size)
            number = builder.difference_index(builder.add_index(position, start + turns * size), moved)
        return builder.wrap_index(number, size)

    def shift(self, builder: Builder, value: Instruction, hops: int) -> Instruction:
        """Every position's value `hops` positions to its left (negative: to its right); itself for no hop."""
        if hops % self.size == 0:
            return value
        pairs = self._pairs.get(hops)
        if pairs is None:
            listed = replica_groups.shift_pairs(self.groups, hops)
            pairs = self._pairs[hops] = [SourceTarget(source=s, target=t) for s, t in listed]
        return builder.collective_permute(value, pairs, partitions=self.by_partition)

    def numbered(self, builder: Builder, shard: Instruction, numbers: tuple[int, ...]) -> Instruction:
        """numbers[shard]: which block of the result belongs to a ring position; the shard itself for the identity."""
        if numbers == tuple(range(len(numbers))):
            return shard
        return builder.lookup(builder.table(np.array(numbers, np.int64)), shard)
