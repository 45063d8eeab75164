"""Mesh axes of a job: reading them, inferring them from replica groups, and laying them out on a torus."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from itertools import pairwise
from math import gcd, prod

import numpy as np

from engine.errors import UsageError
from engine.ir.graph import Ints

Mesh = tuple[tuple[str, int], ...]


class DeviceOrder(StrEnum):
    """Which chip each device of the job is."""

    MESH = "mesh"
    """Every mesh axis on its own axes of the torus, row-major, as JAX's `create_device_mesh` lays them out."""
    RING = "ring"
    """The same axes, but back and forth along them, so that the next device of a mesh axis is a neighbour."""
    NATURAL = "natural"
    """Devices in the order of the chips, along the torus' first axis first, whatever the mesh."""


def parse_mesh(text: str) -> tuple[Mesh, DeviceOrder]:
    """``x=8,y=8`` as axes, slowest first, and the device order that ``;order=ring`` asks for. Raises UsageError."""
    written, semicolon, suffix = text.partition(";")
    order = DeviceOrder.MESH
    if semicolon:
        key, _, value = (part.strip() for part in suffix.partition("="))
        if key != "order" or value not in tuple(DeviceOrder):
            listed = ", ".join(f"order={o}" for o in DeviceOrder)
            raise UsageError(f"after the axes of a mesh one of {listed} was expected, but '{suffix.strip()}' came")
        order = DeviceOrder(value)
    axes: list[tuple[str, int]] = []
    for piece in written.split(","):
        name, equals, size = (part.strip() for part in piece.partition("="))
        if not equals or not name or not size.isdecimal() or int(size) < 1:
            raise UsageError(
                f"a mesh is written x=8,y=8 with axes slowest first, but '{piece.strip()}' came in '{text}'"
            )
        axes.append((name, int(size)))
    if len({name for name, _ in axes}) < len(axes):
        raise UsageError(f"mesh '{text}' names an axis twice")
    return tuple(axes), order


def infer_mesh(devices: int, groups: Iterable[Ints]) -> Mesh:
    """Axes that every regular group is made of, slowest first.

    A group whose members are a grid with strides s and extents e cuts the device numbers at every s and s·e; sorted
    cuts that divide each other are the boundaries of axes. Cuts that do not fit those found before are left out.
    """
    cuts = [1, devices]
    for group in groups:
        for cut in _cuts(group):
            chain = sorted({*cuts, cut})
            if all(big % small == 0 for small, big in pairwise(chain)):
                cuts = chain
    sizes = [big // small for small, big in pairwise(cuts)][::-1]
    names = "xyzw" if len(sizes) <= 4 else [f"axis_{k}" for k in range(len(sizes))]
    return tuple(zip(names, sizes, strict=False))


def _cuts(group: Ints) -> list[int]:
    """Strides and extents of a group that is a grid; none for one that is not."""
    members = np.sort(group)
    if len(members) < 2:
        return []
    cuts, rest = [], members - members[0]
    while len(rest) > 1:
        stride = int(rest[1])
        length = 1
        while length < len(rest) and rest[length] == stride * length:
            length += 1
        if len(rest) % length:
            return []
        grid = rest.reshape(-1, length)
        if not np.array_equal(grid, grid[:, :1] + stride * np.arange(length)):
            return []
        cuts += [stride, stride * length]
        rest = grid[:, 0]
    return cuts


def place(mesh: Mesh, shape: Sequence[int], wrap: Sequence[bool], order: DeviceOrder = DeviceOrder.MESH) -> Ints:
    """Chip numbers (first axis fastest) of devices in row-major order of `mesh`, shape [devices].

    Mesh axes get whole axes of the torus where their product fits, fastest mesh axis first; what is left is split by
    common factors, which always works out when mesh and torus are equally large. Raises ValueError where they are not.
    """
    if prod(size for _, size in mesh) != prod(shape):
        raise ValueError(f"a mesh {mesh} on a torus {tuple(shape)}")
    left = list(shape)
    wanted = [size for _, size in mesh]
    factors: list[list[tuple[int, int]]] = [[] for _ in wanted]
    for k in range(len(wanted) - 1, -1, -1):
        whole = _subset(left, list(shape), wanted[k])
        if whole is not None:
            factors[k] = [(axis, left[axis]) for axis in whole]
            for axis in whole:
                left[axis] = 1
    for k in range(len(wanted) - 1, -1, -1):
        size = wanted[k] // prod(f for _, f in factors[k])
        for axis in range(len(left)):
            taken = gcd(size, left[axis])
            if taken > 1:
                factors[k].append((axis, taken))
                left[axis] //= taken
                size //= taken
    return _positions([_sorted(f, shape, wrap, order) for f in factors], shape, order)


def _sorted(
    factors: list[tuple[int, int]], shape: Sequence[int], wrap: Sequence[bool], order: DeviceOrder
) -> list[tuple[int, int]]:
    """Most significant digit first. A ring closes where that digit's last value neighbours its first."""
    if order != DeviceOrder.RING:
        return sorted(factors)
    return sorted(factors, key=lambda f: (not (f[1] == 2 or (wrap[f[0]] and f[1] == shape[f[0]])), f))


def _subset(left: list[int], shape: list[int], size: int) -> tuple[int, ...] | None:
    """Axes not yet used whose lengths multiply to `size`, as few as possible."""
    free = [axis for axis in range(len(left)) if left[axis] == shape[axis] and left[axis] > 1]
    choices = [[a for n, a in enumerate(free) if bit >> n & 1] for bit in range(1, 1 << len(free))]
    for choice in sorted(choices, key=lambda c: (len(c), c)):
        if prod(shape[a] for a in choice) == size:
            return tuple(choice)
    return None


def _positions(factors: list[list[tuple[int, int]]], shape: Sequence[int], order: DeviceOrder) -> Ints:
    """Row-major over all factors; of a torus axis that is split, the slowest mesh axis has the most significant digit.

    In ring order a digit runs backwards wherever the more significant digits of its mesh axis add up to an odd number
    (a reflected Gray code), so that each step changes one digit by one.
    """
    count = prod(shape)
    digits = np.unravel_index(np.arange(count), [size for mesh_axis in factors for _, size in mesh_axis] or [1])
    coordinates = [np.zeros(count, np.int64) for _ in shape]
    at = 0
    for mesh_axis in factors:
        above = np.zeros(count, np.int64)
        for axis, size in mesh_axis:
            digit = digits[at].astype(np.int64)
            at += 1
            if order == DeviceOrder.RING:
                digit = np.where(above % 2 == 1, size - 1 - digit, digit)
            above += digits[at - 1] if order != DeviceOrder.RING else digit
            coordinates[axis] = coordinates[axis] * size + digit
    return np.ravel_multi_index(coordinates, tuple(shape), order="F").astype(np.int64)
