"""Random inputs stay where the program can use them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from engine.errors import InputError
from engine.execute.inputs import Draw, draw_inputs, load_inputs, widened
from engine.execute.legalize import legalize
from engine.execute.tracing import Leaf, uses_of
from engine.hlo.reading import read_here
from engine.ir import shapes
from engine.ir.module import Module
from tests.element_types import element_type
from tests.engine.execute.texts import program

TYPES = "pred s2 s4 s8 s16 s32 s64 u2 u4 u8 u16 u32 u64 f16 bf16 f32 f64 c64 c128 f8e4m3fn f8e5m2 f4e2m1fn"


def module(body: str, computations: str = "", header: str = "num_partitions=4") -> Module:
    return read_here(program(body, computations, header).encode())


def test_indices_stay_in_range_through_calls_loops_and_arithmetic() -> None:
    lookup = (
        "look {\n  t = f32[10,4] parameter(0)\n  i = s32[6,1] parameter(1)\n"
        "  ROOT g = f32[6,4] gather(t, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, "
        "index_vector_dim=1, slice_sizes={1,4}\n}\n"
    )
    made = module(
        "  t = f32[10,4] parameter(0)\n  ids = s32[6] parameter(1)\n  at = s32[] parameter(2)\n"
        "  free = s32[3] parameter(3)\n  column = s32[6,1] reshape(ids)\n"
        "  g = f32[6,4] fusion(t, column), kind=kLoop, calls=look\n  two = s32[] constant(2)\n"
        "  shifted = s32[] multiply(at, two)\n  zero = s32[] constant(0)\n"
        "  s = f32[2,4] dynamic-slice(g, shifted, zero), dynamic_slice_sizes={2,4}\n"
        "  ROOT r = (f32[2,4], s32[3]) tuple(s, free)",
        lookup,
    )
    uses = uses_of(legalize(made), 4)
    assert uses.index_limits == {Leaf(1, ()): 10, Leaf(2, ()): 5}
    drawn = draw_inputs(made.proto, made.header, uses, 0, Draw())
    assert all(piece.min() >= 0 and piece.max() < 10 for piece in drawn[1])
    assert all(0 <= piece < 5 for piece in drawn[2])
    assert all(piece.min() >= 0 and piece.max() < 8 for piece in drawn[3])


def test_a_partitioned_table_takes_indices_of_the_whole() -> None:
    made = module(
        "  t = f32[10,4] parameter(0)\n  ids = s32[6,1] parameter(1)\n  p = u32[] partition-id()\n"
        "  me = s32[] convert(p)\n  ten = s32[] constant(10)\n  o = s32[] multiply(me, ten)\n"
        "  b = s32[6,1] broadcast(o), dimensions={}\n  local = s32[6,1] subtract(ids, b)\n"
        "  ROOT g = f32[6,4] gather(t, local), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, "
        "index_vector_dim=1, slice_sizes={1,4}"
    )
    assert uses_of(legalize(made), 4).index_limits == {Leaf(1, ()): 40}


def test_einsum_operands_are_scaled_by_their_contraction() -> None:
    made = module(
        "  x = f32[4,1024] parameter(0)\n  w = f32[1024,8] parameter(1)\n  b = f32[8] parameter(2)\n"
        "  d = f32[4,8] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
        "  c = f32[4,8] broadcast(b), dimensions={1}\n  ROOT r = f32[4,8] add(d, c)"
    )
    uses = uses_of(legalize(made), 4)
    assert uses.fan_in == {Leaf(0, ()): 1024, Leaf(1, ()): 1024}
    drawn = draw_inputs(made.proto, made.header, uses, 0, Draw())
    assert float(np.std(drawn[1][0])) == pytest.approx(1 / 32, rel=0.1)


def test_who_holds_the_same_gets_the_same() -> None:
    made = module(
        "  whole = f32[8] parameter(0), sharding={replicated}\n"
        "  rows = f32[8] parameter(1), sharding={devices=[2,1,2]<=[4] last_tile_dim_replicate}\n"
        "  split = f32[8] parameter(2), sharding={devices=[4]<=[2,2]T(1,0)}\n"
        "  plain = f32[8] parameter(3)\n  scalar = f32[] parameter(4)\n"
        "  ROOT r = (f32[8], f32[8], f32[8], f32[8], f32[]) tuple(whole, rows, split, plain, scalar)"
    )
    drawn = draw_inputs(made.proto, made.header, uses_of(legalize(made), 4), 0, Draw())

    def alike(pieces: list[np.ndarray]) -> list[int]:
        return [next(k for k, other in enumerate(pieces) if np.array_equal(piece, other)) for piece in pieces]

    assert [alike(pieces) for pieces in drawn] == [[0] * 4, [0, 0, 2, 2], [0, 1, 2, 3], [0, 1, 2, 3], [0] * 4]


@pytest.mark.parametrize("name", TYPES.split())
def test_every_type_can_be_drawn_and_widened(name: str) -> None:
    made = module(f"  ROOT p = {name}[64] parameter(0)")
    drawn = draw_inputs(made.proto, made.header, uses_of(legalize(made), 4), 0, Draw())
    piece = drawn[0][0]
    assert piece.dtype == shapes.numpy_dtype(element_type(name))
    assert len({str(value) for value in piece}) > 1
    wide = widened(drawn)[0][0]
    assert np.array_equal(wide.astype(piece.dtype), piece)


def test_keys_use_every_bit() -> None:
    made = module("  ROOT p = u32[4] parameter(0)")
    drawn = draw_inputs(made.proto, made.header, uses_of(legalize(made), 4), 0, Draw())
    assert max(int(piece.max()) for piece in drawn[0]) > 2**24


def test_positive_inputs_are() -> None:
    made = module("  ROOT p = bf16[64] parameter(0)")
    drawn = draw_inputs(made.proto, made.header, uses_of(legalize(made), 4), 0, Draw(positive=True))
    assert all(float(piece.min()) > 0 for piece in drawn[0])


def given(tmp_path: Path, element: str, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """What the first device gets of `values` from a file, for a parameter of `element`s."""
    np.savez(tmp_path / "given.npz", p=values)
    made = module(f"  ROOT p = {element}[3] parameter(0)")
    return load_inputs(str(tmp_path / "given.npz"), made.proto, made.header)[0][0]


@pytest.mark.parametrize("name", ["bf16", "s4", "f8e4m3fn"])
def test_types_that_numpy_s_files_forget(tmp_path: Path, name: str) -> None:
    values = np.array([0, 1, 2]).astype(shapes.numpy_dtype(element_type(name)))
    found = given(tmp_path, name, values)
    assert (found.dtype, found.tobytes()) == (values.dtype, values.tobytes())


def test_given_values_are_rounded_but_never_others(tmp_path: Path) -> None:
    assert given(tmp_path, "bf16", np.array([1.0, 1.001, -3])).tolist() == [1.0, 1.0, -3.0]
    assert given(tmp_path, "s32", np.array([1.0, 2.0, -3.0])).tolist() == [1, 2, -3]
    assert given(tmp_path, "pred", np.array([0, 1, 1])).tolist() == [False, True, True]
    for name, values in (
        ("s32", np.array([0.5, 1, 2])),
        ("s32", np.array([1, 2, 2**40])),
        ("u8", np.array([1, 2, -1])),
        ("s32", np.array([1, 2, np.nan])),
        ("pred", np.array([0, 1, 2])),
    ):
        with pytest.raises(InputError, match=f"p: expected values that {name} holds, found others among its"):
            given(tmp_path, name, values)
    for values in (np.array([1j, 1, 2]), np.array(["a", "b", "c"]), np.zeros(3, "V3")):
        with pytest.raises(InputError, match="p: expected numbers that bf16 holds, found "):
            given(tmp_path, "bf16", values)
