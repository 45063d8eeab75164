"""A module made ready for scheduling and simulation: graphs, costs, buffers and trip counts of what gets executed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from engine.chips.machine import Machine
from engine.cost.costs import Costs, Origin
from engine.ir.buffers import Buffers
from engine.ir.graph import Graph
from engine.ir.module import Module


@dataclass(frozen=True, slots=True)
class UsedCosts:
    """What became of times that came from elsewhere. Names are sorted."""

    source: str
    """As `ImportedCosts.source`: the file's path, or what the times are."""
    origin: Origin
    used: int
    """How many of its times are used, but for what a higher or later one replaces."""
    unmatched: tuple[str, ...]
    """No instruction is called that, in the module as loaded or in this one."""
    callers: tuple[str, ...]
    """Loops, calls and conditionals: their times are those of their callees."""
    inside: tuple[str, ...]
    """In fusions or reducers, which are priced whole."""
    scaled: tuple[str, ...] = ()
    """Of the module as loaded: their times are shared out, by the model, over what passes made of them."""
    gone: tuple[str, ...] = ()
    """Of the module as loaded: passes replaced them, and what came of them has other times, at least in part."""
    priced: frozenset[str] = frozenset()
    """Names whose times price something here."""


@dataclass(frozen=True, eq=False)
class Program:
    """Computations that run as sequences of instructions: the entry, loop bodies and conditions, branches, callees.

    Fusion bodies, reducers and the wrapped computations of asynchronous operations are part of their caller's cost.
    """

    module: Module
    machine: Machine
    graphs: Mapping[int, Graph]
    """Computation id → graph, callees before callers; the entry comes last."""
    costs: Mapping[int, Costs]
    buffers: Mapping[int, Buffers]
    trips: Mapping[int, int]
    """Instruction id of each reachable `while` → how often its body runs."""
    copies: Mapping[int, int] = field(default_factory=dict)
    """Id of a loop body → picoseconds that its loop-carried copies take in each iteration, where that is given; else
    the simulator finds out what the body's order makes necessary."""
    shows_copies: bool = True
    """Whether the module holds its loop-carried copies itself, as a compiled one does."""
    weights: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    """Instruction id of a `conditional` → how often each branch runs, relative to the others; equally where missing."""
    imported: tuple[UsedCosts, ...] = ()
    """Times that do not come from the model, lowest rank first."""
    notes: tuple[str, ...] = ()
    """What was assumed (an unknown trip count, a branch weight, …), each one sentence for the user."""

    @cached_property
    def loop_bodies(self) -> frozenset[int]:
        """Ids of the computations that a `while` runs as its body."""
        return frozenset(
            int(graph.called.of(node)[0])
            for graph in self.graphs.values()
            for node, opcode in enumerate(graph.opcodes)
            if opcode == "while"
        )
