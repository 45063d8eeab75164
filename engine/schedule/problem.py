"""What a scheduler is given and what it gives back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import IntFlag
from functools import cached_property
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from engine.chips.budget import Budget
from engine.control import Control
from engine.ir.buffers import Buffers
from engine.ir.graph import Csr, Graph, Ints


class Hint(IntFlag):
    """What a program asks of schedulers (XLA's ``scheduler_hint`` and its kin)."""

    NONE = 0
    LATE = 1
    """``force_early`` in XLA, which counts from the end: as late in the program as dependencies allow."""
    EARLY = 2
    """``force_delay``: as early in the program as dependencies allow."""
    WIDE = 4
    """``force_delay_async`` on an asynchronous operation: its start early, its done late."""


@dataclass(frozen=True, eq=False)
class Hints:
    """What the program asks of schedulers; arrays have shape [n]."""

    flags: npt.NDArray[np.uint8]
    """`Hint` of each node."""
    priority: Ints
    """XLA's ``scheduler_delay_priority``; of two early ones the higher comes first in the program. 0 by default."""


@dataclass(frozen=True, eq=False)
class Problem:
    """One computation to be put in order. Times are integer picoseconds; arrays have shape [n]."""

    graph: Graph
    compute: Ints
    """Time on the compute stream, callees (loops × trips) included."""
    transfer: Ints
    """Transfer time of an asynchronous start, or of a blocking collective, when alone."""
    kind: npt.NDArray[np.uint8]
    """`Kind` of each node."""
    held: npt.NDArray[np.int64]
    """Shape [n, number of kinds]: most that a node's callees hold in flight, by kind; 0 for nodes that call nothing."""
    buffers: Buffers
    budget: Budget
    memory_cap: int | None = None
    """Bytes that this computation's own buffers may take at any moment; None is unlimited."""
    callee_peak: Ints | None = None
    """Extra bytes that a node's callees need while they run, shape [n]."""
    held_total: Ints | None = None
    """Most that a node's callees hold in flight of all kinds together, shape [n]; None: the sum of `held`."""
    group: Ints | None = None
    """Scheduling group of each node, -1 for none; the members of each of `groups` follow each other without a gap."""
    hints: Hints | None = None
    loads: Loads | None = None
    """Where transfers go; None where they are taken not to share anything."""
    effort: float = 1.0
    """Part of a scheduler's time limit that is meant for this computation."""
    simulated: Callable[[Ints], int] | None = None
    """Makespan of an order in the simulator, in picoseconds; None where only the scheduler's own estimate is asked."""

    @cached_property
    def predecessors(self) -> Csr:
        """Every edge an order must honour: data, control, and readers before what overwrites them in place."""
        return self._edges[0]

    @cached_property
    def successors(self) -> Csr:
        """The inverse of `predecessors`."""
        return self._edges[1]

    @cached_property
    def groups(self) -> tuple[Ints, ...]:
        """Members of each scheduling group of two or more, ascending, groups by number.

        A start and its done that are not in the same group are in none: keeping either with its group would say nothing
        of the transfer.
        """
        if self.group is None:
            return ()
        partner = self.graph.partner
        apart = (partner >= 0) & (self.group != self.group[np.maximum(partner, 0)])
        group = np.where(apart, -1, self.group)
        found = (np.flatnonzero(group == number) for number in np.unique(group[group >= 0]))
        return tuple(members for members in found if len(members) > 1)

    @cached_property
    def _edges(self) -> tuple[Csr, Csr]:
        overwrites = self.buffers.overwrites
        if overwrites is None:
            return self.graph.predecessors, self.graph.successors
        n = len(self.graph)
        sources = np.concatenate([self.graph.predecessors.items, overwrites.items])
        targets = np.concatenate([row_numbers(self.graph.predecessors), row_numbers(overwrites)])
        return distinct_rows(targets, sources, n), distinct_rows(sources, targets, n)


@dataclass(frozen=True, eq=False)
class Loads:
    """Which links each node's transfer loads, as in `engine.cost.costs.Costs`."""

    start: Ints
    """Shape [n + 1]: node k's loads are entries ``start[k]:start[k + 1]`` of the two arrays below."""
    link: Ints
    bytes: Ints


@dataclass(frozen=True, eq=False)
class Decisions:
    """Why each node is where it is; arrays have shape [n] and are indexed by node."""

    rule: npt.NDArray[np.uint8]
    """Number of the rule, in `rules`, that placed the node."""
    beat: Ints
    """The best other node that could have been placed at that step, -1 where there was none."""
    waited_for: Ints
    """The node that kept it from being placed earlier (a dependency, or who held the budget), -1 where nothing did."""
    rules: tuple[str, ...]
    """Names of the rules."""


@dataclass(frozen=True, eq=False)
class Order:
    """An order for one computation."""

    nodes: Ints
    """Node numbers in order of execution, shape [n]: a topological order of the graph's predecessors."""
    decisions: Decisions | None = None
    bound: int | None = None
    """A proven lower bound of the makespan in picoseconds (transfers not sharing anything), where one was found."""

    def positions(self) -> Ints:
        """The position of each node, shape [n]."""
        return positions(self.nodes)


@dataclass(frozen=True, eq=False)
class Schedule:
    """An order for every computation of a program."""

    scheduler: str
    budget: Budget
    orders: Mapping[int, Order]
    """Computation id → order."""
    memory_caps: Mapping[int, int] = field(default_factory=dict)
    """Bytes that each computation and its callees may take, by computation id; empty without a cap."""
    kept: frozenset[int] = frozenset()
    """Ids of computations that stay in the order that the module carries: the scheduler's is slower."""


@runtime_checkable
class Scheduler(Protocol):
    """A frozen dataclass whose fields are its options."""

    name: ClassVar[str]

    def schedule(self, problem: Problem, control: Control) -> Order:
        """Order one computation. Raises `engine.schedule.errors.Infeasible` when no order fits budget and cap."""
        ...


def positions(order: Ints) -> Ints:
    """The position of each node."""
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return place


def row_numbers(csr: Csr) -> Ints:
    """For every item the row it is in."""
    return np.repeat(np.arange(len(csr.starts) - 1, dtype=np.int64), np.diff(csr.starts))


def distinct_rows(keys: Ints, values: Ints, count: int) -> Csr:
    """Rows by key with their distinct values, ascending."""
    pairs = np.unique(keys * count + values)
    starts = np.searchsorted(pairs, np.arange(count + 1, dtype=np.int64) * count).astype(np.int64)
    items = pairs % max(count, 1)
    starts.flags.writeable = items.flags.writeable = False
    return Csr(starts, items)
