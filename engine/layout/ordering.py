"""Orders the nodes of each layer so that few edges cross: barycentres, swept down and up."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Sequence

SWEEPS = 16
_PATIENCE = 4
"""Sweeps without fewer crossings after which it ends."""


def order_layers(layers: list[list[int]], up: Sequence[Sequence[int]], down: Sequence[Sequence[int]]) -> None:
    """Reorder each layer in place. `up` and `down` list, for each node, its neighbours in the layers next to it."""
    place = [0.0] * len(up)
    for layer in layers:
        _number(layer, place)
    best, kept, idle = crossings(layers, down), [list(layer) for layer in layers], 0
    for sweep in range(SWEEPS):
        if best == 0 or idle >= _PATIENCE:
            break
        near = up if sweep % 2 == 0 else down
        for layer in layers[1:] if sweep % 2 == 0 else layers[-2::-1]:
            layer.sort(key=lambda node: (_mean(near[node], place, place[node]), place[node]))
            _number(layer, place)
        now = crossings(layers, down)
        idle = 0 if now < best else idle + 1
        if now < best:
            best, kept = now, [list(layer) for layer in layers]
    for layer, order in zip(layers, kept, strict=True):
        layer[:] = order


def crossings(layers: Sequence[Sequence[int]], down: Sequence[Sequence[int]]) -> int:
    """How many pairs of edges between neighbouring layers cross."""
    total = 0
    place = [0] * len(down)
    for layer in layers:
        for number, node in enumerate(layer):
            place[node] = number
    for layer in layers[:-1]:
        ends: list[int] = []
        for node in layer:
            reached = sorted(place[below] for below in down[node])
            total += sum(len(ends) - bisect_right(ends, end) for end in reached)
            for end in reached:
                insort(ends, end)
    return total


def _number(layer: Sequence[int], place: list[float]) -> None:
    """Places from 0 to 1, so that layers of different lengths compare."""
    for number, node in enumerate(layer):
        place[node] = (number + 0.5) / len(layer)


def _mean(nodes: Sequence[int], place: Sequence[float], otherwise: float) -> float:
    return sum(place[node] for node in nodes) / len(nodes) if nodes else otherwise
