"""The computation of a fusion, made at one go from copies of instructions in the order in which it runs them.

Much cheaper than adding to an empty computation one by one: nothing in it can be changed before the edit is finished.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.hlo.hlo_pb2 import ShapeProto
from engine.ir import shapes
from engine.ir.edit import Editor, Instruction
from engine.ir.numbering import LOCAL_BITS


class FusedComputation:
    """A computation called after `name`, on its way into the module that `editor` edits."""

    def __init__(self, editor: Editor, name: str) -> None:
        self._editor = editor
        self._proto = editor.new_computation(name)
        self._first_id = self._proto.id << LOCAL_BITS
        self._members: dict[int, Instruction] = {}
        self._origins: dict[int, int] = {}
        self._parameters: list[Instruction] = []

    @property
    def id(self) -> int:
        return self._proto.id

    @property
    def result(self) -> ShapeProto:
        """Shape of what it computes, once it is finished."""
        return self._proto.program_shape.result

    def copy(self, source: Instruction, operands: Sequence[int]) -> int:
        """Put in a copy of `source` with other operands, which are in here. Returns its id."""
        made = self._proto.instructions.add()
        made.CopyFrom(source)
        made.operand_ids[:] = operands
        return self._name(made, source.name, source.id)

    def parameter(self, operand: Instruction) -> int:
        """Put in the next parameter, to be given what `operand` computes. Returns its id."""
        made = self._proto.instructions.add()
        made.opcode = "parameter"
        made.parameter_number = len(self._parameters)
        made.shape.CopyFrom(operand.shape)
        self._parameters.append(made)
        return self._name(made, f"{operand.name}.param", operand.id)

    def tuple(self, results: Sequence[int], named: Instruction) -> int:
        """Put in the tuple of several results, named after an instruction that comes of it. Returns its id."""
        made = self._proto.instructions.add(opcode="tuple", operand_ids=results)
        made.shape.CopyFrom(shapes.tuple_of(self._members[r].shape for r in results))
        return self._name(made, f"{named.name}.results", named.id)

    def finish(self, result: int) -> None:
        """Make `result` what it computes, and hand it to the editor."""
        self._proto.root_id = result
        program = self._proto.program_shape
        program.parameters.extend([p.shape for p in self._parameters])
        program.parameter_names.extend([p.name for p in self._parameters])
        program.result.CopyFrom(self._members[result].shape)
        self._editor.take(self._proto, self._members, self._origins)

    def _name(self, made: Instruction, name: str, origin: int) -> int:
        id_ = self._first_id | len(self._origins)
        made.id = id_
        made.name = self._editor.fresh_name(name)
        self._members[id_] = made
        self._origins[id_] = origin
        return id_
