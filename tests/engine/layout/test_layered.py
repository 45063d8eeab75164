from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.layout.coordinates import fit
from engine.layout.layered import Edge, Level, lay_out
from engine.layout.ordering import crossings, order_layers
from engine.layout.ranks import acyclic, ranks


@st.composite
def graphs(draw: st.DrawFn) -> tuple[int, list[Edge]]:
    count = draw(st.integers(1, 40))
    ends = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)).filter(lambda e: e[0] != e[1])
    return count, draw(st.lists(ends, max_size=70, unique=True)) if count > 1 else []


def boxes_of(level: Level, widths: list[float], heights: list[float]) -> np.ndarray:
    left, top = np.array(level.left), np.array(level.top)
    return np.stack([left, top, left + widths, top + heights], axis=1)


@given(graphs(), st.randoms(use_true_random=False))
@settings(max_examples=150)
def test_nodes_do_not_touch_and_edges_point_down(graph: tuple[int, list[Edge]], random: object) -> None:
    count, edges = graph
    widths = [60.0 + 37 * (n % 5) for n in range(count)]
    heights = [40.0 + 90 * (n % 3) for n in range(count)]
    level = lay_out(widths, heights, edges)
    boxes = boxes_of(level, widths, heights)
    for one in range(count):
        for two in range(one):
            apart_x = boxes[one, 2] <= boxes[two, 0] - 1 or boxes[two, 2] <= boxes[one, 0] - 1
            apart_y = boxes[one, 3] <= boxes[two, 1] - 1 or boxes[two, 3] <= boxes[one, 1] - 1
            assert apart_x or apart_y, (one, two)
    assert boxes.min() >= -1e-6
    assert boxes[:, 2].max() <= level.width + 1e-6
    assert boxes[:, 3].max() <= level.height + 1e-6
    for (a, b), turned, route in zip(edges, level.turned, level.routes, strict=True):
        top, bottom = (b, a) if turned else (a, b)
        assert boxes[top, 3] < boxes[bottom, 1]
        ys = [y for _, y in route]
        assert ys == sorted(ys, reverse=turned)
        assert {ys[0], ys[-1]} == {boxes[top, 3], boxes[bottom, 1]}


@given(graphs())
@settings(max_examples=100)
def test_only_edges_of_circles_are_turned(graph: tuple[int, list[Edge]]) -> None:
    count, edges = graph
    turned = acyclic(count, edges)
    straight = [(b, a) if t else (a, b) for (a, b), t in zip(edges, turned, strict=True)]
    found = ranks(count, straight)
    assert all(found[a] < found[b] for a, b in straight)
    assert not any(acyclic(count, [e for e in edges if e[0] < e[1]]))


@given(graphs())
@settings(max_examples=60)
def test_growing_a_node_moves_no_other_out_of_its_place(graph: tuple[int, list[Edge]]) -> None:
    count, edges = graph
    widths, heights = [80.0] * count, [40.0] * count
    small = lay_out(widths, heights, edges)
    grown = count // 2
    big = lay_out(
        [w * 6 if n == grown else w for n, w in enumerate(widths)],
        [h * 6 if n == grown else h for n, h in enumerate(heights)],
        edges,
    )
    joined = {n for edge in edges for n in edge}
    part = _part_of(grown, edges)
    above = [n for n in part & joined if small.top[n] <= small.top[grown]]
    for node in above:  # layers down to its own stay where they are
        assert big.top[node] - big.top[grown] == small.top[node] - small.top[grown]
    for one in part:
        for two in part:
            if small.top[one] == small.top[two] and small.left[one] < small.left[two]:
                assert big.top[one] == big.top[two]
                assert big.left[one] < big.left[two]


def _part_of(node: int, edges: list[Edge]) -> set[int]:
    part, before = {node}, 0
    while len(part) != before:
        before = len(part)
        part |= {n for a, b in edges for n in (a, b) if a in part or b in part}
    return part


@given(st.lists(st.floats(-500, 500), min_size=1, max_size=20))
def test_places_keep_order_and_gaps(wants: list[float]) -> None:
    layer = list(range(len(wants)))
    widths, gap = [30.0 + n for n in layer], [10.0] * len(wants)
    places = fit(layer, wants, [1.0] * len(wants), widths, gap)
    for left, right in pairwise(layer):
        assert places[right] - places[left] >= (widths[left] + widths[right]) / 2 + 10 - 1e-6


def test_what_is_wanted_is_given_where_there_is_room() -> None:
    assert fit([0, 1], [0.0, 100.0], [1.0, 1.0], [20.0, 20.0], [10.0, 10.0]) == [0.0, 100.0]


def test_a_tangle_that_can_be_untangled_is() -> None:
    layers = [[0, 1, 2], [3, 4, 5]]
    down = [[5], [4], [3], [], [], []]
    up = [[], [], [], [2], [1], [0]]
    assert crossings(layers, down) == 3
    order_layers(layers, up, down)
    assert crossings(layers, down) == 0


def test_a_parameter_stands_beside_its_user() -> None:
    chain = [(n, n + 1) for n in range(5)]
    found = ranks(7, [*chain, (6, 5)])
    assert found[6] == found[5] - 1


def test_a_long_edge_is_straight() -> None:
    edges = [(0, 1), (1, 2), (2, 3), (3, 4), (0, 4)]
    level = lay_out([80.0] * 5, [40.0] * 5, edges)
    xs = [x for x, _ in level.routes[4][2:-2]]
    assert max(xs) - min(xs) < 1.0
