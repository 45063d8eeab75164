"""Who reads what, and who waits for whom, kept true while instructions change."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from engine.hlo.hlo_pb2 import HloInstructionProto


class Edges:
    """Edges between `instructions`, which the owner changes together with them; built when first asked for."""

    def __init__(self, instructions: Mapping[int, HloInstructionProto]) -> None:
        self._instructions = instructions

    def users(self, instruction: int) -> tuple[int, ...]:
        """Distinct users, in the order in which they came to be."""
        return tuple(self._users.get(instruction, ()))

    def is_read(self, instruction: int) -> bool:
        """Whether it has a user."""
        return bool(self._users.get(instruction))

    def successors(self, instruction: int) -> tuple[int, ...]:
        """Those that wait for it by a control edge."""
        return tuple(self._successors.get(instruction, ()))

    def waiting(self) -> set[int]:
        """Those that wait for something by a control edge."""
        return {after for successors in self._successors.values() for after in successors}

    def add(self, instruction: HloInstructionProto) -> None:
        """An instruction has come, with the operands and control predecessors that it has."""
        for position, operand in enumerate(instruction.operand_ids):
            readers = self._users.setdefault(operand, {})
            readers[instruction.id] = (*readers.get(instruction.id, ()), position)
        for predecessor in instruction.control_predecessor_ids:
            self._successors.setdefault(predecessor, {})[instruction.id] = None

    def read(self, user: int, old: int, new: int) -> None:
        """Let `user` read `new` wherever it read `old`."""
        operands = self._instructions[user].operand_ids
        positions = self._users[old].pop(user)
        for position in positions:
            operands[position] = new
        readers = self._users.setdefault(new, {})
        readers[user] = (*readers.get(user, ()), *positions)

    def stop_reading(self, user: HloInstructionProto) -> tuple[int, ...]:
        """An instruction that is gone reads nothing any more; what it read, each once."""
        id_, users, operands = user.id, self._users, tuple(dict.fromkeys(user.operand_ids))
        for operand in operands:
            users[operand].pop(id_, None)
        return operands

    def wait(self, before: int, after: int) -> bool:
        """Let `after` wait for `before`; whether it did not before."""
        successors = self._successors.setdefault(before, {})
        if after in successors:
            return False
        successors[after] = None
        self._instructions[after].control_predecessor_ids.append(before)
        return True

    def stop_waiting(self, before: int, after: int) -> None:
        """Undo `wait`."""
        self._successors.get(before, {}).pop(after, None)
        proto = self._instructions.get(after)
        if proto is not None:
            proto.control_predecessor_ids[:] = [p for p in proto.control_predecessor_ids if p != before]

    @cached_property
    def _users(self) -> dict[int, dict[int, tuple[int, ...]]]:
        """By operand, by user, where among the user's operands it is: a large module's results are one tuple, which
        need not be looked through for each."""
        users: dict[int, dict[int, tuple[int, ...]]] = {}
        for user, instruction in self._instructions.items():
            for position, operand in enumerate(instruction.operand_ids):
                readers = users.get(operand)
                if readers is None:
                    users[operand] = {user: (position,)}
                elif user in readers:
                    readers[user] = (*readers[user], position)
                else:
                    readers[user] = (position,)
        return users

    @cached_property
    def _successors(self) -> dict[int, dict[int, None]]:
        successors: dict[int, dict[int, None]] = {}
        for instruction in self._instructions.values():
            for predecessor in instruction.control_predecessor_ids:
                successors.setdefault(predecessor, {})[instruction.id] = None
        return successors
