"""Buffers of one computation: liveness seen through aliases, so that memory counts once and while it is needed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from engine.hlo.hlo_pb2 import HloInstructionProto, ShapeProto
from engine.ir import aliasing
from engine.ir.aliasing import Index
from engine.ir.buffers import Buffers
from engine.ir.graph import Csr, Graph
from engine.ir.module import Module
from engine.ir.shapes import byte_count, memory_space

Value = int | tuple["Value", ...]
"""The buffers of a shape: a number for an array (-1 for what takes no device memory), a tuple for a tuple."""

NOWHERE = -1


def buffers_of(module: Module, graph: Graph) -> Buffers:
    """The buffers of one computation of `module`; `graph` is that computation's.

    Counted are arrays in the default memory space, in packed bytes. An update is in place where the operand has no
    other reader (in a module that carries a schedule: none that comes later), or where the module says so; a loop's
    state likewise. Whatever else shares memory (an element-wise result that reuses its dead operand) is not modelled:
    both are live while the instruction runs.
    """
    return _Buffering(module, graph).run()


@dataclass
class _Buffering:
    module: Module
    graph: Graph
    sizes: list[int] = field(default_factory=list)
    definers: list[int] = field(default_factory=list)
    fixed: list[bool] = field(default_factory=list)
    given: list[bool] = field(default_factory=list)
    hazards: list[tuple[int, int]] = field(default_factory=list)
    """(reader, overwriting node)."""

    def run(self) -> Buffers:
        instructions = list(self.module.computations[self.graph.computation].instructions)
        self.instructions = instructions
        self.number = {i.id: k for k, i in enumerate(instructions)}
        self.users = [self.graph.users.of(k).tolist() for k in range(len(instructions))]
        self.position = self._positions()
        self.donated = self._donated()
        self.values: list[Value] = []
        reads: list[tuple[int, int]] = []
        for node, instruction in enumerate(instructions):
            self.values.append(self._value(node, instruction))
            if not self._forwards(instruction) and instruction.opcode not in {"get-tuple-element", "tuple"}:
                for operand in set(instruction.operand_ids):
                    reads.extend((buffer, node) for buffer in _flat(self.values[self.number[operand]]))
        live_out = np.zeros(len(self.sizes), np.bool_)
        results = list(_flat(self.values[self.graph.root]))
        live_out[results] = True
        if self.graph.computation in self.module.callees:
            # The caller has room for them from before the call on: they are what its instruction gives.
            for buffer in results:
                self.fixed[buffer] = True
        read = {buffer for buffer, _ in reads}.union(results)
        for buffer in np.flatnonzero(self.given).tolist():
            if buffer in read:
                reads.append((buffer, self.definers[buffer]))
            else:  # nothing marks a moment after which its memory would be free
                self.given[buffer], self.fixed[buffer] = False, True
        return _assemble(self, reads, live_out, len(instructions))

    def _positions(self) -> list[int]:
        """Where each node comes in the module's own order, else in the proto's."""
        n = len(self.graph)
        if self.graph.order is None:
            return list(range(n))
        position = np.empty(n, np.int64)
        position[self.graph.order] = np.arange(n)
        return [int(p) for p in position]

    def _donated(self) -> set[tuple[int, Index]]:
        if self.graph.computation != self.module.proto.entry_computation_id:
            return set()
        proto = self.module.proto
        aliased = {(e.parameter_number, tuple(e.parameter_shape_index)) for e in proto.input_output_alias.entries}
        donors = {(e.parameter_number, tuple(e.parameter_shape_index)) for e in proto.buffer_donor.entries}
        return aliased | donors

    def _new(self, node: int, shape: ShapeProto, fixed: bool = False) -> Value:
        """Buffers for a whole shape, defined by `node`."""
        if shape.tuple_shapes:
            return tuple(self._new(node, part, fixed) for part in shape.tuple_shapes)
        size = byte_count(shape)
        if not size or memory_space(shape):
            return NOWHERE
        self.sizes.append(size)
        self.definers.append(node)
        self.fixed.append(fixed)
        self.given.append(not fixed and self.instructions[node].opcode == "parameter")
        return len(self.sizes) - 1

    def _parameter(self, node: int, instruction: HloInstructionProto) -> Value:
        def visit(shape: ShapeProto, at: Index) -> Value:
            if shape.tuple_shapes:
                return tuple(visit(part, (*at, k)) for k, part in enumerate(shape.tuple_shapes))
            return self._new(node, shape, (instruction.parameter_number, at) not in self.donated)

        return visit(instruction.shape, ())

    def _forwards(self, instruction: HloInstructionProto) -> bool:
        """Whether the result is the first operand's memory, untouched."""
        if instruction.opcode in aliasing.FORWARDING:
            return True
        if instruction.opcode != "reshape":
            return False
        return aliasing.relabels(instruction, self.instructions[self.number[instruction.operand_ids[0]]])

    def _operand(self, instruction: HloInstructionProto, number: int) -> Value:
        return self.values[self.number[instruction.operand_ids[number]]]

    def _value(self, node: int, instruction: HloInstructionProto) -> Value:
        opcode = instruction.opcode
        if self._forwards(instruction):
            return self._operand(instruction, 0)
        match opcode:
            case "get-tuple-element":
                whole = self._operand(instruction, 0)
                return whole[instruction.tuple_index] if isinstance(whole, tuple) else NOWHERE
            case "tuple":
                return tuple(self._operand(instruction, k) for k in range(len(instruction.operand_ids)))
            case "parameter":
                return self._parameter(node, instruction)
            case "constant":
                return self._new(node, instruction.shape, fixed=True)
            case "while":
                return self._loop(node, instruction)
            case "call":
                return self._call(node, instruction)
            case "async-update":
                return self._operand(instruction, 0)
        if opcode in aliasing.RESULT_OF_DONE:
            return self._done(node, instruction)
        if opcode in aliasing.OPERAND_OF_START:
            return self._start(node, instruction)
        shared, must = aliasing.in_place_operands(instruction, self.module.computations.__getitem__)
        if not shared:
            return self._new(node, instruction.shape)
        return self._in_place(node, instruction, shared, must)

    def _done(self, node: int, instruction: HloInstructionProto) -> Value:
        value = self._operand(instruction, 0)
        try:
            found = _at(value, aliasing.RESULT_OF_DONE[instruction.opcode])
        except (IndexError, TypeError):
            return self._new(node, instruction.shape)
        if instruction.opcode == "recv-done":
            return (found, NOWHERE)
        return found

    def _start(self, node: int, instruction: HloInstructionProto) -> Value:
        shared, _ = aliasing.in_place_operands(instruction, self.module.computations.__getitem__)
        place = aliasing.OPERAND_OF_START[instruction.opcode]
        parts: list[Value] = []
        for k, part in enumerate(instruction.shape.tuple_shapes):
            if (k,) == place:
                parts.append(self._operands(instruction, part))
            elif (k,) in shared:
                parts.append(self._operand(instruction, shared[k,][0]))
            else:
                parts.append(self._new(node, part))
        return tuple(parts) if parts else self._new(node, instruction.shape)

    def _operands(self, instruction: HloInstructionProto, shape: ShapeProto) -> Value:
        """The operands as a start's tuple holds them: bare, or as a tuple in the generic form."""
        count = len(instruction.operand_ids)
        if shape.tuple_shapes and not (count == 1 and isinstance(self._operand(instruction, 0), tuple)):
            return tuple(self._operand(instruction, k) for k in range(min(count, len(shape.tuple_shapes))))
        return self._operand(instruction, 0)

    def _loop(self, node: int, instruction: HloInstructionProto) -> Value:
        """A loop works in its initial state's buffers, but for those that something else still needs: be it another
        element of the state, since each has a place of its own, unless the body leaves both as they are."""
        state = self._operand(instruction, 0)
        same = aliasing.forwarded(self.module.computations[instruction.called_computation_ids[0]])
        unchanged = {at for at, source in same.items() if source == (0, at)}
        kept = self.module.is_scheduled
        taken = {buffer for at in unchanged for buffer in _flat(_at(state, at))}

        def visit(shape: ShapeProto, value: Value, at: Index) -> Value:
            if at in unchanged:
                return value
            if isinstance(value, tuple):
                return tuple(visit(part, value[k], (*at, k)) for k, part in enumerate(shape.tuple_shapes[: len(value)]))
            if value == NOWHERE or kept:
                return value
            if value in taken or not self._may_overwrite(node, 0, at, must=False):
                return self._new(node, shape)
            taken.add(value)
            return value

        return visit(instruction.shape, state, ())

    def _call(self, node: int, instruction: HloInstructionProto) -> Value:
        same = aliasing.forwarded(self.module.computations[instruction.called_computation_ids[0]])

        def visit(shape: ShapeProto, at: Index) -> Value:
            if at in same:
                number, index = same[at]
                return _at(self._operand(instruction, number), index)
            if shape.tuple_shapes:
                return tuple(visit(part, (*at, k)) for k, part in enumerate(shape.tuple_shapes))
            return self._new(node, shape)

        return visit(instruction.shape, ())

    def _in_place(
        self, node: int, instruction: HloInstructionProto, shared: dict[Index, tuple[int, Index]], must: bool
    ) -> Value:
        taken: set[int] = set()

        def visit(shape: ShapeProto, at: Index) -> Value:
            if at in shared and self._may_overwrite(node, *shared[at], must=must):
                number, index = shared[at]
                value = _at(self._operand(instruction, number), index)
                if must or taken.isdisjoint(_flat(value)):  # one operand has room for one result
                    taken.update(_flat(value))
                    return value
            if shape.tuple_shapes:
                return tuple(visit(part, (*at, k)) for k, part in enumerate(shape.tuple_shapes))
            return self._new(node, shape)

        return visit(instruction.shape, ())

    def _may_overwrite(self, node: int, operand: int, index: Index, *, must: bool) -> bool:
        """Whether `node` may write into its operand's buffer; notes the readers that must come first."""
        source, at = self._source(self.number[self.instructions[node].operand_ids[operand]], index)
        instruction = self.instructions[source]
        if instruction.opcode == "constant":
            return False
        entry = self.graph.computation == self.module.proto.entry_computation_id
        if instruction.opcode == "parameter" and entry and (instruction.parameter_number, at) not in self.donated:
            return False
        readers, escapes = self._readers(source, at)
        # A start's own done waits for what the start does, and needs nothing of the operand afterwards.
        own = {node, int(self.graph.partner[node])} if self.graph.is_start(node) else {node}
        others = readers - own
        if not others and not escapes:
            return True
        if escapes or not (must or self.module.is_scheduled):
            return False
        if any(self.position[r] > self.position[node] for r in others):
            return False
        self.hazards.extend((r, node) for r in others)
        return True

    def _source(self, node: int, index: Index) -> tuple[int, Index]:
        """The node that made a value, seen through tuples and bitcasts."""
        while True:
            instruction = self.instructions[node]
            if instruction.opcode == "get-tuple-element":
                index = (instruction.tuple_index, *index)
            elif instruction.opcode == "tuple" and index:
                node, index = self.number[instruction.operand_ids[index[0]]], index[1:]
                continue
            elif not self._forwards(instruction):
                return node, index
            node = self.number[instruction.operand_ids[0]]

    def _readers(self, source: int, at: Index) -> tuple[set[int], bool]:
        """Nodes that read a value (for a start also its done), and whether it is part of the computation's result."""
        readers: set[int] = set()
        escapes = False
        stack: list[tuple[int, Index]] = [(source, at)]
        seen: set[tuple[int, Index]] = set()
        while stack:
            here = stack.pop()
            if here in seen:
                continue
            seen.add(here)
            node, index = here
            escapes = escapes or node == self.graph.root
            for user in self.users[node]:
                instruction = self.instructions[user]
                if instruction.opcode == "get-tuple-element":
                    if index and instruction.tuple_index == index[0]:
                        stack.append((user, index[1:]))
                elif instruction.opcode == "tuple":
                    uses = [k for k, o in enumerate(instruction.operand_ids) if self.number[o] == node]
                    stack.extend((user, (k, *index)) for k in uses)
                elif self._forwards(instruction):
                    stack.append((user, index))
                else:
                    readers.add(user)
                    if self.graph.is_start(user):
                        readers.add(int(self.graph.partner[user]))
        return readers, escapes


def _at(value: Value, index: Index) -> Value:
    for k in index:
        if not isinstance(value, tuple):
            return NOWHERE
        value = value[k]
    return value


def _flat(value: Value) -> Iterable[int]:
    """Buffer numbers of a value, without those that take no memory."""
    if isinstance(value, tuple):
        for part in value:
            yield from _flat(part)
    elif value != NOWHERE:
        yield value


def _csr(rows: int, pairs: np.ndarray[tuple[int, int], np.dtype[np.int64]]) -> Csr:
    """Distinct pairs (row, item), shape [p, 2], as a CSR with ascending items."""
    if len(pairs):
        pairs = np.unique(pairs, axis=0)
    starts = np.zeros(rows + 1, np.int64)
    np.cumsum(np.bincount(pairs[:, 0], minlength=rows), out=starts[1:])
    items = np.ascontiguousarray(pairs[:, 1])
    starts.flags.writeable = items.flags.writeable = False
    return Csr(starts, items)


def _assemble(
    found: _Buffering, reads: list[tuple[int, int]], live_out: np.ndarray[tuple[int], np.dtype[np.bool_]], nodes: int
) -> Buffers:
    size = np.array(found.sizes, np.int64)
    node = np.array(found.definers, np.int64)
    live_in, given = np.array(found.fixed, np.bool_), np.array(found.given, np.bool_)
    read = np.array(reads, np.int64).reshape(-1, 2)
    defined = np.stack([node, np.arange(len(node), dtype=np.int64)], axis=1)
    touched = np.concatenate([read[:, ::-1], defined])
    hazards = np.array(found.hazards, np.int64).reshape(-1, 2)
    for array in (size, node, live_in, live_out, given):
        array.flags.writeable = False
    return Buffers(
        size=size,
        node=node,
        readers=_csr(len(size), read),
        touches=_csr(nodes, touched),
        live_in=live_in,
        live_out=live_out,
        overwrites=_csr(nodes, hazards[:, ::-1]) if len(hazards) else None,
        given=given if given.any() else None,
    )
