"""What index arithmetic comes to on every device, by computing it for all devices at once.

Slices by position start at an index computed from `partition-id` or `replica-id` through arithmetic, lookup tables,
or values that loops only carry along. Evaluating it is simpler than recognising it, and proves what patterns guess.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from engine.errors import UnsupportedError
from engine.hlo.hlo_pb2 import HloInstructionProto
from engine.ir import shapes
from engine.ir.flow import Flow
from engine.ir.graph import Ints
from engine.ir.literals import literal_array

Values = npt.NDArray[Any]
"""Per device: axis 0 is the device, or has length 1 where all devices agree; the rest is the instruction's shape."""

_ELEMENTS = 1 << 16
"""Largest array, per device, that is looked into."""
_DEPTH = 150


class UnknownValueError(Exception):
    """Something that is not a function of the device alone; the message names the instruction it fails at."""


class ElidedValueError(UnknownValueError):
    """A constant that the text left out; the message names it."""


class Scalars:
    """Evaluates instructions of one module; results are kept."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._known: dict[int, Values | UnknownValueError] = {}
        header = flow.module.header
        self._devices = np.arange(header.devices)
        self._partitions = header.num_partitions

    def on_devices(self, instruction: int) -> Ints:
        """The integer scalar `instruction` on every device ``replica · num_partitions + partition``, shape [devices].

        Raises UnknownValueError where it depends on anything but the device.
        """
        value = self._value(instruction, 0)
        if value.size != len(value) or value.dtype.kind not in "iub":
            raise UnknownValueError(f"{self._flow.name(instruction)} is no integer scalar")
        return np.broadcast_to(value.reshape(len(value)).astype(np.int64), self._devices.shape)

    def _value(self, id_: int, depth: int) -> Values:
        known = self._known.get(id_)
        if known is None:
            try:
                known = self._evaluated(self._flow.instructions[id_], depth)
            except UnknownValueError as error:
                known = error
            except UnsupportedError as error:
                known = UnknownValueError(str(error))
            self._known[id_] = known
        if isinstance(known, UnknownValueError):
            raise known
        return known

    def _evaluated(self, instruction: HloInstructionProto, depth: int) -> Values:
        name = instruction.name
        if depth > _DEPTH or (
            shapes.is_array(instruction.shape) and shapes.element_count(instruction.shape) > _ELEMENTS
        ):
            raise UnknownValueError(name)
        opcode = instruction.opcode
        if opcode == "partition-id":
            return (self._devices % self._partitions).astype(np.uint32)
        if opcode == "replica-id":
            return (self._devices // self._partitions).astype(np.uint32)
        if opcode == "constant":
            if instruction.id in self._flow.module.elided:
                raise ElidedValueError(name)
            return literal_array(instruction.literal)[None]
        if opcode == "parameter":
            return self._argument(instruction, None, depth)
        if opcode == "get-tuple-element":
            return self._element(instruction, depth)
        if opcode == "fusion":
            return self._value(self._flow.module.computations[instruction.called_computation_ids[0]].root_id, depth + 1)
        apply = _OPERATIONS.get(opcode)
        if apply is None:
            raise UnknownValueError(name)
        operands = [self._value(o, depth + 1) for o in instruction.operand_ids]
        with np.errstate(all="ignore"):
            return apply(instruction, operands)

    def _element(self, instruction: HloInstructionProto, depth: int) -> Values:
        source = self._flow.instructions[instruction.operand_ids[0]]
        if source.opcode == "tuple":
            return self._value(source.operand_ids[instruction.tuple_index], depth + 1)
        if source.opcode == "parameter":
            return self._argument(source, instruction.tuple_index, depth)
        if source.opcode == "while" and self._is_carried(source, instruction.tuple_index):
            return self._argument_of(source, 0, instruction.tuple_index, depth)
        if source.opcode in ("opt-barrier", "copy"):
            inner = self._flow.instructions[source.operand_ids[0]]
            if inner.opcode == "tuple":
                return self._value(inner.operand_ids[instruction.tuple_index], depth + 1)
        raise UnknownValueError(instruction.name)

    def _argument(self, parameter: HloInstructionProto, index: int | None, depth: int) -> Values:
        """What every caller passes for `parameter`, or for element `index` of it."""
        computation = self._flow.computation(parameter.id)
        callers = self._flow.callers.get(computation, ())
        found: Values | None = None
        for caller in (self._flow.instructions[c] for c in dict.fromkeys(callers)):
            if caller.opcode == "while" and not self._is_carried(caller, index):
                raise UnknownValueError(parameter.name)
            for number in _passed(caller, computation, parameter.parameter_number):
                value = self._argument_of(caller, number, index, depth)
                if found is not None and not bool(np.all(found == value)):
                    raise UnknownValueError(parameter.name)
                found = value
        if found is None:
            raise UnknownValueError(parameter.name)
        return found

    def _argument_of(self, caller: HloInstructionProto, number: int, index: int | None, depth: int) -> Values:
        passed = self._flow.instructions[caller.operand_ids[number]]
        if index is None:
            return self._value(passed.id, depth + 1)
        if passed.opcode == "tuple":
            return self._value(passed.operand_ids[index], depth + 1)
        if passed.opcode == "parameter":
            return self._argument(passed, index, depth + 1)
        if passed.opcode == "while" and self._is_carried(passed, index):
            return self._argument_of(passed, 0, index, depth + 1)
        raise UnknownValueError(passed.name)

    def _is_carried(self, loop: HloInstructionProto, index: int | None) -> bool:
        """Whether the body of `loop` hands on element `index` of its state unchanged."""
        if index is None:
            return False
        body = self._flow.module.computations[loop.called_computation_ids[0]]
        root = self._flow.instructions[body.root_id]
        if root.opcode != "tuple":
            return False
        element = self._flow.instructions[root.operand_ids[index]]
        while element.opcode == "copy":
            element = self._flow.instructions[element.operand_ids[0]]
        return (
            element.opcode == "get-tuple-element"
            and element.tuple_index == index
            and self._flow.opcodes[element.operand_ids[0]] == "parameter"
        )


def _passed(caller: HloInstructionProto, computation: int, parameter: int) -> list[int]:
    """Which operands of `caller` a computation gets as `parameter`: several where it is more than one branch."""
    if caller.opcode != "conditional":
        return [parameter]
    return [1 + branch for branch, callee in enumerate(caller.called_computation_ids) if callee == computation]


Operation = Callable[[HloInstructionProto, list[Values]], Values]


def _elementwise(function: Callable[..., Any]) -> Operation:
    def apply(instruction: HloInstructionProto, operands: list[Values]) -> Values:
        del instruction
        result: Values = function(*operands)
        return result.astype(operands[-1].dtype)

    return apply


def _divide(a: Values, b: Values) -> Values:
    """Rounds towards zero; by zero gives all ones, as XLA defines."""
    if a.dtype.kind not in "iu":
        raise UnknownValueError("divide")
    safe = np.where(b == 0, 1, b)
    quotient = np.abs(a) // np.abs(safe) if a.dtype.kind == "i" else a // safe
    signed = np.where((a < 0) != (safe < 0), -quotient, quotient) if a.dtype.kind == "i" else quotient
    return np.where(b == 0, np.array(-1).astype(a.dtype), signed)


def _remainder(a: Values, b: Values) -> Values:
    if a.dtype.kind not in "iu":
        raise UnknownValueError("remainder")
    return np.where(b == 0, a, np.fmod(a, np.where(b == 0, 1, b)))


def _shifted(function: Callable[[Values, Values], Values], logical: bool) -> Callable[[Values, Values], Values]:
    def apply(a: Values, b: Values) -> Values:
        width = a.dtype.itemsize * 8
        unsigned = a.view(f"u{a.dtype.itemsize}") if logical else a
        amount = np.clip(b, 0, width - 1).astype(unsigned.dtype)
        moved = function(unsigned, amount).astype(a.dtype)
        if logical:
            return np.where((b < 0) | (b >= width), np.zeros_like(moved), moved)
        return moved

    return apply


def _compare(instruction: HloInstructionProto, operands: list[Values]) -> Values:
    functions: Mapping[str, Callable[[Values, Values], Any]] = {
        "EQ": np.equal, "NE": np.not_equal, "LT": np.less, "LE": np.less_equal, "GT": np.greater,
        "GE": np.greater_equal,
    }  # fmt: skip
    result: Values = functions[instruction.comparison_direction](*operands)
    return result


def _convert(instruction: HloInstructionProto, operands: list[Values]) -> Values:
    return operands[0].astype(shapes.numpy_dtype(instruction.shape.element_type))


def _reshape(instruction: HloInstructionProto, operands: list[Values]) -> Values:
    if shapes.numpy_dtype(instruction.shape.element_type) != operands[0].dtype:
        raise UnknownValueError(instruction.name)
    if instruction.opcode == "bitcast" and len(instruction.shape.dimensions) > 1:
        raise UnknownValueError(instruction.name)
    return operands[0].reshape(len(operands[0]), *instruction.shape.dimensions)


def _broadcast(instruction: HloInstructionProto, operands: list[Values]) -> Values:
    sizes = list(instruction.shape.dimensions)
    kept = [1] * len(sizes)
    for k, d in enumerate(instruction.dimensions):
        kept[d] = operands[0].shape[1 + k]
    order = np.argsort(list(instruction.dimensions))
    moved = operands[0].transpose(0, *(1 + order))
    return np.broadcast_to(moved.reshape(len(moved), *kept), (len(moved), *sizes))


def _slice(instruction: HloInstructionProto, operands: list[Values]) -> Values:
    picked = tuple(slice(d.start, d.limit, max(d.stride, 1)) for d in instruction.slice_dimensions)
    result: Values = operands[0][(slice(None), *picked)]
    return result


def _dynamic_slice(instruction: HloInstructionProto, operands: list[Values]) -> Values:
    array, *starts = operands
    sizes = instruction.dynamic_slice_sizes
    if len(starts) != len(sizes):
        raise UnknownValueError(instruction.name)
    devices = max(len(v) for v in operands)
    rank = len(sizes)
    rows = np.arange(devices).reshape(devices, *[1] * rank) if len(array) > 1 else 0
    picked: list[Any] = [rows]
    for axis, (start, size) in enumerate(zip(starts, sizes, strict=True)):
        first = np.clip(start.reshape(len(start)).astype(np.int64), 0, array.shape[1 + axis] - size)
        along = [size if k == axis else 1 for k in range(rank)]
        picked.append(first.reshape(len(first), *[1] * rank) + np.arange(size).reshape(1, *along))
    result: Values = array[tuple(picked)]
    return result if result.ndim == rank + 1 else result[None]


def _transpose(instruction: HloInstructionProto, operands: list[Values]) -> Values:
    return operands[0].transpose(0, *(1 + d for d in instruction.dimensions))


def _concatenate(instruction: HloInstructionProto, operands: list[Values]) -> Values:
    devices = max(len(v) for v in operands)
    parts = [np.broadcast_to(v, (devices, *v.shape[1:])) for v in operands]
    return np.concatenate(parts, axis=1 + instruction.dimensions[0])


def _iota(instruction: HloInstructionProto, operands: list[Values]) -> Values:
    del operands
    sizes = list(instruction.shape.dimensions)
    axis = instruction.dimensions[0]
    along = np.arange(sizes[axis]).reshape([sizes[axis] if k == axis else 1 for k in range(len(sizes))])
    return np.broadcast_to(along, sizes)[None].astype(shapes.numpy_dtype(instruction.shape.element_type))


def _select(instruction: HloInstructionProto, operands: list[Values]) -> Values:
    del instruction
    chosen, a, b = operands
    while chosen.ndim < a.ndim:
        chosen = chosen[..., None]
    return np.where(chosen, a, b)


def _invert(a: Values) -> Values:
    return np.logical_not(a) if a.dtype == np.bool_ else np.invert(a)


def _same(instruction: HloInstructionProto, operands: list[Values]) -> Values:
    if len(operands) != 1 or not shapes.is_array(instruction.shape):
        raise UnknownValueError(instruction.name)
    return operands[0]


_OPERATIONS: Mapping[str, Operation] = {
    "add": _elementwise(np.add),
    "subtract": _elementwise(np.subtract),
    "multiply": _elementwise(np.multiply),
    "divide": _elementwise(_divide),
    "remainder": _elementwise(_remainder),
    "maximum": _elementwise(np.maximum),
    "minimum": _elementwise(np.minimum),
    "clamp": _elementwise(lambda low, x, high: np.minimum(np.maximum(x, low), high)),
    "and": _elementwise(np.bitwise_and),
    "or": _elementwise(np.bitwise_or),
    "xor": _elementwise(np.bitwise_xor),
    "not": _elementwise(_invert),
    "negate": _elementwise(np.negative),
    "abs": _elementwise(np.abs),
    "sign": _elementwise(np.sign),
    "shift-left": _elementwise(_shifted(np.left_shift, logical=True)),
    "shift-right-logical": _elementwise(_shifted(np.right_shift, logical=True)),
    "shift-right-arithmetic": _elementwise(_shifted(np.right_shift, logical=False)),
    "compare": _compare,
    "select": _select,
    "convert": _convert,
    "reshape": _reshape,
    "bitcast": _reshape,
    "broadcast": _broadcast,
    "slice": _slice,
    "dynamic-slice": _dynamic_slice,
    "transpose": _transpose,
    "concatenate": _concatenate,
    "iota": _iota,
    "copy": _same,
    "opt-barrier": _same,
}
"""What index arithmetic is made of. Anything else is not a function of the device as far as we know."""
