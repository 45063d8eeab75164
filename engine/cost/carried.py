"""Copies that a compiler will insert into a loop whose state changes places from one iteration to the next.

A module that has not been compiled shows none of them: XLA adds them late, where an element of the loop's state would
have to be written while its old value is still being read.
"""

from __future__ import annotations

from collections.abc import Mapping

from engine.hlo.hlo_pb2 import HloComputationProto, HloInstructionProto, ShapeProto
from engine.ir.module import Module

_THROUGH = frozenset({"bitcast", "reshape", "optimization-barrier", "opt-barrier", "copy-done"})
_APART = frozenset(
    {"collective-permute", "all-to-all", "transpose", "reverse", "dot", "convolution", "gather", "sort", "async"}
)
"""Instructions whose result cannot take the place of the operand they read."""


def loop_copies(module: Module) -> Mapping[int, tuple[ShapeProto, ...]]:
    """Arrays that are copied once an iteration, by id of the loop body; nothing for a module that was compiled.

    Element k of a loop's state is copied when its next value is another element of the state (they change places), or
    when it is computed from element k itself by an instruction that cannot work in place, such as a permute. A loop
    unrolled by two, whose two buffers are each computed from the other, has none (technique §2).
    """
    if module.is_scheduled:
        return {}
    bodies = [i.called_computation_ids[0] for i in module.instructions.values() if i.opcode == "while"]
    return {id_: shapes for id_ in bodies if (shapes := _copied(module.computations[id_]))}


def _copied(body: HloComputationProto) -> tuple[ShapeProto, ...]:
    local = {i.id: i for i in body.instructions}
    root = local[body.root_id]
    if root.opcode != "tuple":
        return ()
    found = []
    for k, operand in enumerate(root.operand_ids):
        value = _behind(local, operand)
        source = _element(local, value)
        if source is not None:
            if source != k:
                found.append(value.shape)
        elif _apart(value) and any(_element(local, _behind(local, o)) == k for o in _reads(local, value)):
            found.append(value.shape)
    return tuple(found)


def _behind(local: Mapping[int, HloInstructionProto], id_: int) -> HloInstructionProto:
    instruction = local[id_]
    while instruction.opcode in _THROUGH:
        instruction = local[instruction.operand_ids[0]]
    return instruction


def _element(local: Mapping[int, HloInstructionProto], value: HloInstructionProto) -> int | None:
    """Which element of the loop's state this is, if it is one as it came in."""
    if value.opcode != "get-tuple-element" or local[value.operand_ids[0]].opcode != "parameter":
        return None
    return value.tuple_index


def _apart(value: HloInstructionProto) -> bool:
    return value.opcode.removesuffix("-done") in _APART


def _reads(local: Mapping[int, HloInstructionProto], value: HloInstructionProto) -> tuple[int, ...]:
    """Operands; of a done those of its start."""
    if value.opcode.endswith("-done"):
        return tuple(local[value.operand_ids[0]].operand_ids)
    return tuple(value.operand_ids)
