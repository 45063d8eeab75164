"""Which computation calls which, and how often, while instructions come and go."""

from __future__ import annotations

from collections.abc import Mapping

from engine.hlo.hlo_pb2 import HloInstructionProto


class Calls:
    """Counts the instructions that call each computation."""

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}
        self._callees: dict[int, dict[int, None]] = {}
        self._calling: set[int] = set()

    def add(self, computation: int, instruction: HloInstructionProto) -> None:
        """An instruction has come into `computation`."""
        called = instruction.called_computation_ids
        if not called:
            return
        self._calling.add(instruction.id)
        for callee in called:
            self._counts[callee] = self._counts.get(callee, 0) + 1
            self._callees.setdefault(computation, {})[callee] = None

    def has(self, instruction: int) -> bool:
        """Whether an instruction calls something, or did before it went."""
        return instruction in self._calling

    def remove(self, instruction: HloInstructionProto) -> None:
        """An instruction has gone."""
        if instruction.id not in self._calling:
            return
        for callee in instruction.called_computation_ids:
            self._counts[callee] -= 1

    def lost(self) -> list[int]:
        """Computations that were called and no longer are."""
        return [callee for callee, count in self._counts.items() if count == 0]

    def is_called(self, computation: int) -> bool:
        """Whether an instruction calls it; false for one that was never called, as an entry."""
        return self._counts.get(computation, 0) > 0

    def callees(self, alive: Mapping[int, object]) -> dict[int, list[int]]:
        """By caller what it calls, or has called, of the computations `alive`."""
        return {caller: [c for c in called if c in alive] for caller, called in self._callees.items()}
