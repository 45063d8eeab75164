"""Finds instructions of a variant by id or name without touching the others.

A module's own maps make a Python object for every instruction, which takes the window a noticeable moment for a
module of a hundred thousand. Here the graphs' columns are searched; what they hold runs on a timeline.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from engine.hlo.hlo_pb2 import HloInstructionProto
from engine.ir.graph import Graph, Ints
from engine.session.variant import Variant


class Lookup:
    """The scheduled instructions of one variant."""

    def __init__(self, variant: Variant) -> None:
        self._module = variant.program.module
        self._graphs = tuple(variant.program.graphs.values())
        ids = [graph.ids for graph in self._graphs]
        every = np.concatenate(ids) if ids else np.empty(0, np.int64)
        owner = np.repeat(np.arange(len(ids)), [len(part) for part in ids])
        node = np.concatenate([np.arange(len(part)) for part in ids]) if ids else every
        order = np.argsort(every, kind="stable")
        self._ids: Ints = every[order]
        self._owner: Ints = owner[order]
        self._node: Ints = node[order]

    def __contains__(self, instruction: int) -> bool:
        return self.place(instruction) is not None

    def place(self, instruction: int) -> tuple[Graph, int] | None:
        """The graph that holds an instruction, and its node number."""
        at = int(np.searchsorted(self._ids, instruction))
        if at == len(self._ids) or self._ids[at] != instruction:
            return None
        return self._graphs[int(self._owner[at])], int(self._node[at])

    def name(self, instruction: int) -> str:
        """Empty for instructions that are not scheduled."""
        found = self.place(instruction)
        return found[0].names[found[1]] if found is not None else ""

    def opcode(self, instruction: int) -> str:
        found = self.place(instruction)
        return found[0].opcodes[found[1]] if found is not None else ""

    def proto(self, instruction: int) -> HloInstructionProto | None:
        """The instruction itself. Node k is the k-th instruction of its computation."""
        found = self.place(instruction)
        if found is None:
            return None
        return self._module.instruction_at(found[0].computation, found[1])

    def by_name(self, name: str) -> int | None:
        """Id of the instruction of that name."""
        for graph in self._graphs:
            if name in graph.names:
                return int(graph.ids[graph.names.index(name)])
        return None


@lru_cache(maxsize=64)
def lookup(variant: Variant) -> Lookup:
    """The lookup of a variant, kept for those seen last."""
    return Lookup(variant)
