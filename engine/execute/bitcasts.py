"""What a bitcast does to values: XLA's compilers reinterpret bytes in tiled layouts, CPU runs need transposes.

A layout orders an array's dimensions from minor to major; each tile then splits the minor-most ones into tiles and
their insides (XLA, "Tiled layout", https://openxla.org/xla/tiled_layout). A bitcast keeps the bytes, so its value is
found by going from the operand's logical dimensions to its physical ones and back through those of the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from engine.hlo.hlo_pb2 import LayoutProto, ShapeProto


@dataclass(frozen=True, slots=True)
class Step:
    """One operation on an array: ``pad`` (at the ends), ``reshape``, ``transpose`` or ``slice`` (from zero)."""

    opcode: str
    dimensions: tuple[int, ...]
    """Dimensions of the result."""
    permutation: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Physical:
    """An array as its bytes lie: each logical dimension split into parts, the parts ordered from major to minor."""

    padded: tuple[int, ...]
    """Logical dimensions, padded to whole tiles."""
    split: tuple[int, ...]
    """Sizes of all parts, those of dimension 0 first."""
    order: tuple[int, ...]
    """Positions in `split`, from the major-most to the minor-most."""

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(self.split[k] for k in self.order)


def steps(source: ShapeProto, target: ShapeProto) -> tuple[Step, ...] | None:
    """Operations that give the bitcast's value; None when the two shapes cannot lie in the same bytes."""
    tiled = physical(source, tiles=True), physical(target, tiles=True)
    plain = physical(source, tiles=False), physical(target, tiles=False)
    for before, after in (tiled, plain):
        if before is not None and after is not None and prod(before.sizes) == prod(after.sizes):
            return _between(tuple(source.dimensions), before, after, tuple(target.dimensions))
    return None


def physical(shape: ShapeProto, *, tiles: bool) -> Physical | None:
    """How the array lies in memory; None for tiles that do not divide each other or combine dimensions."""
    dims = list(shape.dimensions)
    order = _major_to_minor(shape.layout, len(dims))
    parts = [[size] for size in dims]
    places = [(d, 0) for d in order]
    if tiles:
        for level, tile in enumerate(shape.layout.tiles):
            if not _apply(tuple(tile.dimensions), parts, places, may_pad=level == 0):
                return None
    first = [sum(len(parts[e]) for e in range(d)) for d in range(len(dims))]
    return Physical(
        padded=tuple(prod(part) for part in parts),
        split=tuple(size for part in parts for size in part),
        order=tuple(first[d] + k for d, k in places),
    )


def _apply(tile: Sequence[int], parts: list[list[int]], places: list[tuple[int, int]], *, may_pad: bool) -> bool:
    """Split the minor-most places by the tile, in place; whether it can be done."""
    tile = [*tile]
    while len(tile) > len(places):  # a tile of more dimensions than the array tiles leading ones of size 1
        if tile.pop(0) != 1:
            return False
    inner: list[tuple[int, int]] = []
    for at, size in zip(range(len(places) - len(tile), len(places)), tile, strict=True):
        if size < 1:
            return False
        dimension, part = places[at]
        whole = parts[dimension][part]
        if whole % size and (not may_pad or len(parts[dimension]) > 1):
            return False
        parts[dimension][part : part + 1] = [-(-whole // size), size]
        places[:] = [(d, k + 1 if d == dimension and k > part else k) for d, k in places]
        inner = [(d, k + 1 if d == dimension and k > part else k) for d, k in inner]
        inner.append((dimension, part + 1))
    places.extend(inner)
    return True


def _major_to_minor(layout: LayoutProto, rank: int) -> list[int]:
    order = list(layout.minor_to_major) or list(range(rank - 1, -1, -1))
    return order[::-1]


def _between(source: tuple[int, ...], before: Physical, after: Physical, target: tuple[int, ...]) -> tuple[Step, ...]:
    inverse = tuple(after.order.index(k) for k in range(len(after.order)))
    wanted = [
        Step("pad", before.padded),
        Step("reshape", before.split),
        Step("transpose", before.sizes, before.order),
        Step("reshape", after.sizes),
        Step("transpose", after.split, inverse),
        Step("reshape", after.padded),
        Step("slice", target),
    ]
    kept: list[Step] = []
    dims = source
    for step in wanted:
        still = step.permutation == tuple(range(len(step.permutation)))
        if step.dimensions == dims and still:
            continue
        kept.append(step)
        dims = step.dimensions
    return tuple(kept)
