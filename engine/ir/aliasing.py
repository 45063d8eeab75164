"""Which operands' memory the result of an instruction is: XLA's rules for values that share a buffer.

Sources: XLA's AliasInfo, HloDataflowAnalysis and BufferAssignment as documented in openxla.org/xla and the operation
semantics of the asynchronous operations (their starts carry operands, results and context as one tuple).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from engine.hlo.hlo_pb2 import HloComputationProto, HloInstructionProto, ShapeProto

Index = tuple[int, ...]
"""Path into a tuple shape."""

FORWARDING = frozenset({"bitcast", "opt-barrier", "add-dependency", "domain"})
"""Opcodes whose result is their first operand."""

RESULT_OF_DONE: Mapping[str, Index] = {
    "all-gather-done": (1,),
    "collective-permute-done": (1,),
    "copy-done": (0,),
    "async-done": (1,),
    "recv-done": (0,),
    "all-reduce-done": (),
}
"""Where a done's result lies within its start's tuple."""

OPERAND_OF_START: Mapping[str, Index] = {
    "all-gather-start": (0,),
    "collective-permute-start": (0,),
    "copy-start": (1,),
    "async-start": (0,),
    "send": (0,),
}
"""Where a start's tuple holds its operands."""


_UPDATES = frozenset({"dynamic-update-slice", "scatter"})


def relabels(instruction: HloInstructionProto, operand: HloInstructionProto) -> bool:
    """Whether a reshape moves nothing: both sides lie row by row in memory, untiled."""
    return instruction.opcode == "reshape" and _row_major(instruction.shape) and _row_major(operand.shape)


def _row_major(shape: ShapeProto) -> bool:
    layout = shape.layout
    order = list(layout.minor_to_major)
    return not layout.tiles and not layout.memory_space and order == sorted(order, reverse=True)


def forwarded(computation: HloComputationProto) -> dict[Index, tuple[int, Index]]:
    """Leaves of a computation's root that are a parameter's leaf unchanged: root index → (parameter number, index)."""
    by_id = {i.id: i for i in computation.instructions}
    found: dict[Index, tuple[int, Index]] = {}

    def visit(instruction: HloInstructionProto, at: Index) -> None:
        if instruction.opcode == "tuple":
            for k, operand in enumerate(instruction.operand_ids):
                visit(by_id[operand], (*at, k))
            return
        index: Index = ()
        while instruction.opcode == "get-tuple-element" or instruction.opcode in FORWARDING:
            if instruction.opcode == "get-tuple-element":
                index = (instruction.tuple_index, *index)
            instruction = by_id[instruction.operand_ids[0]]
        if instruction.opcode == "parameter":
            found[at] = (instruction.parameter_number, index)

    visit(by_id[computation.root_id], ())
    return found


def updated_in_place(computation: HloComputationProto) -> dict[Index, int]:
    """Leaves of a fusion's root that update a parameter in place: root index → parameter number.

    Also by several updates one after the other, each of which only the next one reads.
    """
    ending = next(i for i in reversed(computation.instructions) if i.id == computation.root_id)
    if ending.opcode not in _UPDATES and ending.opcode not in ("bitcast", "tuple"):
        return {}  # most fusions: their other instructions need not be looked at
    by_id = {i.id: i for i in computation.instructions}
    reads = Counter(o for i in computation.instructions for o in i.operand_ids)

    def through_bitcasts(instruction: HloInstructionProto) -> HloInstructionProto:
        while instruction.opcode == "bitcast":
            instruction = by_id[instruction.operand_ids[0]]
        return instruction

    found: dict[Index, int] = {}
    leaves: list[tuple[Index, HloInstructionProto]] = [((), ending)]
    if ending.opcode == "tuple":
        leaves = [((k,), by_id[o]) for k, o in enumerate(ending.operand_ids)]
    for index, leaf in leaves:
        target = through_bitcasts(leaf)
        if target.opcode not in _UPDATES:
            continue
        while target.opcode in _UPDATES and (target.id == through_bitcasts(leaf).id or reads[target.id] == 1):
            target = through_bitcasts(by_id[target.operand_ids[0]])
        if target.opcode == "parameter":
            found[index] = target.parameter_number
    return found


def in_place_operands(
    instruction: HloInstructionProto, computation: Callable[[int], HloComputationProto]
) -> tuple[dict[Index, tuple[int, Index]], bool]:
    """Result index → (operand number, operand index) that an instruction may update in place, and whether it must.

    `computation` gives a computation by id.
    """
    if instruction.output_operand_aliasing:
        return {
            tuple(a.output_shape_index): (a.operand_index, tuple(a.operand_shape_index))
            for a in instruction.output_operand_aliasing
        }, True
    operands = len(instruction.operand_ids)
    match instruction.opcode:
        case "dynamic-update-slice" | "set-dimension-size":
            return {(): (0, ())}, False
        case "scatter":
            return _one_by_one((operands - 1) // 2), False
        case "all-reduce-start":
            return _one_by_one(operands), False
        case "ragged-all-to-all":
            return {(): (1, ())}, False
        case "fusion":
            body = computation(instruction.called_computation_ids[0])
            return {index: (operand, ()) for index, operand in updated_in_place(body).items()}, False
        case "collective-permute-start" if operands == 4:
            return {(1,): (1, ())}, True
        case "collective-permute" if operands == 4:
            return {(): (1, ())}, True
    return {}, False


def _one_by_one(count: int) -> dict[Index, tuple[int, Index]]:
    """So many results, each in place of the operand of its number; a single one is no tuple."""
    return {(): (0, ())} if count == 1 else {(k,): (k, ()) for k in range(count)}
