"""Fused equals unfused on devices, and the rewrites keep every element: NaN, infinities and the sign of zero too."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from engine.execute.verifying import verify
from engine.hlo.hlo_pb2 import HloModuleProto
from engine.hlo.reading import read_here
from engine.ir import shapes
from engine.ir.module import Module
from engine.passes.fuse.fuse import Fuse
from engine.passes.fuse.rewriting import rewrite
from engine.passes.passes import Context
from engine.session.evaluation import Evaluator
from engine.session.plan import Plan
from tests.element_types import element_type
from tests.engine.passes.fuse.jobs import Array, run
from tests.places import SAMPLES

DTYPES = (
    "f32", "f64", "bf16", "f16", "f8e5m2", "f8e4m3fn", "f8e4m3", "f8e3m4",
    "s8", "s16", "s32", "s64", "u8", "u16", "u32", "u64",
)  # fmt: skip


def joined(dtype: str, parts: int) -> Module:
    """A concatenation that one dot reads; the dot is there to make the rewrite worth it."""
    names = [f"p{k}" for k in range(parts)]
    shape = f"{dtype}[{2 * parts},4]{{1,0}}"
    lines = [f"  {n} = {dtype}[2,4]{{1,0}} parameter({k})" for k, n in enumerate(names)]
    text = f"""HloModule joined
ENTRY main {{
{chr(10).join(lines)}
  other = {shape} parameter({parts})
  whole = {shape} concatenate({", ".join(names)}), dimensions={{0}}
  ROOT p = {dtype}[{2 * parts},{2 * parts}] dot(whole, other), lhs_contracting_dims={{1}}, rhs_contracting_dims={{1}}
}}
"""
    return read_here(text.encode())


def operand_as_result(module: Module) -> Module:
    """The module that ends where the dot begins."""
    proto = HloModuleProto()
    proto.CopyFrom(module.proto)
    entry = proto.computations[-1]
    root = next(i for i in entry.instructions if i.id == entry.root_id)
    operand = next(i for i in entry.instructions if i.id == root.operand_ids[0])
    entry.root_id = operand.id
    kept = [i for i in entry.instructions if i.id != root.id]
    copies = [type(i).FromString(i.SerializeToString()) for i in kept]
    shape = type(operand.shape).FromString(operand.shape.SerializeToString())
    del entry.instructions[:]
    entry.instructions.extend(copies)
    entry.program_shape.result.CopyFrom(shape)
    proto.host_program_shape.result.CopyFrom(shape)
    return replace(module, proto=proto)


def special(dtype: str, seed: int) -> Array:
    """Values among which are all the odd ones that the type has, but for subnormal ones: devices may flush those."""
    kind = shapes.numpy_dtype(element_type(dtype))
    random = np.random.default_rng(seed)
    if shapes.is_floating(element_type(dtype)):
        odd = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 1.0, -1.0, 3e38, -3e38, 1e-3])
        with np.errstate(over="ignore", invalid="ignore"):
            return random.choice(odd, size=(2, 4)).astype(kind)
    info = np.iinfo(kind)
    return random.choice(np.array([info.min, info.max, 0, 1], kind), size=(2, 4))


@pytest.mark.parametrize("parts", [2, 3])
def test_joined_pads_are_the_concatenation_bit_by_bit(parts: int) -> None:
    modules, inputs, names = [], [], []
    for number, dtype in enumerate(DTYPES):
        module = joined(dtype, parts)
        rewritten = rewrite(module)
        opcodes = {i.opcode for i in rewritten.entry.instructions}
        assert "concatenate" not in opcodes, dtype
        given = [special(dtype, 10 * number + k) for k in range(parts)]
        other = np.zeros((2 * parts, 4), given[0].dtype)
        for made in (module, rewritten):
            modules.append(operand_as_result(made))
            inputs.append([*given, other])
        names.append(dtype)
    results = run(modules, inputs)
    for dtype, (expected,), (found,) in zip(names, results[::2], results[1::2], strict=True):
        wide, other = expected.astype(np.float64), found.astype(np.float64)
        np.testing.assert_array_equal(np.isnan(wide), np.isnan(other), dtype)
        real = ~np.isnan(wide)
        np.testing.assert_array_equal(expected[real], found[real], dtype)
        np.testing.assert_array_equal(np.signbit(wide)[real], np.signbit(other)[real], dtype)


def test_complex_numbers_stay_concatenated() -> None:
    module = joined("c64", 2)
    assert rewrite(module) is module


PLANS = ("fuse{policy=default}", "fuse{policy=overlap}", "decompose{gate=off},async-permute,fuse{policy=auto}")


@pytest.mark.parametrize("passes", PLANS)
@pytest.mark.parametrize("sample", ["mlp_fig3_train_2x2_f32", "decoder_fig2_scan_4_f32"])
def test_fused_equals_unfused(sample: str, passes: str) -> None:
    module = read_here((SAMPLES / f"{sample}.hlo").read_bytes())
    evaluator = Evaluator(module)
    fused = evaluator.transform(Plan(passes)).module
    assert any(i.opcode == "fusion" for i in fused.instructions.values())
    found = verify(module, fused)
    assert found.equal, str(found)


@pytest.mark.full
@pytest.mark.parametrize("passes", PLANS)
@pytest.mark.parametrize("path", [*sorted(SAMPLES.glob("*_f32.hlo")), *sorted(SAMPLES.glob("*_bf16.hlo"))], ids=str)
def test_every_sample_fused_equals_unfused(path: Path, passes: str) -> None:
    module = read_here(path.read_bytes())
    found = verify(module, Evaluator(module).transform(Plan(passes)).module)
    assert found.equal, str(found)


def test_unfused_equals_fused_too() -> None:
    module = read_here((SAMPLES / "mlp_fig2_train_4_f32.hlo").read_bytes())
    machine = Evaluator(module).machine
    fused = Fuse(policy="default").apply(module, Context(machine)).module
    names = tuple(i.name for i in fused.entry.instructions if i.opcode == "fusion")
    again = Fuse(policy="none", unfuse=names).apply(fused, Context(machine)).module
    found = verify(module, again)
    assert found.equal, str(found)
