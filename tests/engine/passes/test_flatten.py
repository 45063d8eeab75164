"""Indices become one where they lie beside each other in every array that has them; the numbers stay."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.chips.inference import machine_for
from engine.chips.library import load_chip
from engine.hlo.reading import read_here
from engine.ir.einsum import Role, read_einsum
from engine.ir.module import Module
from engine.passes.flatten import Flatten
from engine.passes.passes import Context
from engine.passes.pipeline import Pipeline
from tests.engine.passes.decompose.running import run


@dataclass(frozen=True)
class Product:
    """A dot as subscripts: ``bsf,fhd->bshd``; XLA's order of the result is batch, left, right."""

    lhs: str
    rhs: str
    batch: str
    contracting: str
    sizes: dict[str, int]

    @property
    def out(self) -> str:
        taken = self.batch + self.contracting
        return self.batch + "".join(i for i in self.lhs + self.rhs if i not in taken)

    def module(self) -> Module:
        def shape(indices: str) -> str:
            return f"f32[{','.join(str(self.sizes[i]) for i in indices)}]"

        def dims(indices: str, operand: str) -> str:
            return ",".join(str(operand.index(i)) for i in indices)

        numbers = []
        for name, indices in (("batch", self.batch), ("contracting", self.contracting)):
            if indices:
                numbers.append(f"lhs_{name}_dims={{{dims(indices, self.lhs)}}}")
                numbers.append(f"rhs_{name}_dims={{{dims(indices, self.rhs)}}}")
        text = f"""
HloModule m

ENTRY e {{
  p = {shape(self.lhs)} parameter(0)
  q = {shape(self.rhs)} parameter(1)
  d = {shape(self.out)} dot(p, q){"".join(f", {n}" for n in numbers)}, metadata={{op_name="d"}}
  ROOT r = {shape(self.out)} negate(d)
}}
"""
        return read_here(text.encode())


def flattened(module: Module, indices: str) -> Module:
    context = Context(machine_for(module, load_chip("tpu-v4")))
    return Pipeline.parse(f"flatten{{indices={indices}}}").run(module, context).module


def dimensions(module: Module) -> tuple[list[int], list[int], list[int]]:
    """Of the dot's operands and its result."""
    (dot,) = (i for i in module.instructions.values() if i.opcode == "dot")
    lhs, rhs = (module.instructions[o] for o in dot.operand_ids)
    return list(lhs.shape.dimensions), list(rhs.shape.dimensions), list(dot.shape.dimensions)


SIZES = {"b": 2, "s": 3, "f": 4, "h": 5, "d": 6, "k": 7}


@pytest.mark.parametrize(
    ("product", "indices", "expected"),
    [
        (Product("bsf", "bshd", "", "bs", SIZES), "contracting", ([6, 4], [6, 5, 6], [4, 5, 6])),
        (Product("bsf", "bshd", "", "bs", SIZES), "all", ([6, 4], [6, 30], [4, 30])),
        (Product("bsf", "fhd", "", "f", SIZES), "all", ([6, 4], [4, 30], [6, 30])),
        (Product("bhsk", "bhkd", "bh", "k", SIZES), "all", ([10, 3, 7], [10, 7, 6], [10, 3, 6])),
        # Not beside each other in the right operand, or in another order there.
        (Product("bsf", "bhsd", "", "bs", SIZES), "contracting", ([2, 3, 4], [2, 5, 3, 6], [4, 5, 6])),
        (Product("bsf", "sbd", "", "bs", SIZES), "contracting", ([2, 3, 4], [3, 2, 6], [4, 6])),
        # Which is summed over first does not matter.
        (Product("bsf", "bsd", "", "sb", SIZES), "contracting", ([6, 4], [6, 6], [4, 6])),
    ],
)
def test_neighbours_become_one(product: Product, indices: str, expected: tuple[list[int], ...]) -> None:
    assert dimensions(flattened(product.module(), indices)) == expected


def test_a_module_without_neighbours_stays_itself() -> None:
    module = Product("sf", "fd", "", "f", SIZES).module()
    assert flattened(module, "all") is module


@st.composite
def products(draw: st.DrawFn) -> Product:
    roles = {name: draw(st.sampled_from(list(Role))) for name in SIZES}
    lhs = [i for i in SIZES if roles[i] is not Role.RHS]
    rhs = [i for i in SIZES if roles[i] is not Role.LHS]
    if draw(st.booleans()):
        rhs = draw(st.permutations(rhs))
    batch = draw(st.permutations([i for i in SIZES if roles[i] is Role.BATCH]))
    contracting = draw(st.permutations([i for i in SIZES if roles[i] is Role.CONTRACTING]))
    return Product("".join(lhs), "".join(rhs), "".join(batch), "".join(contracting), SIZES)


@settings(max_examples=25, deadline=None)
@given(products(), st.sampled_from(["contracting", "all"]))
def test_numbers_and_work_stay(product: Product, indices: str) -> None:
    module = product.module()
    changed = flattened(module, indices)
    assert _flops(changed) == _flops(module)
    generator = np.random.default_rng(0)
    arrays = [
        generator.standard_normal([SIZES[i] for i in operand]).astype(np.float32)
        for operand in (product.lhs, product.rhs)
    ]
    expected = -np.einsum(f"{product.lhs},{product.rhs}->{product.out}", *arrays)
    ((got,),) = run(changed, [arrays])
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4)


def _flops(module: Module) -> int:
    (dot,) = (i for i in module.instructions.values() if i.opcode == "dot")
    lhs, rhs = (module.instructions[o].shape for o in dot.operand_ids)
    return read_einsum(dot, lhs, rhs).flops


def test_the_options_are_checked() -> None:
    assert str(Pipeline((Flatten(),))) == "flatten"
    assert str(Pipeline((Flatten(indices="all"),))) == "flatten{indices=all}"
