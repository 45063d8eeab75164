"""How chips are wired, and what load transfers put on the links.

Links are known by class, not one by one: all links of a torus that point along +x in even rows are one `Link`, those in
odd rows another, and a load is that of the heaviest link of its class. SPMD programs load the links of a class alike,
so this is what bounds a transfer, and thousands of chips cost no more than eight. Even and odd rows are told apart
because a ring that goes back and forth through a box uses +x in the ones and -x in the others: its two directions
share no link, which one class for all +x would not show.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from engine.chips.chip import Rate
from engine.ir.graph import Bools, Ints

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Link:
    """A class of links that are alike; each has this rate of its own."""

    name: str
    """As shown: ``ICI x+``, ``NVLink out``."""
    rate: Rate


class Load(NamedTuple):
    """What a set of transfers puts on the network."""

    bytes: Floats
    """Bytes on the heaviest link of each class, shape [link classes]."""
    latency: int
    """Picoseconds of the longest path."""


class Topology(Protocol):
    """Chips 0..n-1 and the links between them."""

    @property
    def size(self) -> int:
        """How many chips."""
        ...

    @property
    def links(self) -> tuple[Link, ...]: ...

    @property
    def text(self) -> str:
        """As the user writes it: ``4x4x4``."""
        ...

    def load(self, sources: Ints, targets: Ints, size: Floats) -> Load:
        """Route transfers of `size` bytes each, all at once, and add up the loads."""
        ...


@dataclass(frozen=True, eq=False)
class Torus:
    """A box of chips with links to the neighbours along each axis; chip numbers run fastest along the first axis."""

    shape: tuple[int, ...]
    wrap: tuple[bool, ...]
    """Whether each axis has links from its last chip to its first."""
    link: Rate
    hop_latency: int
    """Picoseconds."""

    @property
    def size(self) -> int:
        return int(np.prod(self.shape))

    def __str__(self) -> str:
        return self.text

    @cached_property
    def links(self) -> tuple[Link, ...]:
        """Of even rows, then of odd ones: rows whose coordinates along the other axes add up to an odd number."""
        ways = [f"{'xyzw'[axis]}{way}" for axis in range(len(self.shape)) for way in "+-"]
        return tuple(Link(f"ICI {row}{way}", self.link) for row in ("", "odd ")[: self.parities] for way in ways)

    @cached_property
    def parities(self) -> int:
        """2 where there are odd rows, 1 in a line of chips. Links are numbered [parity, axis, + or -]."""
        return 2 if self._odd.any() else 1

    @property
    def text(self) -> str:
        return "x".join(map(str, self.shape))

    @cached_property
    def coordinates(self) -> Ints:
        """Position of each chip, shape [chips, axes]."""
        at = np.stack(np.unravel_index(np.arange(self.size), self.shape, order="F"), axis=1).astype(np.int64)
        at.setflags(write=False)
        return at

    @cached_property
    def _odd(self) -> Bools:
        """Whether each chip lies in an odd row along each axis, shape [chips, axes]."""
        odd: Bools = (self.coordinates.sum(axis=1, keepdims=True) - self.coordinates) % 2 == 1
        return odd

    @cached_property
    def _strides(self) -> Ints:
        return np.concatenate([[1], np.cumprod(self.shape)[:-1]]).astype(np.int64)

    def distances(self, sources: Ints, targets: Ints) -> Ints:
        """Signed hops along each axis on the shorter way, shape [transfers, axes].

        Half-way round a ring both ways are as short; chips with an even number go forward, the others backward, so that
        such transfers load both directions.
        """
        shape = np.asarray(self.shape)
        delta = self.coordinates[targets] - self.coordinates[sources]
        forward = delta % shape
        tie = (2 * forward == shape) & (self.coordinates[sources].sum(axis=1) % 2 == 1)[:, None]
        ring = np.where((2 * forward > shape) | tie, forward - shape, forward)
        return np.where(self.wrap, ring, delta)

    def load(self, sources: Ints, targets: Ints, size: Floats) -> Load:
        """Dimension-ordered routing: along x first, then y, then z, each the shorter way round."""
        totals = np.zeros((self.parities, len(self.shape), 2))
        if len(sources) == 0:
            return Load(totals.reshape(-1), 0)
        distances = self.distances(sources, targets)
        at = self.coordinates[sources].copy()
        for axis, length in enumerate(self.shape):
            for way, sign in enumerate((1, -1)):
                left = distances[:, axis] * sign
                moving = np.flatnonzero(left > 0)
                carried = np.zeros(self.size)
                here = at[moving].copy()
                for hop in range(int(left.max(initial=0))):
                    still = left[moving] > hop
                    here, moving = here[still], moving[still]
                    carried += np.bincount(here @ self._strides, weights=size[moving], minlength=self.size)
                    here[:, axis] = (here[:, axis] + sign) % length
                for parity in range(self.parities):
                    totals[parity, axis, way] = carried[self._odd[:, axis] == parity].max(initial=0)
            at[:, axis] = self.coordinates[targets][:, axis]
        return Load(totals.reshape(-1), int(np.abs(distances).sum(axis=1).max()) * self.hop_latency)


@dataclass(frozen=True, eq=False)
class Domains:
    """Switched domains of equal size (NVLink), each with one port to a network between them."""

    domains: int
    domain: int
    """Devices in one domain."""
    link: Rate
    network: Rate
    link_latency: int
    network_latency: int

    @property
    def size(self) -> int:
        return self.domains * self.domain

    def __str__(self) -> str:
        return self.text

    @cached_property
    def links(self) -> tuple[Link, ...]:
        ports = (Link("NVLink out", self.link), Link("NVLink in", self.link))
        if self.domains == 1:
            return ports
        return (*ports, Link("network out", self.network), Link("network in", self.network))

    @property
    def text(self) -> str:
        return f"{self.domains}x{self.domain}"

    def load(self, sources: Ints, targets: Ints, size: Floats) -> Load:
        totals = np.zeros(len(self.links))
        apart = sources != targets
        sources, targets, size = sources[apart], targets[apart], size[apart]
        if len(sources) == 0:
            return Load(totals, 0)
        totals[0] = np.bincount(sources, weights=size).max()
        totals[1] = np.bincount(targets, weights=size).max()
        leaving = sources // self.domain != targets // self.domain
        if leaving.any():
            totals[2] = np.bincount(sources[leaving] // self.domain, weights=size[leaving]).max()
            totals[3] = np.bincount(targets[leaving] // self.domain, weights=size[leaving]).max()
        return Load(totals, self.network_latency if leaving.any() else self.link_latency)
