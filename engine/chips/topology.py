"""How chips are wired, and what load transfers put on the links.

Links are known by class: all links of a torus that point along +x in even rows are one `Link`, those in odd rows
another, and a load is that of the heaviest link of its class. Links that a module's transfers do not load alike are
told apart by finer classes (`engine.chips.classes`), so that a few classes stand for the links of thousands of chips,
and yet none of them mixes what shares no link.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
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
    """Bytes on the heaviest link of each class, shape [link classes], or on each physical link."""
    latency: int
    """Picoseconds of the longest path."""


@dataclass(frozen=True, eq=False)
class Classes:
    """Links sorted into classes that are loaded alike."""

    links: tuple[Link, ...]
    of: Ints
    """Number of the class of every physical link."""

    def heaviest(self, carried: Floats) -> Floats:
        """Bytes on the heaviest link of each class, of bytes on every physical link."""
        totals = np.zeros(len(self.links))
        np.maximum.at(totals, self.of, carried)
        return totals


class Topology(Protocol):
    """Chips 0..n-1 and the links between them."""

    @property
    def size(self) -> int:
        """How many chips."""
        ...

    @property
    def alike(self) -> Classes:
        """The classes that the wiring itself gives."""
        ...

    @property
    def refined(self) -> Classes | None:
        """Finer ones for the transfers of a module; None where the wiring's own do."""
        ...

    def with_classes(self, refined: Classes) -> Topology: ...

    @property
    def text(self) -> str:
        """As the user writes it: ``4x4x4``."""
        ...

    def carry(self, sources: Ints, targets: Ints, size: Floats) -> Load:
        """Route transfers of `size` bytes each, all at once, and add up the loads of every physical link."""
        ...


def classes_of(topology: Topology) -> Classes:
    """The classes that loads are given by."""
    return topology.alike if topology.refined is None else topology.refined


@dataclass(frozen=True, eq=False)
class Torus:
    """A box of chips with links to the neighbours along each axis; chip numbers run fastest along the first axis."""

    shape: tuple[int, ...]
    wrap: tuple[bool, ...]
    """Whether each axis has links from its last chip to its first."""
    link: Rate
    hop_latency: int
    """Picoseconds."""
    refined: Classes | None = None

    def with_classes(self, refined: Classes) -> Torus:
        return replace(self, refined=refined)

    @property
    def size(self) -> int:
        return int(np.prod(self.shape))

    def __str__(self) -> str:
        return self.text

    @cached_property
    def alike(self) -> Classes:
        """By axis and way, of even rows, then of odd ones.

        Rows are odd whose coordinates along the other axes add up to an odd number: a ring that goes back and forth
        through a box uses +x in the ones and -x in the others. Physical links are numbered [chip that they leave, axis,
        + or -].
        """
        axes = len(self.shape)
        ways = [f"{'xyzw'[axis]}{way}" for axis in range(axes) for way in "+-"]
        rows = ("", "odd ") if self._odd.any() else ("",)
        links = tuple(Link(f"ICI {row}{way}", self.link) for row in rows for way in ways)
        numbers = self._odd[:, :, None] * 2 * axes + np.arange(2 * axes).reshape(axes, 2)
        return Classes(links, numbers.astype(np.int64).reshape(-1))

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

    def numbers(self, at: Ints) -> Ints:
        """Numbers of the chips at these coordinates, shape [..., axes]."""
        found: Ints = at @ self._strides
        return found

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

    def carry(self, sources: Ints, targets: Ints, size: Floats) -> Load:
        """Dimension-ordered routing: along x first, then y, then z, each the shorter way round."""
        carried = np.zeros((self.size, len(self.shape), 2))
        if len(sources) == 0:
            return Load(carried.reshape(-1), 0)
        distances = self.distances(sources, targets)
        at = self.coordinates[sources].copy()
        for axis, length in enumerate(self.shape):
            for way, sign in enumerate((1, -1)):
                left = distances[:, axis] * sign
                moving = np.flatnonzero(left > 0)
                here = at[moving].copy()
                for hop in range(int(left.max(initial=0))):
                    still = left[moving] > hop
                    here, moving = here[still], moving[still]
                    chips = self.numbers(here)
                    carried[:, axis, way] += np.bincount(chips, weights=size[moving], minlength=self.size)
                    here[:, axis] = (here[:, axis] + sign) % length
            at[:, axis] = self.coordinates[targets][:, axis]
        return Load(carried.reshape(-1), int(np.abs(distances).sum(axis=1).max()) * self.hop_latency)


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
    refined: Classes | None = None

    def with_classes(self, refined: Classes) -> Domains:
        return replace(self, refined=refined)

    @property
    def size(self) -> int:
        return self.domains * self.domain

    def __str__(self) -> str:
        return self.text

    @cached_property
    def alike(self) -> Classes:
        """Ports out of devices, into devices, out of domains, into domains; so are physical links numbered."""
        ports = (Link("NVLink out", self.link), Link("NVLink in", self.link))
        numbers = np.repeat(np.arange(2, dtype=np.int64), self.size)
        if self.domains == 1:
            return Classes(ports, numbers)
        network = (Link("network out", self.network), Link("network in", self.network))
        return Classes((*ports, *network), np.concatenate([numbers, np.repeat([2, 3], self.domains)]))

    @property
    def text(self) -> str:
        return f"{self.domains}x{self.domain}"

    def carry(self, sources: Ints, targets: Ints, size: Floats) -> Load:
        apart = sources != targets
        sources, targets, size = sources[apart], targets[apart], size[apart]
        ends = [np.bincount(end, weights=size, minlength=self.size) for end in (sources, targets)]
        leaving = sources // self.domain != targets // self.domain
        if self.domains > 1:
            ends += [
                np.bincount(end[leaving] // self.domain, weights=size[leaving], minlength=self.domains)
                for end in (sources, targets)
            ]
        latency = self.network_latency if leaving.any() else self.link_latency
        return Load(np.concatenate(ends), latency if len(sources) else 0)
