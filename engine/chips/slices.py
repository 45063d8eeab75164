"""Slices of TPUs: tori of equal shape, whose hosts also share a data-centre network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from engine.chips.chip import SliceLinks
from engine.chips.topology import Classes, Floats, Link, Load, Torus
from engine.ir.graph import Ints


@dataclass(frozen=True, eq=False)
class Slices:
    """So many slices alike; chips of the first slice have the lowest numbers. Hosts are blocks of neighbouring chips.

    Within a slice transfers take the links between chips. Between slices they leave by the sender's host's port to the
    network and come in by the receiver's host's: the network itself is taken to be wide enough.
    """

    count: int
    torus: Torus
    """One slice."""
    between: SliceLinks
    refined: Classes | None = None

    def with_classes(self, refined: Classes) -> Slices:
        return replace(self, refined=refined)

    @property
    def size(self) -> int:
        return self.count * self.torus.size

    def __str__(self) -> str:
        return self.text

    @property
    def text(self) -> str:
        return f"{self.count}@{self.torus.text}"

    @cached_property
    def alike(self) -> Classes:
        """Those of a torus, the same in every slice, then ports out of hosts and into hosts; so links are numbered."""
        inner, hosts = self.torus.alike, self.count * self._hosts
        ports = (Link("DCN out", self.between.host), Link("DCN in", self.between.host))
        out = len(inner.links)
        numbers = np.concatenate([np.tile(inner.of, self.count), np.repeat([out, out + 1], hosts)])
        return Classes((*inner.links, *ports), numbers.astype(np.int64))

    @cached_property
    def host(self) -> Ints:
        """Host of each chip, shape [chips]."""
        blocks = self._blocks
        at = self.torus.coordinates // np.minimum(self.between.chips[: len(blocks)], self.torus.shape)
        strides = np.concatenate([[1], np.cumprod(blocks)[:-1]])
        found: Ints = np.concatenate([at @ strides + slice_ * self._hosts for slice_ in range(self.count)])
        return found.astype(np.int64)

    @cached_property
    def _blocks(self) -> Ints:
        """Hosts along each axis of a slice."""
        shape = np.array(self.torus.shape)
        block: Ints = np.minimum(self.between.chips[: len(shape)], shape)
        return -(-shape // block)

    @cached_property
    def _hosts(self) -> int:
        return int(self._blocks.prod())

    def carry(self, sources: Ints, targets: Ints, size: Floats) -> Load:
        """Dimension-ordered routes within slices, hosts' ports between them."""
        chips = self.torus.size
        of_source, of_target = sources // chips, targets // chips
        apart = of_source != of_target
        within: list[Floats] = []
        latency = self.between.latency if apart.any() else 0
        for number in range(self.count):
            here = ~apart & (of_source == number)
            load = self.torus.carry(sources[here] % chips, targets[here] % chips, size[here])
            within.append(load.bytes)
            latency = max(latency, load.latency)
        return Load(np.concatenate([*within, *self._through(sources[apart], targets[apart], size[apart])]), latency)

    def ports(self, position: Ints, groups: Sequence[Sequence[int]], size: float) -> Load:
        """What hosts send and take over the network where every member of a group sends an N-th of `size` bytes to
        every other; `position` has the chip of each device. Counted by member, however many pairs there are."""
        load = np.zeros(self.count * self._hosts)
        for group in groups:
            chips = position[np.array(group, np.int64)]
            of = chips // self.torus.size
            there = np.bincount(of, minlength=self.count)
            np.add.at(load, self.host[chips], size / len(group) * (len(group) - there[of]))
        return Load(np.concatenate([np.zeros(self.count * len(self.torus.alike.of)), load, load]), self.between.latency)

    def _through(self, sources: Ints, targets: Ints, size: Floats) -> tuple[Floats, Floats]:
        """What goes out of hosts' ports, and what comes in, between chips of different slices."""
        hosts = self.count * self._hosts
        ends = [self.host[end] for end in (sources, targets)]
        out, into = (np.bincount(end, weights=size, minlength=hosts).astype(np.float64) for end in ends)
        return out, into
