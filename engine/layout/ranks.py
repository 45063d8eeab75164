"""Which layer each node of a graph stands in: edges point down, and are short."""

from __future__ import annotations

from collections.abc import Sequence

import networkx as nx


def acyclic(count: int, edges: Sequence[tuple[int, int]]) -> list[bool]:
    """For each edge whether it must be turned round so that no cycle is left.

    Groups can depend on each other in circles though their instructions do not. Only edges inside such a circle are
    turned, those that go from a later node to an earlier one.
    """
    graph = nx.DiGraph()
    graph.add_nodes_from(range(count))
    graph.add_edges_from(edges)
    circle = [-1] * count
    for number, members in enumerate(nx.strongly_connected_components(graph)):
        if len(members) > 1:
            for node in members:
                circle[node] = number
    return [circle[a] >= 0 and circle[a] == circle[b] and a > b for a, b in edges]


def ranks(count: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """Layer of each node of an acyclic graph, from 0.

    The longest path from above; then nodes that have more edges down than up sink towards what uses them, so that a
    parameter stands beside its user and not at the top.
    """
    down: list[list[int]] = [[] for _ in range(count)]
    up_count = [0] * count
    for a, b in edges:
        down[a].append(b)
        up_count[b] += 1
    left = list(up_count)
    order = [node for node in range(count) if not left[node]]
    rank = [0] * count
    for node in order:  # grows while it is read
        for below in down[node]:
            rank[below] = max(rank[below], rank[node] + 1)
            left[below] -= 1
            if not left[below]:
                order.append(below)
    for node in reversed(order):
        if down[node] and len(down[node]) > up_count[node]:
            rank[node] = min(rank[below] for below in down[node]) - 1
    least = min(rank, default=0)
    return [r - least for r in rank]
