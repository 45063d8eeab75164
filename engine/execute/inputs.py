"""Inputs for a run: random by type and use, different on every device that holds a different piece; or from a file."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod, sqrt
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt
from numpy.lib.npyio import NpzFile

from engine.errors import InputError, UnsupportedError
from engine.execute.tracing import Leaf, Uses
from engine.hlo import hlo_pb2
from engine.hlo.hlo_pb2 import HloModuleProto, OpSharding, PrimitiveType, ShapeProto
from engine.ir import shapes
from engine.ir.module import Header

Inputs = list[list[npt.NDArray[Any]]]
"""By flat parameter leaf, then by device."""

SMALL = 8
"""Integers that index nothing are drawn below this."""

AT_A_TIME = 1 << 22
"""Floating-point values that are drawn together."""

_REPLICATED, _OTHER = 0, 3
"""OpSharding.Type of XLA's xla_data.proto."""


@dataclass(frozen=True, slots=True)
class Draw:
    """How floating-point inputs are drawn."""

    scale: float = 1.0
    positive: bool = False
    """Uniform in (0, scale] instead of normal: for programs that take roots or logarithms of their inputs."""


DRAWS = (Draw(), Draw(positive=True), Draw(scale=1 / 16), Draw(scale=1 / 16, positive=True), Draw(scale=16.0))
"""Tried in this order until the results are finite and not all zero."""


def leaves_of(proto: HloModuleProto) -> Iterator[tuple[Leaf, ShapeProto, OpSharding | None]]:
    """The entry's parameter arrays in the order in which an executable takes them, with their shardings if known."""
    entry = next(c for c in proto.computations if c.id == proto.entry_computation_id)
    parameters = sorted((i for i in entry.instructions if i.opcode == "parameter"), key=lambda i: i.parameter_number)
    for parameter in parameters:
        found = list(shapes.leaves(parameter.shape))
        whole = parameter.sharding if parameter.HasField("sharding") else None
        parts: list[OpSharding | None] = [whole] * len(found)
        if whole is not None and len(whole.tuple_shardings) == len(found):
            parts = list(whole.tuple_shardings)
        for (path, shape), sharding in zip(found, parts, strict=True):
            yield Leaf(parameter.parameter_number, path), shape, sharding


def draw_inputs(proto: HloModuleProto, header: Header, uses: Uses, seed: int, draw: Draw) -> Inputs:
    """Random inputs for every device. `proto` is the module as loaded: its parameter shardings say who holds the same.

    Without a sharding, scalars are the same on all devices (loops may depend on them) and arrays differ.
    """
    return list(inputs_one_by_one(proto, header, uses, seed, draw))


def inputs_one_by_one(
    proto: HloModuleProto, header: Header, uses: Uses, seed: int, draw: Draw
) -> Iterator[list[npt.NDArray[Any]]]:
    """What `draw_inputs` gives, each parameter leaf when it is asked for."""
    for position, (leaf, shape, sharding) in enumerate(leaves_of(proto)):
        pieces = _pieces(shape, sharding, header)
        made = {p: _array(leaf, shape, uses, np.random.default_rng([seed, position, p]), draw) for p in set(pieces)}
        yield [made[p] for p in pieces]


def load_inputs(path: str, proto: HloModuleProto, header: Header) -> Inputs:
    """Inputs from an .npz file: an array for each parameter by its name or number (``0``, or ``0.1`` in a tuple).

    An array has the parameter's shape, or that shape with the devices as leading dimension; floating-point numbers are
    rounded to its type, integers must fit it. Raises InputError.
    """
    entry = next(c for c in proto.computations if c.id == proto.entry_computation_id)
    names = {i.parameter_number: i.name for i in entry.instructions if i.opcode == "parameter"}
    try:
        with Path(path).open("rb") as opened, NpzFile(opened, allow_pickle=False) as file:
            held: dict[str, Any] = {name: file[name] for name in file.files}  # bytes, where it is no array
    except (OSError, ValueError, EOFError, BadZipFile, zlib.error) as error:
        raise InputError(f"{path}: expected an .npz file of arrays: {error}") from None
    arrays = {name: array for name, array in held.items() if isinstance(array, np.ndarray)}
    loaded = []
    for leaf, shape, _ in leaves_of(proto):
        number = ".".join(map(str, (leaf.number, *leaf.path)))
        name = next((n for n in (number, names[leaf.number]) if n in arrays), None)
        if name is None:
            raise InputError(f"{path}: no array for parameter {number} ({names[leaf.number]}, {shapes.text(shape)})")
        loaded.append(_checked(arrays[name], shape, header.devices, f"{path}: {name}"))
    return loaded


def widened(inputs: Inputs) -> Inputs:
    """The same values in float64 (complex128); integers as they are."""
    return [[_wide(piece) for piece in pieces] for pieces in inputs]


def _wide(piece: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if piece.dtype.kind in "biu" or "int" in piece.dtype.name:
        return piece
    return piece.astype(np.complex128 if piece.dtype.kind == "c" else np.float64)


def _pieces(shape: ShapeProto, sharding: OpSharding | None, header: Header) -> list[int]:
    """For each device the number of the piece that it holds."""
    partitions = list(range(header.num_partitions))
    if sharding is not None and sharding.type == _REPLICATED:
        partitions = [0] * header.num_partitions
    elif sharding is not None and sharding.type == _OTHER:
        partitions = _tiles(sharding, header.num_partitions) or partitions
    elif not shape.dimensions:
        return [0] * header.devices
    most = max(partitions) + 1
    replicas = range(1 if sharding is not None else header.replica_count)
    offsets = [r * most for r in replicas] * (header.replica_count // len(replicas))
    return [offset + piece for offset in offsets for piece in partitions]


def _tiles(sharding: OpSharding, partitions: int) -> list[int] | None:
    """Number of the tile each partition holds; None for an assignment of another number of devices."""
    dims = list(sharding.tile_assignment_dimensions)
    if sharding.tile_assignment_devices:
        devices = np.array(sharding.tile_assignment_devices)
    else:
        order = np.arange(prod(sharding.iota_reshape_dims)).reshape(sharding.iota_reshape_dims)
        devices = order.transpose(sharding.iota_transpose_perm or range(order.ndim)).ravel()
    if devices.size != partitions or prod(dims) != partitions or set(devices.tolist()) != set(range(partitions)):
        return None
    copies = dims[-1] if sharding.replicate_on_last_tile_dim else 1
    tiles = np.zeros(partitions, np.int64)
    tiles[devices] = np.arange(partitions) // copies
    return [int(t) for t in tiles]


def _array(leaf: Leaf, shape: ShapeProto, uses: Uses, random: np.random.Generator, draw: Draw) -> npt.NDArray[Any]:
    element_type, dims = shape.element_type, tuple(shape.dimensions)
    if not shapes.is_array(shape):
        raise UnsupportedError(f"parameter {leaf.number} is {shapes.text(shape)}: no value can be made for it")
    dtype = shapes.numpy_dtype(element_type)
    if element_type == hlo_pb2.PRED:
        return random.integers(0, 2, dims).astype(np.bool_)
    if element_type in (hlo_pb2.U32, hlo_pb2.U64) and dims and dims[-1] in (2, 4) and len(dims) <= 2:
        return random.integers(0, np.iinfo(dtype).max, dims, dtype, endpoint=True)  # a key of a random generator
    if shapes.is_integer(element_type):
        most = 1 << min(30, shapes.bits(element_type) - 1)  # what the type holds, signed or not
        return random.integers(0, min(uses.index_limits.get(leaf, SMALL), most), dims).astype(dtype)
    scale = draw.scale / sqrt(uses.fan_in.get(leaf, 1))
    if shapes.is_complex(element_type):
        return (scale * (random.standard_normal(dims) + 1j * random.standard_normal(dims))).astype(dtype)
    return _real(dims, dtype, scale, draw.positive, random)


def _real(
    dims: tuple[int, ...], dtype: np.dtype[Any], scale: float, positive: bool, random: np.random.Generator
) -> npt.NDArray[Any]:
    """Drawn a part at a time: in float64 as a whole, a large array of bf16 would need five times its memory."""
    made = np.empty(prod(dims), dtype)
    for begin in range(0, made.size, AT_A_TIME):
        part = made[begin : begin + AT_A_TIME]
        values = scale * (1 - random.random(part.size)) if positive else scale * random.standard_normal(part.size)
        part[:] = np.asarray(values, np.float32 if dtype != np.float64 else np.float64).astype(dtype)
    return made.reshape(dims)


def _checked(array: npt.NDArray[Any], shape: ShapeProto, devices: int, what: str) -> list[npt.NDArray[Any]]:
    dims = tuple(shape.dimensions)
    if array.shape == (devices, *dims):
        return list(_typed(array, shape.element_type, what))
    if array.shape == dims:
        return [_typed(array, shape.element_type, what)] * devices
    raise InputError(f"{what}: expected the shape {list(dims)} or {[devices, *dims]}, found {list(array.shape)}")


def _typed(array: npt.NDArray[Any], element_type: PrimitiveType, what: str) -> npt.NDArray[Any]:
    """`array` as the parameter's type: rounded where that is floating-point, the very same numbers where it is not."""
    dtype, name = shapes.numpy_dtype(element_type), shapes.dtype_name(element_type)
    if array.dtype.kind == "V" and array.dtype.itemsize == dtype.itemsize:
        return array.view(dtype)  # NumPy's files keep the bytes of bf16 and the like, and forget the type
    if array.dtype.kind not in ("biufc" if shapes.is_complex(element_type) else "biuf"):
        raise InputError(f"{what}: expected numbers that {name} holds, found {array.dtype}")
    with np.errstate(invalid="ignore", over="ignore"):
        typed = array.astype(dtype)
        rounds = shapes.is_floating(element_type) or shapes.is_complex(element_type)
        if not rounds and not np.array_equal(typed.astype(array.dtype), array):
            raise InputError(f"{what}: expected values that {name} holds, found others among its {array.dtype}")
    return typed
