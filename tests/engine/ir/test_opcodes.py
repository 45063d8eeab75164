"""Sets of opcodes name opcodes of XLA: a name that it does not know matches nothing, and nobody would notice."""

from __future__ import annotations

import pytest

from engine.cost.work import FREE
from engine.execute.tracing import MOVEMENTS
from engine.hlo import xla
from engine.hlo.operands import OPERAND_CHECKS
from engine.ir.aliasing import FORWARDING
from engine.ir.opcodes import COLLECTIVES, ELEMENTWISE
from engine.passes.fuse.clusters import BEFORE_EINSUM
from engine.passes.fuse.roles import EINSUMS, INDEXING, REPEATABLE

SETS = (
    FREE,
    MOVEMENTS,
    OPERAND_CHECKS.keys(),
    FORWARDING,
    COLLECTIVES,
    ELEMENTWISE,
    BEFORE_EINSUM,
    EINSUMS,
    INDEXING,
    REPEATABLE,
)


def is_known(opcode: str) -> bool:
    """By what the parser stumbles over first: the opcode, or the bracket that is not there."""
    shape = "(f32[2])" if opcode == "tuple" else "f32[2]"
    with pytest.raises(xla.XlaError) as refused:
        xla.parse(f"HloModule m\n\nENTRY e {{\n  ROOT x = {shape} {opcode} nothing\n}}\n")
    return all(said not in str(refused.value) for said in ("expects opcode", "Unknown opcode"))


@pytest.mark.parametrize("opcode", sorted(set().union(*SETS)))
def test_every_opcode_is_one_of_xla(opcode: str) -> None:
    assert is_known(opcode)


def test_what_is_no_opcode_is_noticed() -> None:
    assert not is_known("optimization-barrier")
