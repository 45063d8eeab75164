"""What a scheduler is given and what it gives back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from engine.chips.budget import Budget
from engine.control import Control
from engine.ir.buffers import Buffers
from engine.ir.graph import Graph, Ints


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


@dataclass(frozen=True, eq=False)
class Schedule:
    """An order for every computation of a program."""

    scheduler: str
    budget: Budget
    orders: Mapping[int, Order]
    """Computation id → order."""


class Scheduler(Protocol):
    """A frozen dataclass whose fields are its options."""

    @property
    def name(self) -> str: ...

    def schedule(self, problem: Problem, control: Control) -> Order:
        """Order one computation. Raises `engine.schedule.errors.Infeasible` when no order fits budget and cap."""
        ...
