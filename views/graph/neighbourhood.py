"""Which instructions lie within some hops of one, and where each is drawn: layers from operands to users.

Without Qt. Nodes of a `Graph` are numbered topologically, which makes the layers one pass; order within a layer is
by barycentres of neighbours, the usual heuristic against crossings (Sugiyama, Tagawa, Toda 1981).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from engine.ir.graph import Csr, Graph

MOST = 160
"""Nodes that are shown at most; the pane says when there were more."""
_SWEEPS = 6


@dataclass(frozen=True)
class Neighbourhood:
    """Nodes of one graph and their places."""

    layer: Mapping[int, int]
    """Node → column, from 0; operands stand left of users."""
    place: Mapping[int, float]
    """Node → row within its column, centred around 0."""
    edges: tuple[tuple[int, int], ...]
    """Operand → user."""
    left_out: int
    """Nodes within the hops that were too many."""


def neighbourhood(graph: Graph, centres: Iterable[int], hops: int) -> Neighbourhood:
    """Nodes within `hops` of `centres` along operands and users, the nearest first."""
    wanted, left_out = _within(graph, tuple(centres), hops)
    nodes = sorted(wanted)
    edges = tuple(
        (int(operand), node)
        for node in nodes
        for operand in dict.fromkeys(graph.operands.of(node))
        if operand in wanted
    )
    layer = _layers(nodes, edges)
    return Neighbourhood(layer, _places(nodes, edges, layer), edges, left_out)


def _within(graph: Graph, centres: tuple[int, ...], hops: int) -> tuple[set[int], int]:
    found = dict.fromkeys(centres)
    edge: list[int] = list(found)
    left_out = 0
    for _ in range(hops):
        reached: dict[int, None] = {}
        for node in edge:
            for side in (graph.operands, graph.users):
                reached.update(dict.fromkeys(_items(side, node)))
        new = [node for node in reached if node not in found]
        kept = new[: max(0, MOST - len(found))]
        left_out += len(new) - len(kept)
        found.update(dict.fromkeys(kept))
        edge = kept
    return set(found), left_out


def _items(side: Csr, node: int) -> list[int]:
    return [int(n) for n in side.of(node).tolist()]


def _layers(nodes: list[int], edges: tuple[tuple[int, int], ...]) -> dict[int, int]:
    """Longest path from the left; then everything that has room moves right, towards its users."""
    before: dict[int, list[int]] = {node: [] for node in nodes}
    after: dict[int, list[int]] = {node: [] for node in nodes}
    for operand, user in edges:
        before[user].append(operand)
        after[operand].append(user)
    layer: dict[int, int] = {}
    for node in nodes:
        layer[node] = max((layer[n] + 1 for n in before[node]), default=0)
    for node in reversed(nodes):
        if after[node]:
            layer[node] = min(layer[n] for n in after[node]) - 1
    least = min(layer.values(), default=0)
    return {node: column - least for node, column in layer.items()}


def _places(nodes: list[int], edges: tuple[tuple[int, int], ...], layer: Mapping[int, int]) -> dict[int, float]:
    columns: dict[int, list[int]] = {}
    for node in nodes:
        columns.setdefault(layer[node], []).append(node)
    near: dict[int, list[int]] = {node: [] for node in nodes}
    for operand, user in edges:
        near[operand].append(user)
        near[user].append(operand)
    place = _spread(columns)
    for sweep in range(_SWEEPS):
        for column in sorted(columns, reverse=bool(sweep % 2)):
            columns[column].sort(key=lambda node: sum(place[n] for n in near[node]) / max(1, len(near[node])))
            place.update(_spread({column: columns[column]}))
    return place


def _spread(columns: Mapping[int, list[int]]) -> dict[int, float]:
    return {node: n - (len(column) - 1) / 2 for column in columns.values() for n, node in enumerate(column)}
