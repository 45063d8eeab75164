"""What the simulation of one computation gives: when each node ran, and the sums that its callers need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from engine.ir.graph import Graph, Ints
from engine.schedule.problem import Order
from engine.simulate.sharing import Flight
from engine.simulate.work import Work


class Totals(NamedTuple):
    """Sums over one execution, callees included, loops multiplied by their trip counts. Times in picoseconds."""

    makespan: int = 0
    compute: int = 0
    """Busy time of the compute stream."""
    exposed: int = 0
    """Time in which the compute stream waited for transfers."""
    comm: int = 0
    """Sum of transfer durations."""
    transfer_union: int = 0
    """Time in which at least one transfer was under way, those that a caller started included."""
    flops: int = 0
    hbm_bytes: int = 0

    def plus(self, other: Totals, times: int = 1) -> Totals:
        """Both together, `other` counted `times` times."""
        return Totals(*(mine + times * theirs for mine, theirs in zip(self, other, strict=True)))


@dataclass(frozen=True, eq=False)
class CallPlan:
    """What a node calls."""

    trips: int
    branches: tuple[tuple[int, tuple[ComputationRun, ...]], ...]
    """(weight, what is executed once) of each alternative; one for a loop (condition and body) or a call."""
    last: tuple[ComputationRun, ...] = ()
    """What a loop executes after its last iteration: its condition."""
    copies: int = 0
    """Picoseconds of loop-carried copies in each iteration."""

    @property
    def runs(self) -> tuple[ComputationRun, ...]:
        """Everything that is executed, once or more often."""
        branches = self.branches if self.trips else ()
        return tuple(run for _, runs in branches for run in runs) + self.last


@dataclass(frozen=True, eq=False)
class Plan:
    """One computation and its order, made ready for the event loop, which may execute it several times."""

    work: Work
    order: Order
    calls: Mapping[int, CallPlan]
    """By node."""
    held: Ints
    in_flight: int
    live: Ints
    """Bytes live at each position of the order, callees' own not included, shape [n]."""
    peak: int
    extra: int
    copies: int = 0
    """Picoseconds of loop-carried copies after each execution, where this is the body of a loop."""


@dataclass(frozen=True, eq=False)
class ComputationRun:
    """One execution of one computation. Integer picoseconds from its beginning; arrays are read-only.

    Arrays over the computation's n nodes are indexed by node, not by position.
    """

    plan: Plan
    reached: Ints
    """When the compute stream came to the node, shape [n]. Between that and `start` it waited for a transfer."""
    start: Ints
    """When the node began, shape [n]."""
    end: Ints
    """When the compute stream left the node, shape [n]."""
    depart: Ints
    """When the transfer of a start or blocking collective began, -1 elsewhere. Shape [n]."""
    arrive: Ints
    """When that transfer was over; -1 elsewhere, and where it outlives the computation. Shape [n]."""
    calls: Mapping[int, Call]
    """Node → what it called: loops, calls and conditionals."""
    totals: Totals
    flights: tuple[Flight, ...] = ()
    """Transfers of this computation that are under way at its end."""
    carried: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    """Start → (begin, end) of the rest of a transfer that loop state carried in: in a loop's body that of the iteration
    before, after a loop that of its last iteration."""

    @property
    def computation(self) -> int:
        """Id of the computation."""
        return self.graph.computation

    @property
    def graph(self) -> Graph:
        return self.plan.work.graph

    @property
    def makespan(self) -> int:
        """Picoseconds."""
        return self.totals.makespan

    @property
    def held(self) -> Ints:
        """Most operations in flight at one moment, callees included, by `Kind`; shape [number of kinds]."""
        return self.plan.held

    @property
    def in_flight(self) -> int:
        """Most operations in flight at one moment, callees included, all kinds together."""
        return self.plan.in_flight

    @property
    def peak(self) -> int:
        """Bytes live at the worst moment, callees and parameters included."""
        return self.plan.peak

    @property
    def extra(self) -> int:
        """Bytes live at the worst moment without what the caller owns: what this needs on top of its caller."""
        return self.plan.extra


@dataclass(frozen=True, eq=False)
class Stretch:
    """Consecutive iterations of a loop that run alike; a call is a loop of one iteration."""

    count: int
    runs: tuple[ComputationRun, ...]
    """What one iteration executes, one after the other: condition and body."""
    copies: int = 0
    """Picoseconds of loop-carried copies at the end of each iteration."""

    @property
    def duration(self) -> int:
        """Picoseconds of one iteration."""
        return sum(run.makespan for run in self.runs) + self.copies

    @property
    def totals(self) -> Totals:
        """Of one iteration."""
        totals = Totals(makespan=self.copies, compute=self.copies)
        for run in self.runs:
            totals = totals.plus(run.totals)
        return totals


@dataclass(frozen=True, eq=False)
class Call:
    """What a `while`, `call` or `conditional` executed."""

    trips: int
    totals: Totals
    stretches: tuple[Stretch, ...]
    """In order; empty for a conditional of several likely branches, whose time is their mean."""
