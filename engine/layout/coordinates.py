"""Where the nodes of ordered layers stand from left to right: near what they are joined to, in order, not touching."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

_SWEEPS = 10
_INNER = 8.0
"""How much more an edge between two bends pulls than one between two nodes: long edges become straight."""
_END = 2.0


def place_layers(
    layers: Sequence[Sequence[int]],
    up: Sequence[Sequence[int]],
    down: Sequence[Sequence[int]],
    widths: Sequence[float],
    gap: Sequence[float],
    real: int,
) -> list[float]:
    """Centre of each node; nodes from number `real` on are bends of edges. `gap` is wanted around each node."""
    x = [0.0] * len(widths)
    for layer in layers:
        at = 0.0
        for node in layer:
            x[node] = at + widths[node] / 2
            at += widths[node] + gap[node]
        for node in layer:
            x[node] -= at / 2
    for sweep in range(_SWEEPS):
        last = sweep >= _SWEEPS - 2
        for layer in layers if sweep % 2 == 0 else layers[::-1]:
            wants, weights = [], []
            for node in layer:
                near = [*up[node], *down[node]] if last else up[node] if sweep % 2 == 0 else down[node]
                pull, total = 0.0, 0.0
                for other in near:
                    weight = 1.0 + (_INNER - 1.0) * (node >= real and other >= real)
                    if (node >= real) != (other >= real):
                        weight = _END
                    pull += weight * x[other]
                    total += weight
                wants.append(pull / total if total else x[node])
                weights.append(total or 0.1)
            for node, place in zip(layer, fit(layer, wants, weights, widths, gap), strict=True):
                x[node] = place
    return x


def fit(
    layer: Sequence[int],
    wants: Sequence[float],
    weights: Sequence[float],
    widths: Sequence[float],
    gap: Sequence[float],
) -> list[float]:
    """The places closest to what is wanted (weighted squares) that keep the order and the gaps: isotonic regression by
    pooling neighbours that violate it."""
    offsets = [0.0]
    for left, right in pairwise(layer):
        offsets.append(offsets[-1] + (widths[left] + widths[right]) / 2 + min(gap[left], gap[right]))
    pools: list[tuple[float, float, int]] = []  # mean, weight, how many
    for want, weight, offset in zip(wants, weights, offsets, strict=True):
        mean, size = want - offset, 1
        while pools and pools[-1][0] > mean:
            other, heavy, many = pools.pop()
            mean = (mean * weight + other * heavy) / (weight + heavy)
            weight += heavy
            size += many
        pools.append((mean, weight, size))
    flat = [mean for mean, _, size in pools for _ in range(size)]
    return [mean + offset for mean, offset in zip(flat, offsets, strict=True)]
