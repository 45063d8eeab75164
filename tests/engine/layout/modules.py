"""Modules made from numbers, for the properties of outlines and layouts."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from engine.hlo import hlo_pb2
from engine.hlo.hlo_pb2 import HloComputationProto, HloModuleProto
from engine.ir import shapes
from engine.ir.module import Module


def module_of(rows: Sequence[tuple[str, Sequence[int]]], bodies: Sequence[int] = ()) -> Module:
    """One instruction a row, with its op_name and operand numbers (of earlier rows); ids are 100 + number.

    The rows named in `bodies` are fusions of two instructions.
    """
    entry = HloComputationProto(id=1, name="main")
    module = HloModuleProto(name="m", entry_computation_name="main", entry_computation_id=1)
    for number, (path, operands) in enumerate(rows):
        opcode = "parameter" if not operands else "fusion" if number in bodies else "add"
        made = entry.instructions.add(id=100 + number, name=f"{opcode}.{number}", opcode=opcode)
        made.operand_ids.extend(100 + o for o in operands)
        made.metadata.op_name = path
        made.shape.CopyFrom(shapes.array(hlo_pb2.F32, (8,)))
        if opcode == "fusion":
            body = module.computations.add(id=1000 + number, name=f"body.{number}", root_id=5001 + 10 * number)
            first = body.instructions.add(id=5000 + 10 * number, name=f"p.{number}", opcode="parameter")
            second = body.instructions.add(id=5001 + 10 * number, name=f"neg.{number}", opcode="negate")
            for inner in (first, second):
                inner.shape.CopyFrom(shapes.array(hlo_pb2.F32, (8,)))
            second.operand_ids.append(first.id)
            made.called_computation_ids.append(body.id)
    entry.root_id = 99 + len(rows)
    module.computations.append(entry)
    return Module(module)


@st.composite
def modules(draw: st.DrawFn, most: int = 120) -> Module:
    """A module whose op_names nest, and whose groups may depend on each other in circles."""
    count = draw(st.integers(1, most))
    words = st.sampled_from(("a", "b", "c"))
    rows: list[tuple[str, list[int]]] = []
    for number in range(count):
        path = "/".join([*draw(st.lists(words, max_size=3)), "op"])
        near = st.integers(max(0, number - 12), number - 1) if number else st.nothing()
        operands = draw(st.lists(near, max_size=3, unique=True)) if number else []
        rows.append((path, operands))
    bodies = draw(st.sets(st.integers(0, count - 1), max_size=6))
    return module_of(rows, tuple(bodies))
