"""One computation as fusion sees it: instructions by position, users, roles, and who waits for which transfer."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from engine.hlo.hlo_pb2 import HloComputationProto, HloInstructionProto
from engine.ir import shapes
from engine.passes.fuse.roles import Role, is_scalar_constant, role_of

_DONES = ("collective-permute-done", "all-gather-done", "all-reduce-done", "async-done", "recv-done", "copy-done")
_LOOK_BACK = 256
"""Instructions looked at for the dones that a value waits for: what lies further back has long arrived."""


class Body:
    """Positions 0..n-1 number the instructions in the computation's (topological) order."""

    def __init__(self, computation: HloComputationProto) -> None:
        self.computation = computation
        self.instructions: list[HloInstructionProto] = list(computation.instructions)
        self.at = {i.id: k for k, i in enumerate(self.instructions)}
        self.operands = [[self.at[o] for o in i.operand_ids] for i in self.instructions]
        self.controls = [[self.at[c] for c in i.control_predecessor_ids] for i in self.instructions]
        self.roles = [role_of(i) for i in self.instructions]
        self.users = _inverse(self.operands)
        self.root = self.at[computation.root_id]
        self.constants = [is_scalar_constant(i) for i in self.instructions]
        """Which instructions every reader may carry itself."""
        self._dones = frozenset(k for k, i in enumerate(self.instructions) if i.opcode in _DONES)
        self._arrivals: dict[int, tuple[int, ...]] = {}
        self.waits = bool(self._dones)
        """Whether anything in the body waits for a transfer."""
        for k, controls in enumerate(self.controls):
            # A fusion would have to carry the edge for one member only: leave both ends alone.
            if controls:
                self.roles[k] = Role.BARRIER
                for before in controls:
                    self.roles[before] = Role.BARRIER

    def __len__(self) -> int:
        return len(self.instructions)

    def size(self, node: int) -> int:
        """Bytes of the result."""
        return shapes.byte_count(self.instructions[node].shape)

    def arrivals_at(self, node: int) -> tuple[int, ...]:
        """The last dones that `node` waits for: those from which it is reached without another done in between.

        Latest first. Looks at no more than the `_LOOK_BACK` nearest instructions.
        """
        if not self.waits:
            return ()
        # Asked again for every fusion that reads the node, under every policy, and to put the result into words.
        known = self._arrivals.get(node)
        if known is None:
            known = self._arrivals[node] = self._look_for_dones(node)
        return known

    def _look_for_dones(self, node: int) -> tuple[int, ...]:
        found: list[int] = []
        heap = [-node]
        seen = {node}
        dones, operands = self._dones, self.operands
        for _ in range(_LOOK_BACK):
            if not heap:
                break
            top = -heapq.heappop(heap)
            if top in dones:
                found.append(top)
                continue
            for operand in operands[top]:
                if operand not in seen:
                    seen.add(operand)
                    heapq.heappush(heap, -operand)
        return tuple(found)

    def depends_on(self, node: int, before: int) -> bool:
        """Whether `node` comes after `before` on some path. Looks only at what lies between the two."""
        if node <= before:
            return node == before
        seen = {node}
        work = [node]
        while work:
            top = work.pop()
            for operand in (*self.operands[top], *self.controls[top]):
                if operand == before:
                    return True
                if operand > before and operand not in seen:
                    seen.add(operand)
                    work.append(operand)
        return False


def _inverse(rows: Sequence[Sequence[int]]) -> list[list[int]]:
    users: list[list[int]] = [[] for _ in rows]
    for node, row in enumerate(rows):
        for operand in dict.fromkeys(row):
            users[operand].append(node)
    return users
