"""What a refusal on the way of a collective's blocks says of the instruction that it names."""

from __future__ import annotations

import pytest

from engine.hlo.reading import read_here
from engine.ir.flow import Flow
from engine.passes.decompose.find.tracing import path_operand
from engine.passes.decompose.refusal import Refusal


@pytest.mark.parametrize(
    ("operation", "said"),
    [
        ("f32[] negate(s)", r"n \(negate\) takes scalars alone"),
        ("f32[4] add(a, a)", r"n \(add\) takes several arrays"),
    ],
)
def test_what_it_takes_is_said_as_it_is(operation: str, said: str) -> None:
    text = f"HloModule m\nENTRY e {{\n s = f32[] parameter(0)\n a = f32[4] parameter(1)\n ROOT n = {operation}\n}}\n"
    module = read_here(text.encode())
    flow = Flow(module)
    with pytest.raises(Refusal, match=said):
        path_operand(flow, module.by_name["n"])
