"""Keeps permutes that go the same way round a ring from being in flight together.

Compilers predict any number of permutes at full speed, though two that go the same way share every link. Holding an
order to one each way makes their predictions mean what they say.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Hashable, Mapping
from dataclasses import dataclass

import numpy as np

from engine.ir.graph import Graph, Ints
from engine.ir.module import Module

Way = tuple[tuple[int, int], ...]
"""Source and target of each device's transfer: permutes with the same pairs take the same links."""


def ways(module: Module, graph: Graph) -> Mapping[int, Way]:
    """The way of each asynchronous permute of a computation, by the node of its start."""
    found: dict[int, Way] = {}
    for node in np.flatnonzero(graph.partner > np.arange(len(graph))).tolist():
        instruction = module.instructions[int(graph.ids[node])]
        if instruction.source_target_pairs:
            found[node] = tuple(sorted((pair.source, pair.target) for pair in instruction.source_target_pairs))
    return found


def most_each_way(graph: Graph, order: Ints, way: Mapping[int, Hashable]) -> int:
    """How many permutes of one way are in flight together, at most; 0 without permutes."""
    flying: Counter[Hashable] = Counter()
    most = 0
    for node in order.tolist():
        if node in way:
            flying[way[node]] += 1
            most = max(most, flying[way[node]])
        elif int(graph.partner[node]) in way:
            flying[way[int(graph.partner[node])]] -= 1
    return most


@dataclass(frozen=True, eq=False)
class Lengths:
    """How long things take, by node, in any one unit: arrays of shape [n]."""

    stream: Ints
    """On the compute stream, loops as a whole, waits for transfers left out."""
    transfer: Ints
    """From a start until what it sends has arrived."""


def one_each_way(graph: Graph, order: Ints, way: Mapping[int, Hashable], lengths: Lengths | None = None) -> Ints:
    """The order with every start held back until the permute before it that goes the same way is done.

    Starts of one way keep their order. Where something needs a permute that is held, those before it are waited for.
    With `lengths` a permute that others wait for is done as soon as it has arrived, wherever `order` has its done: two
    that begin together and are not needed before the end would otherwise leave no compute to hide the second.
    `order` must be topological; so is the result.
    """
    return _Holding(graph, way, lengths).run(order)


class _Holding:
    def __init__(self, graph: Graph, way: Mapping[int, Hashable], lengths: Lengths | None) -> None:
        self._graph = graph
        self._way = way
        self._lengths = lengths
        self._now = 0
        self._arrival: dict[int, int] = {}
        """When the permute of a start arrives."""
        self._flying: dict[Hashable, int] = {}
        self._held: dict[Hashable, deque[int]] = {}
        self._emitted: dict[int, None] = {}

    def run(self, order: Ints) -> Ints:
        for node in order.tolist():
            for way, held in self._held.items():
                if held and self._arrived(way):
                    self._free(way)
            self._visit(node)
        for way in list(self._held):
            while self._held[way]:
                self._free(way)
        made = np.fromiter(self._emitted, np.int64, len(self._emitted))
        made.setflags(write=False)
        return made

    def _visit(self, node: int) -> None:
        if node in self._emitted:
            return
        way = self._way.get(node)
        if way is not None and way in self._flying:
            if not self._arrived(way):
                self._held.setdefault(way, deque()).append(node)
                return
            self._free(way)
        for before in self._graph.predecessors.of(node).tolist():
            self._release(before)
        self._emit(node)

    def _arrived(self, way: Hashable) -> bool:
        """Whether the permute in flight could be done now without waiting; never where it is not known."""
        start = self._flying.get(way)
        if start is None or self._lengths is None or self._arrival[start] > self._now:
            return False
        before = self._graph.predecessors.of(int(self._graph.partner[start])).tolist()
        return all(node in self._emitted for node in before)

    def _release(self, node: int) -> None:
        """See to it that `node`, which comes earlier in the order, has been emitted."""
        while node not in self._emitted:
            self._free(self._way[node])

    def _free(self, way: Hashable) -> None:
        """Wait for the permute in flight; the next one that is held starts."""
        self._visit(int(self._graph.partner[self._flying[way]]))

    def _emit(self, node: int) -> None:
        self._emitted[node] = None
        self._spend(node)
        if node in self._way:
            self._flying[self._way[node]] = node
            return
        way = self._way.get(int(self._graph.partner[node]))
        if way is None:
            return
        del self._flying[way]
        held = self._held.get(way)
        if held:
            self._visit(held.popleft())

    def _spend(self, node: int) -> None:
        """Let the time pass that `node` takes, and for a done the one until its permute arrives."""
        if self._lengths is None:
            return
        self._now = max(self._now, self._arrival.get(int(self._graph.partner[node]), 0))
        self._now += int(self._lengths.stream[node])
        if node in self._way:
            self._arrival[node] = self._now + int(self._lengths.transfer[node])
