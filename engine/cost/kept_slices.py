"""All-reduces of whose sum every device keeps its own slice alone: compilers run them as reduce-scatters.

The partitioner writes a reduce-scatter as an all-reduce and a dynamic-slice at the device's position; XLA's
ReduceScatterCreator, in the TPU and GPU pipelines, makes one of the two soon after. They are priced as written, and
who reads a gain over them is told.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from engine.errors import UnsupportedError
from engine.hlo.hlo_pb2 import HloInstructionProto
from engine.ir import shapes
from engine.ir.groups import device_groups
from engine.ir.module import Module

_REDUCES = frozenset({"all-reduce", "all-reduce-start"})
_SAME_ELEMENTS = frozenset(
    {"all-reduce-done", "async-done", "async-update", "bitcast", "convert", "copy", "reshape", "transpose"}
)
_POSITIONS = frozenset({"partition-id", "replica-id"})
_LONGEST = 8
"""Instructions between a sum and its slice."""
_MOST_BEHIND = 100
"""Instructions looked at for where a slice's start comes from: index arithmetic is short."""


def kept_in_slices(module: Module) -> frozenset[int]:
    """Ids of the all-reduces, or their starts, that compilers make reduce-scatters of."""
    reduces = [i for i in module.instructions.values() if i.opcode in _REDUCES and len(i.operand_ids) == 1]
    if not reduces:
        return frozenset()
    flow = _Flow(module)
    return frozenset(i.id for i in reduces if flow.is_kept_in_slices(i))


class _Flow:
    """Who reads what, into fusions and the computations that asynchronous operations wrap."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._readers: dict[int, list[HloInstructionProto]] = {}
        self._callers: dict[int, HloInstructionProto] = {}
        for instruction in module.instructions.values():
            for operand in instruction.operand_ids:
                self._readers.setdefault(operand, []).append(instruction)
            if instruction.opcode in ("fusion", "async-start"):
                self._callers[instruction.called_computation_ids[0]] = instruction
        self._roots = {c.root_id for c in module.computations.values()}

    def is_kept_in_slices(self, reduce: HloInstructionProto) -> bool:
        part = self._slice_of(reduce.id)
        if part is None:
            return False
        try:
            groups = device_groups(reduce, self._module.header)
        except UnsupportedError:
            return False
        whole = self._module.instructions[reduce.operand_ids[0]].shape
        return shapes.element_count(part.shape) * len(groups[0]) == shapes.element_count(whole)

    def _slice_of(self, value: int) -> HloInstructionProto | None:
        """The dynamic-slice at the device's position that is all that reads a value."""
        for _ in range(_LONGEST):
            if value in self._roots:
                caller = self._callers.get(self._module.computation_of[value])
                if caller is None or caller.opcode != "async-start":
                    return None
                value = caller.id
            readers = self._readers.get(value, ())
            if len(readers) != 1:
                return None
            (reader,) = readers
            if reader.opcode == "dynamic-slice" and reader.operand_ids[0] == value:
                return reader if self._comes_from_position(reader.operand_ids[1:]) else None
            if reader.opcode == "fusion":
                called = self._module.computations[reader.called_computation_ids[0]]
                number = list(reader.operand_ids).index(value)
                value = next(
                    i.id for i in called.instructions if i.opcode == "parameter" and i.parameter_number == number
                )
            elif reader.opcode in _SAME_ELEMENTS:
                value = reader.id
            else:
                return None
        return None

    def _comes_from_position(self, starts: Iterable[int]) -> bool:
        stack = list(starts)
        seen = set(stack)
        while stack and len(seen) < _MOST_BEHIND:
            instruction = self._module.instructions[stack.pop()]
            if instruction.opcode in _POSITIONS:
                return True
            before: Sequence[int] = instruction.operand_ids
            caller = self._callers.get(self._module.computation_of[instruction.id])
            if instruction.opcode == "parameter" and caller is not None:
                before = caller.operand_ids[instruction.parameter_number :][:1]
            fresh = [o for o in before if o not in seen]
            seen.update(fresh)
            stack.extend(fresh)
        return False
