"""Keeps permutes that go the same way round a ring from being in flight together.

Compilers predict any number of permutes at full speed, though two that go the same way share every link. Holding an
order to one each way makes their predictions mean what they say.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Hashable, Mapping

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


def one_each_way(graph: Graph, order: Ints, way: Mapping[int, Hashable]) -> Ints:
    """The order with every start held back until the permute before it that goes the same way is done.

    Starts of one way keep their order. Where something needs a permute that is held, those before it are waited for.
    `order` must be topological; so is the result.
    """
    return _Holding(graph, way).run(order)


class _Holding:
    def __init__(self, graph: Graph, way: Mapping[int, Hashable]) -> None:
        self._graph = graph
        self._way = way
        self._flying: dict[Hashable, int] = {}
        self._held: dict[Hashable, deque[int]] = {}
        self._emitted: dict[int, None] = {}

    def run(self, order: Ints) -> Ints:
        for node in order.tolist():
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
            self._held.setdefault(way, deque()).append(node)
            return
        for before in self._graph.predecessors.of(node).tolist():
            self._release(before)
        self._emit(node)

    def _release(self, node: int) -> None:
        """See to it that `node`, which comes earlier in the order, has been emitted."""
        while node not in self._emitted:
            self._free(self._way[node])

    def _free(self, way: Hashable) -> None:
        """Wait for the permute in flight; the next one that is held starts."""
        self._visit(int(self._graph.partner[self._flying[way]]))

    def _emit(self, node: int) -> None:
        self._emitted[node] = None
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
