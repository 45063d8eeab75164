"""The dots and convolutions of a module as einsums, each read once."""

from __future__ import annotations

from engine.ir.einsum import Einsum, NotAnEinsumError, read_einsum
from engine.ir.flow import Flow
from engine.passes.decompose.refusal import Refusal

EINSUMS = frozenset({"dot", "convolution"})
"""Opcodes that may compute one."""


class Einsums:
    """What was read, or why it is no einsum, by instruction."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._known: dict[int, Einsum | str] = {}

    def read(self, instruction: int) -> Einsum:
        """The einsum that a dot or convolution computes. Raises Refusal for a true convolution."""
        known = self._known.get(instruction)
        if known is None:
            written = self._flow.instructions[instruction]
            lhs, rhs = (self._flow.instructions[o].shape for o in written.operand_ids[:2])
            try:
                known = read_einsum(written, lhs, rhs)
            except NotAnEinsumError as error:
                known = f"{written.name} is a {error}"
            self._known[instruction] = known
        if isinstance(known, str):
            raise Refusal(known)
        return known
