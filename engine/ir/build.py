"""Typed builders of new instructions: each works out its result's shape and takes over what is worth keeping.

A `Builder` adds to one computation, before one anchor, in the name of the instruction it works for: metadata, frontend
attributes and sharding of that one survive on what is built, and names and provenance lead back to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from engine.hlo import hlo_pb2
from engine.hlo.hlo_pb2 import PrimitiveType, ShapeProto, SourceTarget
from engine.ir import shapes
from engine.ir.edit import Editor, Instruction
from engine.ir.literals import literal_of

_TIED_TO_SCHEDULE = frozenset(
    {"_scheduling_group_id", "scheduling_group_id", "scheduler_hint", "scheduler_delay_priority"}
)
"""Frontend attributes that bind an instruction to others by name or time; false for an instruction made from it."""


@dataclass(frozen=True, eq=False)
class Builder:
    """Adds instructions to `computation`; operands are instructions of the same editor."""

    editor: Editor
    computation: int
    source: Instruction
    """Whom the new instructions are named after, take their metadata from and point back to."""
    before: int | None = None
    """Where in the old order they go; None is the end."""

    def working_for(self, source: Instruction) -> Builder:
        """The same place, in the name of another instruction."""
        return replace(self, source=source)

    def once(self, key: tuple[object, ...], make: Callable[[], Instruction]) -> Instruction:
        """What `make` gave when this key was first asked for in this computation."""
        shared = self.editor.shared.setdefault(self.computation, {})
        found = shared.get(key)
        if found is None or found.id not in self.editor:
            found = shared[key] = make()
        return found

    def local(self, operand: Instruction) -> Instruction:
        """How an operand is called in this computation: itself."""
        return operand

    # --- constants -----------------------------------------------------------------------------------------------

    def constant(self, element_type: PrimitiveType, value: int) -> Instruction:
        """A scalar. Raises UnsupportedError for types that are not those of arrays."""

        def make() -> Instruction:
            literal = literal_of(np.array(value), element_type)
            return self._plain("constant", shapes.array(element_type), (), "constant", literal=literal)

        return self.once(("constant", element_type, value), make)

    def index(self, value: int) -> Instruction:
        """An s32 scalar, as indices and counters are."""
        return self.constant(hlo_pb2.S32, value)

    def table(self, values: npt.NDArray[np.int64]) -> Instruction:
        """A one-dimensional s32 constant."""
        shape = shapes.array(hlo_pb2.S32, values.shape)
        literal = literal_of(values, hlo_pb2.S32)
        key = ("table", *values.tolist())
        return self.once(key, lambda: self._plain("constant", shape, (), "table", literal=literal))

    def zeros(self, shape: ShapeProto) -> Instruction:
        """An array of zeros: a broadcast scalar, never shared, so that each use may be written over in place."""
        return self._plain("broadcast", shape, (self.constant(shape.element_type, 0),), "zeros")

    # --- indices -------------------------------------------------------------------------------------------------

    def add_index(self, a: Instruction, value: int) -> Instruction:
        """a + value, for scalars."""
        return a if value == 0 else self._scalar("add", a, self.index(value))

    def sum_index(self, a: Instruction, b: Instruction) -> Instruction:
        return self._scalar("add", a, b)

    def difference_index(self, a: Instruction, b: Instruction) -> Instruction:
        return self._scalar("subtract", a, b)

    def scale_index(self, a: Instruction, value: int) -> Instruction:
        return a if value == 1 else self._scalar("multiply", a, self.index(value))

    def divide_index(self, a: Instruction, value: int) -> Instruction:
        return a if value == 1 else self._scalar("divide", a, self.index(value))

    def wrap_index(self, a: Instruction, modulus: int) -> Instruction:
        """a mod modulus, for a >= 0."""
        return self._scalar("remainder", a, self.index(modulus))

    def less(self, a: Instruction, b: Instruction) -> Instruction:
        """Whether a < b, for s32 scalars."""
        shape = shapes.array(hlo_pb2.PRED)
        return self._plain("compare", shape, (a, b), "compare", comparison_direction="LT", comparison_type="SIGNED")

    def device_id(self, *, replica: bool) -> Instruction:
        """The partition's (or replica's) number as s32."""
        opcode = "replica-id" if replica else "partition-id"

        def make() -> Instruction:
            number = self._plain(opcode, shapes.array(hlo_pb2.U32), (), opcode)
            return self._plain("convert", shapes.array(hlo_pb2.S32), (number,), opcode)

        return self.once((opcode,), make)

    def lookup(self, table: Instruction, at: Instruction) -> Instruction:
        """table[at], for a one-dimensional s32 table and an s32 scalar."""

        def make() -> Instruction:
            shape = shapes.array(hlo_pb2.S32, (1,))
            one = self._plain("dynamic-slice", shape, (table, at), "lookup", dynamic_slice_sizes=[1])
            return self._plain("reshape", shapes.array(hlo_pb2.S32), (one,), "lookup")

        return self.once(("lookup", table.id, at.id), make)

    # --- arrays --------------------------------------------------------------------------------------------------

    def add(self, a: Instruction, b: Instruction) -> Instruction:
        """a + b of equal shapes."""
        return self._made("add", a.shape, (a, b), "sum")

    def multiply(self, a: Instruction, b: Instruction) -> Instruction:
        return self._made("multiply", a.shape, (a, b), "product")

    def convert(self, a: Instruction, element_type: PrimitiveType) -> Instruction:
        """`a` with another element type; itself if it has that already."""
        if a.shape.element_type == element_type:
            return a
        shape = resized(a.shape, a.shape.dimensions)
        shape.element_type = element_type
        return self._made("convert", shape, (a,), "convert")

    def reshape(self, a: Instruction, dimensions: Sequence[int]) -> Instruction:
        return self._made("reshape", shapes.with_dimensions(a.shape, dimensions), (a,), "reshape")

    def broadcast(self, a: Instruction, shape: ShapeProto, dimensions: Sequence[int]) -> Instruction:
        """`a` repeated into `shape`; its dimension k becomes dimension `dimensions[k]`."""
        return self._made("broadcast", shape, (a,), "broadcast", dimensions=list(dimensions))

    def slice(self, a: Instruction, dim: int, start: int, limit: int) -> Instruction:
        """Elements start..limit of `a` along `dim`; itself if that is all."""
        sizes = list(a.shape.dimensions)
        if start == 0 and limit == sizes[dim]:
            return a
        ranges = [Instruction.SliceDimensions(start=0, limit=n, stride=1) for n in sizes]
        ranges[dim] = Instruction.SliceDimensions(start=start, limit=limit, stride=1)
        sizes[dim] = limit - start
        return self._made("slice", resized(a.shape, sizes), (a,), "slice", slice_dimensions=ranges)

    def concatenate(self, parts: Sequence[Instruction], dim: int) -> Instruction:
        """The parts one after the other along `dim`; a single part is itself."""
        if len(parts) == 1:
            return parts[0]
        sizes = list(parts[0].shape.dimensions)
        sizes[dim] = sum(p.shape.dimensions[dim] for p in parts)
        return self._made("concatenate", resized(parts[0].shape, sizes), parts, "concatenate", dimensions=[dim])

    def pad_end(self, a: Instruction, dim: int, size: int) -> Instruction:
        """`a` with zeros after its end along `dim`, up to `size`; itself if it is that long."""
        sizes = list(a.shape.dimensions)
        missing = size - sizes[dim]
        if missing == 0:
            return a
        config = hlo_pb2.PaddingConfig(dimensions=[hlo_pb2.PaddingConfig.PaddingConfigDimension() for _ in sizes])
        config.dimensions[dim].edge_padding_high = missing
        sizes[dim] = size
        zero = self.constant(a.shape.element_type, 0)
        return self._made("pad", resized(a.shape, sizes), (a, zero), "pad", padding_config=config)

    def dynamic_slice(self, a: Instruction, dim: int, start: Instruction, size: int) -> Instruction:
        """`size` elements of `a` along `dim` from `start` (an s32 scalar); everything along the other dimensions."""
        sizes = list(a.shape.dimensions)
        sizes[dim] = size
        starts = self._starts(len(sizes), dim, start)
        return self._made("dynamic-slice", resized(a.shape, sizes), (a, *starts), "slice", dynamic_slice_sizes=sizes)

    def dynamic_update_slice(self, a: Instruction, update: Instruction, dim: int, start: Instruction) -> Instruction:
        """`a` with `update` written over it from `start` along `dim`."""
        starts = self._starts(len(a.shape.dimensions), dim, start)
        return self._made("dynamic-update-slice", a.shape, (a, update, *starts), "update")

    def iota(self, shape: ShapeProto, dim: int) -> Instruction:
        """s32 numbers counting along `dim`."""
        return self._made("iota", shapes.array(hlo_pb2.S32, shape.dimensions), (), "iota", dimensions=[dim])

    def masked(self, a: Instruction, dim: int, start: Instruction, limit: int) -> Instruction:
        """`a`, whose element 0 along `dim` is number `start` of a longer array, with zeros from number `limit` on."""
        last = self.difference_index(self.index(limit), start)
        wide = shapes.array(hlo_pb2.S32, a.shape.dimensions)
        limits = self._plain("broadcast", wide, (last,), "limit")
        numbers = self.iota(a.shape, dim)
        pred = shapes.array(hlo_pb2.PRED, a.shape.dimensions)
        real = self._plain(
            "compare", pred, (numbers, limits), "valid", comparison_direction="LT", comparison_type="SIGNED"
        )
        return self._made("select", a.shape, (real, a, self.zeros(a.shape)), "masked")

    # --- collectives, tuples, control ----------------------------------------------------------------------------

    def collective_permute(self, a: Instruction, pairs: Sequence[SourceTarget], *, partitions: bool) -> Instruction:
        """Every source's `a` at its target. The ids are partitions (a channel says so), else replicas."""
        channel = self.editor.fresh_channel() if partitions else 0
        return self._made("collective-permute", a.shape, (a,), "permute", source_target_pairs=pairs, channel_id=channel)

    def all_gather(self, a: Instruction, dim: int, groups: Sequence[Sequence[int]], *, partitions: bool) -> Instruction:
        """The group's arrays one after the other along `dim`, by position."""
        sizes = list(a.shape.dimensions)
        sizes[dim] *= len(groups[0])
        lists = [hlo_pb2.ReplicaGroup(replica_ids=g) for g in groups]
        made = self._made(
            "all-gather",
            resized(a.shape, sizes),
            (a,),
            "all-gather",
            dimensions=[dim],
            channel_id=self.editor.fresh_channel() if partitions else 0,
            use_global_device_ids=partitions,
        )
        made.collective_device_list.replica_groups.extend(lists)
        return made

    def tuple_of(self, parts: Sequence[Instruction]) -> Instruction:
        return self._plain("tuple", shapes.tuple_of(p.shape for p in parts), parts, "tuple")

    def get_tuple_element(self, a: Instruction, index: int) -> Instruction:
        shape = a.shape.tuple_shapes[index]
        return self._made("get-tuple-element", shape, (a,), "element", tuple_index=index)

    def parameter(self, number: int, shape: ShapeProto) -> Instruction:
        return self._plain("parameter", shape, (), "parameter", parameter_number=number)

    def loop(self, state: Instruction, condition: int, body: int, trips: int) -> Instruction:
        """A `while` over a tuple, with its trip count written where XLA looks for it."""
        config = b'{"known_trip_count":{"n":"%d"}}' % trips
        return self._made(
            "while", state.shape, (state,), "loop", called_computation_ids=[body, condition], backend_config=config
        )

    def clone(
        self, original: Instruction, shape: ShapeProto, operands: Sequence[Instruction], role: str
    ) -> Instruction:
        """`original` over other operands, with everything that it says of itself, and another shape."""
        local = [self.local(o) for o in operands]
        copy = Instruction()
        copy.CopyFrom(original)
        copy.shape.CopyFrom(shape)
        copy.operand_ids[:] = [o.id for o in local]
        copy.ClearField("control_predecessor_ids")
        copy.ClearField("backend_config")
        _drop_schedule_ties(copy)
        _fit_sharding(copy)
        return self.editor.add(
            self.computation, copy, name=f"{original.name}.{role}", origins=(original.id,), before=self.before
        )

    # --- inside --------------------------------------------------------------------------------------------------

    def _starts(self, rank: int, dim: int, start: Instruction) -> list[Instruction]:
        zero = self.index(0)
        return [start if d == dim else zero for d in range(rank)]

    def _scalar(self, opcode: str, a: Instruction, b: Instruction) -> Instruction:
        key = (opcode, a.id, b.id)
        return self.once(key, lambda: self._plain(opcode, shapes.array(hlo_pb2.S32), (a, b), "index"))

    def _plain(
        self, opcode: str, shape: ShapeProto, operands: Sequence[Instruction], role: str, **fields: object
    ) -> Instruction:
        """An instruction with the source's name and metadata only: indices, constants, tuples."""
        new = Instruction(opcode=opcode, shape=shape, **fields)  # type: ignore[arg-type]  # typed by each caller
        new.operand_ids.extend(self.local(o).id for o in operands)
        new.metadata.CopyFrom(self.source.metadata)
        return self.editor.add(
            self.computation, new, name=f"{self.source.name}.{role}", origins=(self.source.id,), before=self.before
        )

    def _made(
        self, opcode: str, shape: ShapeProto, operands: Sequence[Instruction], role: str, **fields: object
    ) -> Instruction:
        """An instruction that does part of the source's work, and so keeps what was said about it."""
        new = self._plain(opcode, shape, operands, role, **fields)
        source = self.source
        if source.HasField("frontend_attributes"):
            new.frontend_attributes.CopyFrom(source.frontend_attributes)
            _drop_schedule_ties(new)
        if source.HasField("sharding"):
            new.sharding.CopyFrom(source.sharding)
            _fit_sharding(new)
        return new


def resized(shape: ShapeProto, dimensions: Iterable[int]) -> ShapeProto:
    """An array like `shape`, layout included, with other sizes along the same number of dimensions."""
    new = ShapeProto()
    new.CopyFrom(shape)
    new.dimensions[:] = dimensions
    new.is_dynamic_dimension[:] = [False] * len(new.dimensions)
    new.layout.memory_space = 0
    return new


def _drop_schedule_ties(instruction: Instruction) -> None:
    if not instruction.HasField("frontend_attributes"):
        return
    attributes = instruction.frontend_attributes.map
    for key in [k for k in attributes if k in _TIED_TO_SCHEDULE]:
        del attributes[key]
    if not attributes:
        instruction.ClearField("frontend_attributes")


def _fit_sharding(instruction: Instruction) -> None:
    """Drop a sharding that speaks of another number of dimensions than the result has."""
    tiles = len(instruction.sharding.tile_assignment_dimensions)
    if instruction.sharding.tuple_shardings or (tiles and tiles < len(instruction.shape.dimensions)):
        instruction.ClearField("sharding")
