"""The collectives of a module, blocking or asynchronous, as one kind of thing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from engine.hlo.hlo_pb2 import HloComputationProto, HloInstructionProto
from engine.ir import shapes
from engine.ir.flow import Flow
from engine.ir.opcodes import COLLECTIVES
from engine.passes.decompose.refusal import Refusal

_STARTS = frozenset(f"{opcode}-start" for opcode in COLLECTIVES)


@dataclass(frozen=True, slots=True, eq=False)
class Collective:
    """One collective; for an asynchronous form the pair of its start and done."""

    id: int
    """The instruction whose result is the collective's: itself, or the done."""
    start: int
    """The instruction that reads the operands: itself, or the start."""
    opcode: str
    """Without ``-start``: ``all-gather``."""
    written: HloInstructionProto
    """The instruction with the attributes: itself, the start, or the one that a generic start wraps."""
    computation: int
    fused_into: str | None = None
    """Name of the fusion, or of the computation run asynchronously, that it is inside of with other work."""


def collectives_of(flow: Flow) -> Iterator[Collective]:
    """Every collective of what the module executes, in the module's order."""
    for computation in flow.module.proto.computations:
        id_ = computation.id
        fusion = None
        if id_ not in flow.trips:
            fusion = _fusion_around(flow, id_)
            if fusion is None:
                continue
        for instruction in computation.instructions:
            found = _read(flow, instruction, id_, fusion)
            if found is not None:
                yield found


def check_shapes(flow: Flow, collective: Collective) -> None:
    """Refuse what no decomposition handles: several arrays, dynamic sizes, starts without a done. Raises Refusal."""
    operands = flow.operands[collective.start]
    if len(operands) != 1:
        raise Refusal(f"{len(operands)} arrays are combined in one")
    if any(flow.instructions[operands[0]].shape.is_dynamic_dimension):
        raise Refusal("its size is dynamic")
    if not shapes.is_array(flow.instructions[collective.id].shape):
        raise Refusal("its result is not one array, or it is started and never awaited")


def gathered_dim(flow: Flow, collective: Collective) -> tuple[int, int, int]:
    """Dimension, elements of one shard along it, and number of shards of an all-gather. Raises Refusal."""
    check_shapes(flow, collective)
    dim = collective.written.dimensions[0]
    shard = flow.instructions[flow.operands[collective.start][0]].shape.dimensions[dim]
    whole = flow.instructions[collective.id].shape.dimensions[dim]
    if not shard:
        raise Refusal("its shards have no elements")
    return dim, shard, whole // shard


def _read(flow: Flow, instruction: HloInstructionProto, computation: int, fusion: str | None) -> Collective | None:
    opcode = flow.opcodes[instruction.id]
    if opcode in COLLECTIVES:
        return Collective(instruction.id, instruction.id, opcode, instruction, computation, fusion)
    if opcode in _STARTS:
        done = _done(flow, instruction.id)
        return Collective(done, instruction.id, opcode.removesuffix("-start"), instruction, computation, fusion)
    if opcode == "async-start":
        wrapped = flow.module.computations[instruction.called_computation_ids[0]]
        inner = flow.instructions[wrapped.root_id]
        if inner.opcode in COLLECTIVES:
            out_of_reach = fusion or (None if _stands_alone(flow, wrapped) else wrapped.name)
            done = _done(flow, instruction.id)
            return Collective(done, instruction.id, inner.opcode, inner, computation, out_of_reach)
    return None


def _stands_alone(flow: Flow, wrapped: HloComputationProto) -> bool:
    """Whether all that an asynchronous computation does is its root, on its parameters in turn."""
    operands = [flow.instructions[o] for o in flow.operands[wrapped.root_id]]
    given = [o.parameter_number for o in operands if o.opcode == "parameter"]
    return given == list(range(len(wrapped.instructions) - 1)) == list(range(len(operands)))


def _done(flow: Flow, start: int) -> int:
    """The done of an asynchronous start, through updates."""
    users = flow.users(start)
    while len(users) == 1 and flow.opcodes[users[0]] == "async-update":
        users = flow.users(users[0])
    return users[0] if len(users) == 1 else start


def _fusion_around(flow: Flow, computation: int) -> str | None:
    for caller in flow.callers.get(computation, ()):
        if flow.opcodes[caller] == "fusion":
            return flow.name(caller)
    return None
