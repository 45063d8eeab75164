"""Rewrites a module's computations instruction by instruction, into what XLA's converter and pipelines take.

What is rewritten is up to the handlers: `HANDLERS` for CPU devices, `UNDONE` for another compiler.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from engine.errors import UnsupportedError
from engine.execute.bitcasts import Step, steps
from engine.hlo import hlo_pb2
from engine.hlo.hlo_pb2 import HloComputationProto, HloInstructionProto, HloModuleProto, ShapeProto
from engine.ir import shapes
from engine.ir.groups import written_lists
from engine.ir.literals import literal_array, literal_of
from engine.ir.module import Module
from engine.ir.numbering import Numbering

IDENTITIES = frozenset(
    {
        "AssumeGatherIndicesInBound",
        "LayoutConstraint",
        "MoveToDevice",
        "MoveToHost",
        "PinToDevice",
        "SPMDFullToShardShape",
        "SPMDShardToFullShape",
        "Sharding",
        "annotate_device_placement",
    }
)
"""Custom-calls that only say something about their operand."""

_DROPPED = (
    "constrain_layout",
    "control_predecessor_ids",
    "frontend_attributes",
    "operand_shapes_with_layout",
    "output_operand_aliasing",
    "sharding",
)

_SPLIT = frozenset({"all-gather", "all-reduce", "collective-permute", "reduce-scatter"})
"""Collectives that are taken apart into one for each operand: StableHLO has no form for several (permute,
reduce-scatter), or CPU compilation fails on it (all-reduce of bf16: no layout for the tuple that it widens)."""


def rewritten(module: Module, handlers: Mapping[str, Handler]) -> HloModuleProto:
    """The module's proto without schedule, shardings, layouts and memory spaces, its instructions as `handlers` make
    them. Raises UnsupportedError for a bitcast that is no reshape and transpose."""
    proto = HloModuleProto()
    proto.CopyFrom(module.proto)
    for field in ("schedule", "spmd_output_sharding", "spmd_parameters_shardings", "frontend_attributes"):
        proto.ClearField(field)
    fresh = Numbering(module.proto, module.gone)
    for computation in proto.computations:
        _Rewriter(computation, fresh, handlers).rewrite()
    for computation in proto.computations:
        computation.ClearField("execution_thread")
        computation.ClearField("is_fusion_computation")
        _plain_program(computation.program_shape)
        for instruction in computation.instructions:
            _plain(instruction.shape)
    _plain_program(proto.host_program_shape)
    return proto


def list_groups(instruction: HloInstructionProto) -> None:
    """Write replica groups of any form as explicit lists, in place.

    jaxlib 0.10.2 turns mesh-form groups into other groups, without a word, when a module has two meshes.
    """
    form = instruction.WhichOneof("replica_group_list")
    if form is None:
        return
    lists = written_lists(instruction)
    instruction.ClearField(form)
    del instruction.replica_groups[:]
    for members in lists:
        instruction.replica_groups.add(replica_ids=members)


class _Written:
    """The instructions of a computation so far, with their shapes by id."""

    def __init__(self) -> None:
        self.instructions: list[HloInstructionProto] = []
        self.shapes: dict[int, ShapeProto] = {}

    def append(self, instruction: HloInstructionProto) -> None:
        self.instructions.append(instruction)
        self.shapes[instruction.id] = instruction.shape


class _Rewriter:
    """Rewrites one computation in its order."""

    def __init__(self, computation: HloComputationProto, fresh: Numbering, handlers: Mapping[str, Handler]) -> None:
        self._computation = computation
        self._handlers = handlers
        self._fresh = fresh
        self._original = {i.id: i for i in computation.instructions}
        self._next_id = max(self._original, default=0)
        self._forwarded: dict[int, int] = {}
        self._out = _Written()

    def rewrite(self) -> None:
        for instruction in self._computation.instructions:
            copy = HloInstructionProto()
            copy.CopyFrom(instruction)
            self._strip(copy)
            handle = self._handlers.get(copy.opcode, _Rewriter._keep)
            handle(self, copy, instruction)
        self._computation.root_id = self._forwarded.get(self._computation.root_id, self._computation.root_id)
        del self._computation.instructions[:]
        self._computation.instructions.extend(self._out.instructions)

    def _strip(self, instruction: HloInstructionProto) -> None:
        """Leave out what does not change numbers, and write the replica groups out."""
        instruction.operand_ids[:] = [self._forwarded.get(o, o) for o in instruction.operand_ids]
        for field in _DROPPED:
            instruction.ClearField(field)
        if instruction.opcode != "custom-call":
            instruction.ClearField("backend_config")
        list_groups(instruction)

    def _keep(self, copy: HloInstructionProto, _: HloInstructionProto) -> None:
        if copy.opcode in _SPLIT and len(copy.operand_ids) > 1:
            self._split(copy)
        else:
            self._out.append(copy)

    def _collective_start(self, copy: HloInstructionProto, original: HloInstructionProto) -> None:
        """A start's shape is (operands, results, contexts…), that of an all-reduce-start its result."""
        if copy.opcode != "all-reduce-start":
            copy.shape.CopyFrom(original.shape.tuple_shapes[1])
        copy.opcode = copy.opcode.removesuffix("-start")
        self._keep(copy, original)

    def _all_to_all(self, copy: HloInstructionProto, original: HloInstructionProto) -> None:
        """One operand for each device of a group, which StableHLO has no form for, as one with another dimension."""
        count = len(copy.operand_ids)
        if count == 1:
            self._keep(copy, original)
            return
        shape = copy.shape.tuple_shapes[0]
        rows = shapes.array(shape.element_type, (1, *shape.dimensions))
        stacked = self._new(copy, "concatenate", shapes.array(shape.element_type, (count, *shape.dimensions)))
        stacked.dimensions[:] = [0]
        for operand in copy.operand_ids:
            stacked.operand_ids.append(self._reshaped(copy, operand, rows))
        exchanged = HloInstructionProto()
        exchanged.CopyFrom(copy)
        exchanged.id, exchanged.name = self._fresh_id(), self._fresh.name(f"{copy.name}.stacked")
        exchanged.shape.CopyFrom(stacked.shape)
        exchanged.operand_ids[:], exchanged.dimensions[:] = [stacked.id], [0]
        self._out.append(stacked)
        self._out.append(exchanged)
        parts = []
        for k in range(count):
            row = self._new(copy, "slice", rows)
            row.operand_ids[:] = [exchanged.id]
            for d, size in enumerate(rows.dimensions):
                row.slice_dimensions.add(start=k if d == 0 else 0, limit=k + 1 if d == 0 else size, stride=1)
            self._out.append(row)
            parts.append(self._reshaped(copy, row.id, shape))
        self._become(copy, "tuple", parts)

    def _reshaped(self, like: HloInstructionProto, operand: int, shape: ShapeProto) -> int:
        made = self._new(like, "reshape", shape)
        made.operand_ids[:] = [operand]
        self._out.append(made)
        return made.id

    def _copy(self, copy: HloInstructionProto, original: HloInstructionProto) -> None:
        """The TPU compiler ends with copies that change the type on their way."""
        if self._original[original.operand_ids[0]].shape.element_type != copy.shape.element_type:
            copy.opcode = "convert"
        self._out.append(copy)

    def _copy_start(self, copy: HloInstructionProto, original: HloInstructionProto) -> None:
        copy.opcode = "copy"
        copy.shape.CopyFrom(original.shape.tuple_shapes[0])
        self._out.append(copy)

    def _async_start(self, copy: HloInstructionProto, original: HloInstructionProto) -> None:
        copy.opcode = "call"
        copy.shape.CopyFrom(original.shape.tuple_shapes[1])
        copy.ClearField("async_execution_thread")
        self._out.append(copy)

    def _forward(self, copy: HloInstructionProto, _: HloInstructionProto) -> None:
        """The value of an operation that has become its first operand."""
        self._forwarded[copy.id] = copy.operand_ids[0]

    def _fusion(self, copy: HloInstructionProto, _: HloInstructionProto) -> None:
        copy.opcode = "call"
        copy.ClearField("fusion_kind")
        self._out.append(copy)

    def _constant(self, copy: HloInstructionProto, original: HloInstructionProto) -> None:
        order = list(original.literal.shape.layout.minor_to_major)
        if order != list(range(len(order) - 1, -1, -1)):
            copy.literal.CopyFrom(literal_of(literal_array(original.literal), original.shape.element_type))
        self._out.append(copy)

    def _bitcast(self, copy: HloInstructionProto, original: HloInstructionProto) -> None:
        source = self._original[original.operand_ids[0]].shape
        target = original.shape
        same_width = shapes.bits(source.element_type) == shapes.bits(target.element_type)
        path = steps(source, target) if same_width else None
        if path is None:
            raise UnsupportedError(
                f"bitcast {copy.name} from {shapes.text(source)} to {shapes.text(target)} is no reshape and transpose, "
                "and cannot be undone"
            )
        value = copy.operand_ids[0]
        for step in path:
            value = self._emit(copy, source, step, value)
        if source.element_type != target.element_type:
            copy.opcode = "bitcast-convert"
            copy.operand_ids[:] = [value]
            self._out.append(copy)
        else:
            self._forwarded[copy.id] = value

    def _dot(self, copy: HloInstructionProto, _: HloInstructionProto) -> None:
        """CPU code multiplies only what is as wide as the result: narrower operands are widened, which is exact."""
        result = copy.shape.element_type
        for k, operand in enumerate(copy.operand_ids):
            shape = self._out.shapes[operand]
            if shapes.is_floating(shape.element_type) and shapes.bits(shape.element_type) < shapes.bits(result):
                wide = self._new(copy, "convert", shapes.array(result, shape.dimensions))
                wide.operand_ids[:] = [operand]
                self._out.append(wide)
                copy.operand_ids[k] = wide.id
        self._out.append(copy)

    def _custom_call(self, copy: HloInstructionProto, original: HloInstructionProto) -> None:
        target = copy.custom_call_target
        if target in IDENTITIES:
            self._forward(copy, original)
        elif target == "AllocateBuffer":
            self._zeros(copy)
        elif target == "ConcatBitcast":
            self._concatenation(copy, [self._original[o].shape for o in original.operand_ids])
        else:
            self._out.append(copy)

    def _zeros(self, copy: HloInstructionProto) -> None:
        """Memory whose contents nobody reads before writing it."""
        scalar = shapes.array(copy.shape.element_type)
        zero = self._new(copy, "constant", scalar)
        zero.literal.CopyFrom(literal_of(_ZERO, copy.shape.element_type))
        self._out.append(zero)
        self._become(copy, "broadcast", [zero.id])

    def _concatenation(self, copy: HloInstructionProto, operands: list[ShapeProto]) -> None:
        result = list(copy.shape.dimensions)
        for axis, size in enumerate(result):
            others = [d for d in range(len(result)) if d != axis]
            fits = all(o.dimensions[d] == result[d] for o in operands for d in others)
            if fits and sum(o.dimensions[axis] for o in operands) == size:
                self._become(copy, "concatenate", list(copy.operand_ids), [axis])
                return
        raise UnsupportedError(f'custom-call "ConcatBitcast" {copy.name} does not concatenate along one dimension')

    def _split(self, copy: HloInstructionProto) -> None:
        """One collective for each operand, and their tuple under the old id."""
        parts = []
        for k, operand in enumerate(copy.operand_ids):
            part = HloInstructionProto()
            part.CopyFrom(copy)
            part.id, part.name = self._fresh_id(), self._fresh.name(f"{copy.name}.{k}")
            part.operand_ids[:] = [operand]
            part.shape.CopyFrom(copy.shape.tuple_shapes[k])
            if copy.channel_id:
                part.channel_id = self._fresh.channel()
            parts.append(part.id)
            self._out.append(part)
        self._become(copy, "tuple", parts)

    def _become(
        self, copy: HloInstructionProto, opcode: str, operands: list[int], dimensions: list[int] | None = None
    ) -> None:
        """`copy` as another operation with the same name, id and shape."""
        instruction = HloInstructionProto(
            name=copy.name, id=copy.id, opcode=opcode, operand_ids=operands, dimensions=dimensions or []
        )
        instruction.shape.CopyFrom(copy.shape)
        instruction.metadata.CopyFrom(copy.metadata)
        self._out.append(instruction)

    def _emit(self, bitcast: HloInstructionProto, source: ShapeProto, step: Step, operand: int) -> int:
        instruction = self._new(bitcast, step.opcode, shapes.with_dimensions(source, step.dimensions))
        instruction.operand_ids[:] = [operand]
        if step.opcode == "transpose":
            instruction.dimensions[:] = step.permutation
        elif step.opcode == "slice":
            for size in step.dimensions:
                instruction.slice_dimensions.add(start=0, limit=size, stride=1)
        elif step.opcode == "pad":
            zero = self._new(bitcast, "constant", shapes.array(source.element_type))
            zero.literal.CopyFrom(literal_of(_ZERO, source.element_type))
            self._out.append(zero)
            instruction.operand_ids.append(zero.id)
            before = self._out.shapes[operand]
            for size, padded in zip(before.dimensions, step.dimensions, strict=True):
                instruction.padding_config.dimensions.add(edge_padding_high=padded - size)
        self._out.append(instruction)
        return instruction.id

    def _new(self, like: HloInstructionProto, opcode: str, shape: ShapeProto) -> HloInstructionProto:
        id_ = self._fresh_id()
        name = self._fresh.name(f"{like.name}.{opcode}.{id_ & 0xFFFFFFFF}")
        instruction = HloInstructionProto(name=name, id=id_, opcode=opcode)
        instruction.shape.CopyFrom(shape)
        instruction.metadata.CopyFrom(like.metadata)
        return instruction

    def _fresh_id(self) -> int:
        self._next_id += 1
        return self._next_id


_ZERO = np.zeros(())

Handler = Callable[[_Rewriter, HloInstructionProto, HloInstructionProto], None]
HANDLERS: Mapping[str, Handler] = MappingProxyType(
    {
        **dict.fromkeys(
            ("all-gather-start", "all-reduce-start", "collective-permute-start"), _Rewriter._collective_start
        ),
        **dict.fromkeys(
            (
                "all-gather-done",
                "all-reduce-done",
                "async-done",
                "async-update",
                "collective-permute-done",
                "copy-done",
            ),
            _Rewriter._forward,
        ),
        "async-start": _Rewriter._async_start,
        "bitcast": _Rewriter._bitcast,
        "constant": _Rewriter._constant,
        "copy": _Rewriter._copy,
        "copy-start": _Rewriter._copy_start,
        "custom-call": _Rewriter._custom_call,
        "dot": _Rewriter._dot,
        "fusion": _Rewriter._fusion,
    }
)
UNDONE: Mapping[str, Handler] = MappingProxyType(
    {
        **{opcode: handler for opcode, handler in HANDLERS.items() if opcode != "dot"},
        "all-to-all": _Rewriter._all_to_all,
    }
)
"""For compilers, which multiply what is narrower than the result."""


def _plain_program(program: hlo_pb2.ProgramShapeProto) -> None:
    for parameter in program.parameters:
        _plain(parameter)
    _plain(program.result)


def _plain(shape: ShapeProto) -> None:
    """Drop tiles, memory spaces and everything else of layouts but the default order, in place."""
    for _, leaf in shapes.leaves(shape):
        if leaf.HasField("layout"):
            leaf.layout.CopyFrom(shapes.array(leaf.element_type, leaf.dimensions).layout)
