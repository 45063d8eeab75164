"""A bitcast's value, against memory simulated byte by byte."""

from __future__ import annotations

from itertools import product
from math import prod

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.execute.bitcasts import Step, physical, steps
from engine.hlo import hlo_pb2
from engine.hlo.hlo_pb2 import ShapeProto
from engine.ir import shapes


def shape(dims: tuple[int, ...], minor_to_major: tuple[int, ...], *tiles: tuple[int, ...]) -> ShapeProto:
    made = shapes.array(hlo_pb2.F32, dims)
    made.layout.minor_to_major[:] = minor_to_major
    for tile in tiles:
        made.layout.tiles.add(dimensions=tile)
    return made


def memory(array: np.ndarray, of: ShapeProto) -> np.ndarray:
    """The array as it lies in memory, -1 where tiles are padded (XLA, "Tiled layout")."""
    order = list(of.layout.minor_to_major)[::-1]
    laid = array.transpose(order)
    for tile in of.layout.tiles:
        size = tuple(tile.dimensions)
        outer, inner = laid.shape[: laid.ndim - len(size)], laid.shape[laid.ndim - len(size) :]
        counts = [-(-d // t) for d, t in zip(inner, size, strict=True)]
        tiled = np.full((*outer, *counts, *size), -1, laid.dtype)
        for index in product(*map(range, laid.shape)):
            at = index[len(outer) :]
            outside = tuple(k // t for k, t in zip(at, size, strict=True))
            inside = tuple(k % t for k, t in zip(at, size, strict=True))
            tiled[(*index[: len(outer)], *outside, *inside)] = laid[index]
        laid = tiled
    return laid.ravel()


def perform(array: np.ndarray, path: tuple[Step, ...]) -> np.ndarray:
    for step in path:
        match step.opcode:
            case "pad":
                widths = [(0, after - before) for before, after in zip(array.shape, step.dimensions, strict=True)]
                array = np.pad(array, widths, constant_values=-1)
            case "reshape":
                array = array.reshape(step.dimensions)
            case "transpose":
                array = array.transpose(step.permutation)
            case "slice":
                array = array[tuple(slice(size) for size in step.dimensions)]
        assert array.shape == step.dimensions
    return array


@st.composite
def laid_out(draw: st.DrawFn, count: int) -> ShapeProto:
    """A shape with `count` elements in some layout, perhaps tiled."""
    dims: list[int] = []
    left = count
    while left > 1 and len(dims) < 3:
        size = draw(st.sampled_from([d for d in range(1, left + 1) if left % d == 0]))
        dims.append(size)
        left //= size
    dims.append(left)
    order = draw(st.permutations(range(len(dims))))
    tiles = draw(st.sampled_from([(), ((2, 4),), ((4,),), ((4, 8), (2, 1)), ((8,), (2,))]))
    usable = [t for t in tiles if len(t) <= len(dims)]
    return shape(tuple(dims), tuple(order), *(usable if len(usable) == len(tiles) else ()))


@given(st.sampled_from([8, 16, 24, 32, 64]).flatmap(lambda n: st.tuples(laid_out(n), laid_out(n))))
def test_bitcasts_keep_the_bytes(pair: tuple[ShapeProto, ShapeProto]) -> None:
    source, target = pair
    before, after = physical(source, tiles=True), physical(target, tiles=True)
    path = steps(source, target)
    assert path is not None
    if before is None or after is None or prod(before.sizes) != prod(after.sizes):
        return  # not in the same bytes: read as if it were not tiled
    array = np.arange(prod(source.dimensions)).reshape(list(source.dimensions))
    result = perform(array, path)
    assert result.shape == tuple(target.dimensions)
    laid, expected = memory(result, target), memory(array, source)
    kept = (laid >= 0) & (expected >= 0)  # padding of either holds nothing
    assert np.array_equal(laid[kept], expected[kept])


def test_what_stays_takes_no_steps() -> None:
    assert steps(shape((4, 8), (1, 0)), shape((4, 8), (1, 0), (8, 128))) == ()
    assert steps(shape((4, 8), (1, 0)), shape((32,), (0,))) == (Step("reshape", (32,)),)
    assert steps(shape((4, 8), (0, 1)), shape((8, 4), (1, 0))) == (Step("transpose", (8, 4), (1, 0)),)


def test_other_sizes_have_no_bitcast() -> None:
    assert steps(shape((4, 8), (1, 0)), shape((4, 9), (1, 0))) is None
