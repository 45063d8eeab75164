"""Rewrites a runnable proto to compute in float64: the reference that both modules are compared with."""

from __future__ import annotations

import numpy as np

from engine.hlo import hlo_pb2
from engine.hlo.hlo_pb2 import HloComputationProto, HloInstructionProto, HloModuleProto, PrimitiveType, ShapeProto
from engine.ir import shapes
from engine.ir.literals import literal_array, literal_of


def widen(proto: HloModuleProto) -> HloModuleProto:
    """A copy whose floating types are all f64, and complex ones c128; integers stay.

    `proto` is one that `legalize` gave. Rounding to a narrower type (reduce-precision, convert) is left out. Numbers
    that are made of bits, as random ones are, are made in their own type first.
    """
    wide = HloModuleProto()
    wide.CopyFrom(proto)
    for computation in wide.computations:
        _keep_bits(computation)
        for instruction in computation.instructions:
            if instruction.opcode != "bitcast-convert":
                _widen_instruction(instruction)
        _widen_program(computation.program_shape)
    _widen_program(wide.host_program_shape)
    return wide


def obstacle(proto: HloModuleProto) -> str | None:
    """Why the module cannot be computed in float64; None when it can."""
    for computation in proto.computations:
        element_types = {i.id: i.shape.element_type for i in computation.instructions}
        for instruction in computation.instructions:
            before = [element_types[o] for o in instruction.operand_ids]
            reason = _obstacle(instruction, before)
            if reason is not None:
                return reason
    return None


def wide_type(element_type: PrimitiveType) -> PrimitiveType:
    if shapes.is_floating(element_type):
        return hlo_pb2.F64
    return hlo_pb2.C128 if shapes.is_complex(element_type) else element_type


def _obstacle(instruction: HloInstructionProto, operands: list[PrimitiveType]) -> str | None:
    if instruction.opcode == "bitcast-convert" and any(wide_type(t) != t for t in operands):
        return f"{instruction.name} reads the bits of a floating-point number"
    if instruction.opcode == "custom-call" and any(wide_type(t) != t for t in operands):
        return f'{instruction.name} calls "{instruction.custom_call_target}"'
    return None


def _keep_bits(computation: HloComputationProto) -> None:
    """Converts after every bitcast-convert to a floating-point type: they take its name, number and users."""
    largest = max((i.id for i in computation.instructions), default=0)
    listed = []
    for instruction in computation.instructions:
        if instruction.opcode == "bitcast-convert" and wide_type(instruction.shape.element_type) != (
            instruction.shape.element_type
        ):
            largest += 1
            bits = HloInstructionProto()
            bits.CopyFrom(instruction)
            bits.id, bits.name = largest, f"{instruction.name}.bits"
            listed.append(bits)
            instruction.opcode = "convert"
            instruction.operand_ids[:] = [bits.id]
        listed.append(instruction)
    if len(listed) > len(computation.instructions):
        kept = HloComputationProto(instructions=listed)
        computation.ClearField("instructions")
        computation.instructions.extend(kept.instructions)


def _widen_instruction(instruction: HloInstructionProto) -> None:
    if instruction.opcode == "constant" and shapes.is_array(instruction.shape):
        element_type = instruction.shape.element_type
        wide = wide_type(element_type)
        if wide != element_type:
            values = literal_array(instruction.literal)
            kept = values.astype(np.complex128 if wide == hlo_pb2.C128 else np.float64)
            instruction.literal.CopyFrom(literal_of(kept, wide))
    elif instruction.opcode == "reduce-precision":
        instruction.opcode = "copy"
    if instruction.HasField("precision_config"):
        instruction.precision_config.ClearField("algorithm")
    _widen_shape(instruction.shape)


def _widen_program(program: hlo_pb2.ProgramShapeProto) -> None:
    for parameter in program.parameters:
        _widen_shape(parameter)
    _widen_shape(program.result)


def _widen_shape(shape: ShapeProto) -> None:
    for _, leaf in shapes.leaves(shape):
        leaf.element_type = wide_type(leaf.element_type)
        leaf.layout.ClearField("element_size_in_bits")
