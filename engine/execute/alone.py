"""One device's compute alone: collectives become copies of the device's own data, so that a module for many devices
runs on one. Times of single operations stay what they are; results mean nothing.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from engine.errors import UnsupportedError
from engine.execute.legalize import legalize
from engine.hlo.hlo_pb2 import HloInstructionProto, HloModuleProto, ShapeProto
from engine.ir import shapes
from engine.ir.literals import literal_of
from engine.ir.module import Header, Module
from engine.ir.opcodes import COLLECTIVES


def alone(module: Module) -> tuple[HloModuleProto, Header]:
    """A runnable proto for one device with the same parameters and results, as `legalize` gives it, and its header.

    Raises UnsupportedError for collectives that no copy can stand for.
    """
    proto = legalize(module)
    for computation in proto.computations:
        by_id = {i.id: i for i in computation.instructions}
        next_id = max(by_id, default=0)
        out: list[HloInstructionProto] = []
        for instruction in computation.instructions:
            if instruction.opcode in ("partition-id", "replica-id"):
                _become_zero(instruction)
            elif instruction.opcode in COLLECTIVES:
                for made in _stand_in(instruction, by_id, next_id):
                    next_id = max(next_id, made.id)
                    out.append(made)
            copy = HloInstructionProto()
            copy.CopyFrom(instruction)
            out.append(copy)
        del computation.instructions[:]
        computation.instructions.extend(out)
    return proto, replace(module.header, num_partitions=1, replica_count=1)


def _become_zero(instruction: HloInstructionProto) -> None:
    instruction.opcode = "constant"
    instruction.literal.CopyFrom(literal_of(np.zeros(()), instruction.shape.element_type))


def _stand_in(
    collective: HloInstructionProto, by_id: dict[int, HloInstructionProto], last_id: int
) -> list[HloInstructionProto]:
    """Rewrite `collective`, in place, into copies of its operands; what has to come before it."""
    operands = [by_id[o] for o in collective.operand_ids]
    results = list(collective.shape.tuple_shapes) or [collective.shape]
    if collective.opcode == "ragged-all-to-all":
        operands = operands[1:2]
    if len(operands) != len(results):
        raise UnsupportedError(f"{collective.name}: a {collective.opcode} of this form has no part on one device alone")
    name, metadata = collective.name, collective.metadata
    made: list[HloInstructionProto] = []
    if not collective.shape.tuple_shapes:
        kept = HloInstructionProto(name=name, id=collective.id)
        kept.metadata.CopyFrom(metadata)
        _resize(kept, operands[0], results[0], collective.opcode)
        collective.CopyFrom(kept)
        return made
    for k, (operand, result) in enumerate(zip(operands, results, strict=True)):
        part = HloInstructionProto(name=f"{name}.{k}", id=last_id + 1 + k)
        part.metadata.CopyFrom(metadata)
        _resize(part, operand, result, collective.opcode)
        made.append(part)
    kept = HloInstructionProto(name=name, id=collective.id, opcode="tuple", operand_ids=[p.id for p in made])
    kept.metadata.CopyFrom(metadata)
    kept.shape.CopyFrom(collective.shape)
    collective.CopyFrom(kept)
    return made


def _resize(into: HloInstructionProto, operand: HloInstructionProto, result: ShapeProto, opcode: str) -> None:
    """`into` as `operand` in the shape of `result`: repeated along a dimension, cut, or as it is."""
    before, after = list(operand.shape.dimensions), list(result.dimensions)
    into.shape.CopyFrom(result)
    changed = [d for d in range(len(after)) if before[d] != after[d]] if len(before) == len(after) else []
    if len(before) == len(after) and not changed:
        into.opcode, into.operand_ids[:] = "reshape", [operand.id]  # a copy in all but name, which plugins refuse
    elif len(changed) == 1 and after[changed[0]] % max(1, before[changed[0]]) == 0:
        into.opcode, into.dimensions[:] = "concatenate", changed
        into.operand_ids[:] = [operand.id] * (after[changed[0]] // before[changed[0]])
    elif changed and all(a <= b for a, b in zip(after, before, strict=True)):
        into.opcode, into.operand_ids[:] = "slice", [operand.id]
        for size in after:
            into.slice_dimensions.add(start=0, limit=size, stride=1)
    elif shapes.element_count(operand.shape) == shapes.element_count(result):
        into.opcode, into.operand_ids[:] = "reshape", [operand.id]
    else:
        raise UnsupportedError(f"{into.name}: a {opcode} of this form has no part on one device alone")
