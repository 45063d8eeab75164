"""A layered layout of one level: ranks, orders, coordinates, and the bends of edges that pass layers.

After Sugiyama, Tagawa and Toda, "Methods for Visual Understanding of Hierarchical System Structures" (1981). Written
here because libraries that have it are unmaintained (grandalf), GPL (igraph's), or need a system package (graphviz).
Ranks and orders depend on the edges alone, never on sizes: a node that grows because it was opened stays where it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import sqrt

from engine.layout.coordinates import place_layers
from engine.layout.ordering import order_layers
from engine.layout.ranks import acyclic, ranks

GAP_X = 20.0
GAP_Y = 36.0
GAP_BEND = 10.0
_BEND = 2.0
"""How wide a bend is taken to be."""
PART_GAP = 32.0
"""Between parts of the graph that no edge joins."""
MOST_BENDS = 12_000
"""Bends of all edges together; the longest edges beyond that go straight."""

Edge = tuple[int, int]
Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Level:
    """Left and top of each node, the size of all together, and for each edge the points it goes through."""

    left: tuple[float, ...]
    top: tuple[float, ...]
    width: float
    height: float
    routes: tuple[tuple[Point, ...], ...]
    turned: tuple[bool, ...]
    """Edges that close a circle: they point up."""


def lay_out(widths: Sequence[float], heights: Sequence[float], edges: Sequence[Edge]) -> Level:
    """Lay out a graph whose edges are distinct and join different nodes. Deterministic; nodes come in reading order."""
    turned = acyclic(len(widths), edges)
    down = [(b, a) if turn else (a, b) for (a, b), turn in zip(edges, turned, strict=True)]
    left, top = [0.0] * len(widths), [0.0] * len(widths)
    routes: list[tuple[Point, ...]] = [()] * len(edges)
    parts = _parts(len(widths), down)
    placed = [_lay_out_part(nodes, which, widths, heights, down) for nodes, which in parts if which]
    alone = [nodes[0] for nodes, which in parts if not which]
    boxes = [(p.width, p.height) for p in placed] + [(widths[n], heights[n]) for n in alone]
    corners, width, height = _shelves(boxes, len(placed))
    for part, (x, y) in zip(placed, corners, strict=False):
        for node, (dx, dy) in part.corner.items():
            left[node], top[node] = x + dx, y + dy
        for edge, points in part.routes.items():
            moved = tuple((x + px, y + py) for px, py in points)
            routes[edge] = moved[::-1] if turned[edge] else moved
    for node, (x, y) in zip(alone, corners[len(placed) :], strict=True):
        left[node], top[node] = x, y
    return Level(tuple(left), tuple(top), width, height, tuple(routes), tuple(turned))


def _parts(count: int, edges: Sequence[Edge]) -> list[tuple[list[int], list[int]]]:
    """Nodes and edge numbers of what hangs together, in reading order."""
    chief = list(range(count))

    def find(node: int) -> int:
        while chief[node] != node:
            chief[node] = chief[chief[node]]
            node = chief[node]
        return node

    for a, b in edges:
        one, two = find(a), find(b)
        chief[max(one, two)] = min(one, two)
    found: dict[int, tuple[list[int], list[int]]] = {}
    for node in range(count):
        found.setdefault(find(node), ([], []))[0].append(node)
    for number, (a, _) in enumerate(edges):
        found[find(a)][1].append(number)
    return list(found.values())


def _shelves(boxes: Sequence[tuple[float, float]], joined: int) -> tuple[list[Point], float, float]:
    """Corners of boxes in rows, about as wide as high; the first `joined` are parts with edges."""
    area = sum((w + PART_GAP) * (h + PART_GAP) for w, h in boxes)
    limit = max([sqrt(area * 1.6), *(w for w, _ in boxes)], default=0.0)
    corners: list[Point] = []
    x = y = row = width = 0.0
    for number, (w, h) in enumerate(boxes):
        gap = PART_GAP if number < joined else GAP_X
        if corners and (x + w > limit or number == joined):
            x, y, row = 0.0, y + row + (PART_GAP if number <= joined else GAP_X), 0.0
        corners.append((x, y))
        width, row = max(width, x + w), max(row, h)
        x += w + gap
    return corners, width, y + row


@dataclass(frozen=True, slots=True)
class _Part:
    """One connected part; corners and routes are relative to its own corner."""

    width: float
    height: float
    corner: Mapping[int, Point]
    """By node."""
    routes: Mapping[int, tuple[Point, ...]]
    """By number of the edge."""


def _lay_out_part(
    nodes: Sequence[int],
    which: Sequence[int],
    widths: Sequence[float],
    heights: Sequence[float],
    edges: Sequence[Edge],
) -> _Part:
    """Lay out `nodes`, which the edges numbered `which` join."""
    local = {node: n for n, node in enumerate(nodes)}
    inner = [(local[edges[e][0]], local[edges[e][1]]) for e in which]
    count = len(nodes)
    rank = ranks(count, inner)
    chains = _chains(count, inner, rank)
    up, down = _joined(inner, chains, rank)
    layers: list[list[int]] = [[] for _ in range(max(rank) + 1)]
    for node, r in enumerate(rank):
        layers[r].append(node)
    order_layers(layers, up, down)
    bends = len(rank) - count
    wide = [*(widths[n] for n in nodes), *([_BEND] * bends)]
    x = place_layers(layers, up, down, wide, [*([GAP_X] * count), *([GAP_BEND] * bends)], count)
    high = [max((heights[nodes[n]] for n in layer if n < count), default=0.0) for layer in layers]
    tops = [*accumulate(high, lambda top, h: top + h + GAP_Y, initial=0.0)]
    shift = min(c - w / 2 for c, w in zip(x, wide, strict=True))
    middle = [c - shift for c in x]
    routes: dict[int, tuple[Point, ...]] = {}
    for edge, (a, b), chain in zip(which, inner, chains, strict=True):
        points = [(middle[a], tops[rank[a]] + heights[nodes[a]])]
        for bend in (a, *chain):
            if bend >= count:
                points.append((middle[bend], tops[rank[bend]]))
            points.append((middle[bend], tops[rank[bend]] + high[rank[bend]]))
        points.append((middle[b], tops[rank[b]]))
        routes[edge] = tuple(p for n, p in enumerate(points) if n == 0 or p != points[n - 1])
    return _Part(
        width=max(c + w / 2 for c, w in zip(x, wide, strict=True)) - shift,
        height=tops[-1] - GAP_Y,
        corner={node: (x[n] - wide[n] / 2 - shift, tops[rank[n]]) for n, node in enumerate(nodes)},
        routes=routes,
    )


def _joined(
    edges: Sequence[Edge], chains: Sequence[Sequence[int]], rank: Sequence[int]
) -> tuple[list[list[int]], list[list[int]]]:
    """Nodes and bends of the layer above, and of the layer below, that each is joined to."""
    up: list[list[int]] = [[] for _ in rank]
    down: list[list[int]] = [[] for _ in rank]
    for (a, b), chain in zip(edges, chains, strict=True):
        steps = (a, *chain, b)
        if rank[b] - rank[a] != len(steps) - 1:
            continue  # too long for bends: it pulls at nothing
        for one, two in pairwise(steps):
            if two not in down[one]:  # edges may share bends
                down[one].append(two)
                up[two].append(one)
    return up, down


def _chains(count: int, edges: Sequence[Edge], rank: list[int]) -> list[tuple[int, ...]]:
    """New nodes (appended to `rank`) where edges pass layers, shortest edges first.

    Edges that leave one node, or arrive at one, share them: a parameter that many read becomes one line with branches.
    """
    long_out, long_in = [0] * count, [0] * count
    for a, b in edges:
        if rank[b] - rank[a] > 1:
            long_out[a] += 1
            long_in[b] += 1
    bends: dict[tuple[bool, int, int], int] = {}
    chains: list[tuple[int, ...]] = [()] * len(edges)
    for number in sorted(range(len(edges)), key=lambda e: rank[edges[e][1]] - rank[edges[e][0]]):
        a, b = edges[number]
        leaving = long_out[a] >= long_in[b]
        keys = [(leaving, a if leaving else b, r) for r in range(rank[a] + 1, rank[b])]
        fresh = [key for key in keys if key not in bends]
        if len(bends) + len(fresh) > MOST_BENDS:
            continue
        for key in fresh:
            bends[key] = len(rank)
            rank.append(key[2])
        chains[number] = tuple(bends[key] for key in keys)
    return chains
