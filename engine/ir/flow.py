"""A module's data flow, looked up many times: who reads what, what contains what, and how often it runs.

What is asked for is built once, in time linear in the module or in one computation; the searches that follow touch
only what lies near a collective.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property

from engine.hlo.hlo_pb2 import HloComputationProto, HloInstructionProto
from engine.ir.graphs import SEQUENTIAL
from engine.ir.module import Module
from engine.ir.trips import trips_of


class Flow:
    """Read-only view of one module. Instructions are named by id."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.instructions: Mapping[int, HloInstructionProto] = module.instructions
        self.roots = frozenset(c.root_id for c in module.proto.computations)
        self._users: dict[int, Mapping[int, list[int]]] = {}

    @cached_property
    def opcodes(self) -> Mapping[int, str]:
        """Of every instruction; those of one opcode are together."""
        return {i.id: opcode for opcode, instructions in self.module.by_opcode.items() for i in instructions}

    @cached_property
    def operands(self) -> Mapping[int, tuple[int, ...]]:
        """Of every instruction, in the module's order."""
        return {id_: tuple(instruction.operand_ids) for id_, instruction in self.instructions.items()}

    @cached_property
    def order(self) -> Mapping[int, int]:
        """Place in the module's order: operands have smaller numbers than their users."""
        return {id_: place for place, id_ in enumerate(self.instructions)}

    def users(self, instruction: int) -> tuple[int, ...]:
        """Distinct users in the module's order."""
        computation = self.computation(instruction)
        users = self._users.get(computation)
        if users is None:
            users = self._users[computation] = _users(self.module.computations[computation])
        return tuple(users.get(instruction, ()))

    def only_reader(self, instruction: int) -> int | None:
        """The one user, if there is exactly one and the value is not a computation's result."""
        users = self.users(instruction)
        return users[0] if len(users) == 1 and instruction not in self.roots else None

    def computation(self, instruction: int) -> int:
        return self.module.computation_of[instruction]

    def name(self, instruction: int) -> str:
        return self.instructions[instruction].name

    @cached_property
    def callers(self) -> Mapping[int, tuple[int, ...]]:
        """Computation id → the while, call, conditional and fusion instructions that run it."""
        found: dict[int, list[int]] = {}
        callers = [i for opcode in (*SEQUENTIAL, "fusion") for i in self.module.by_opcode.get(opcode, ())]
        for caller in sorted(callers, key=lambda i: self.order[i.id]):
            for callee in caller.called_computation_ids:
                found.setdefault(callee, []).append(caller.id)
        return {k: tuple(v) for k, v in found.items()}

    @cached_property
    def trips(self) -> Mapping[int, int]:
        """Computation id → how often it runs in one execution of the entry; a branch counts as taken.

        Computations that do not run as sequences (reducers, fusions, asynchronous wrappers) are missing.
        """
        loops, _ = trips_of(self.module)
        runs: dict[int, int] = {self.module.proto.entry_computation_id: 1}
        for computation in reversed(self.module.proto.computations):
            callers = self.callers.get(computation.id, ())
            sequential = [c for c in callers if self.opcodes[c] in SEQUENTIAL and self.computation(c) in runs]
            if sequential:
                runs[computation.id] = sum(runs[self.computation(c)] * loops.get(c, 1) for c in sequential)
        return runs

    def ancestors(self, computation: int, marked: Iterable[int]) -> Mapping[int, int]:
        """For every instruction of `computation`, as a bit set, which of the `marked` ones it depends on.

        Bit k stands for the k-th of `marked`; control dependencies count; an instruction does not depend on itself.
        """
        bit = {id_: 1 << k for k, id_ in enumerate(marked)}
        found: dict[int, int] = {}
        for instruction in self.module.computations[computation].instructions:
            bits = 0
            for operand in self.operands[instruction.id]:
                bits |= found[operand] | bit.get(operand, 0)
            for operand in instruction.control_predecessor_ids:
                bits |= found[operand] | bit.get(operand, 0)
            found[instruction.id] = bits
        return found


def _users(computation: HloComputationProto) -> Mapping[int, list[int]]:
    """By instruction its distinct users, in the computation's order."""
    found: dict[int, list[int]] = {}
    for instruction in computation.instructions:
        id_ = instruction.id
        for operand in instruction.operand_ids:
            users = found.setdefault(operand, [])
            if not users or users[-1] != id_:
                users.append(id_)
    return found
