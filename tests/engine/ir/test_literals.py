"""Literals of every kind of type come out with their values, in their shape."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import UnsupportedError
from engine.hlo import hlo_pb2
from engine.hlo.hlo_pb2 import LiteralProto, PrimitiveType, ShapeProto
from engine.hlo.reading import read_here
from engine.ir.literals import literal_array, literal_of
from engine.ir.shapes import array, numpy_dtype
from tests.element_types import element_type

TYPES = """
pred s1 s2 s4 s8 s16 s32 s64 u1 u2 u4 u8 u16 u32 u64 f16 bf16 f32 f64 f4e2m1fn f8e5m2 f8e4m3 f8e4m3fn f8e4m3b11fnuz
f8e3m4 f8e5m2fnuz f8e4m3fnuz f8e8m0fnu c64 c128
"""


@pytest.mark.parametrize(
    ("element_type", "field", "held", "values"),
    [
        (hlo_pb2.S32, "s32s", [1, -2], np.array([1, -2], np.int32)),
        (hlo_pb2.U64, "u64s", [1, 2**63], np.array([1, 2**63], np.uint64)),
        (hlo_pb2.PRED, "preds", [True, False], np.array([True, False])),
        (hlo_pb2.F32, "f32s", [0.5, -1], np.array([0.5, -1], np.float32)),
        (hlo_pb2.C64, "c64s", [1, 2, 3, 4], np.array([1 + 2j, 3 + 4j], np.complex64)),
        (hlo_pb2.S8, "s8s", b"\x01\xff", np.array([1, -1], np.int8)),
        (hlo_pb2.U16, "u16s", b"\x01\x00\xff\xff", np.array([1, 65535], np.uint16)),
        (hlo_pb2.BF16, "bf16s", b"\x80\x3f\x00\x40", np.array([1, 2], ml_dtypes.bfloat16)),
        (hlo_pb2.S4, "s4s", b"\x01\x0e", np.array([1, -2], ml_dtypes.int4)),
    ],
)
def test_values(
    element_type: PrimitiveType, field: str, held: list[float] | bytes, values: npt.NDArray[np.generic]
) -> None:
    literal = LiteralProto(shape=array(element_type, (2,)), **{field: held})  # type: ignore[arg-type]  # by field name
    found = literal_array(literal)
    assert found.dtype == values.dtype
    assert found.tolist() == values.tolist()
    assert not found.flags.writeable


def test_scalars_and_layouts() -> None:
    assert literal_array(LiteralProto(shape=array(hlo_pb2.S32), s32s=[7])).shape == ()
    shape: ShapeProto = array(hlo_pb2.S32, (2, 3))
    shape.layout.minor_to_major[:] = [0, 1]
    assert literal_array(LiteralProto(shape=shape, s32s=[1, 4, 2, 5, 3, 6])).tolist() == [[1, 2, 3], [4, 5, 6]]


def test_left_out_values_and_tuples_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="holds 1 values"):
        literal_array(LiteralProto(shape=array(hlo_pb2.S32, (2,)), s32s=[1]))
    with pytest.raises(UnsupportedError, match="not an array"):
        literal_array(LiteralProto(shape=ShapeProto(element_type=hlo_pb2.TUPLE)))


def test_literals_are_written_as_xla_writes_them() -> None:
    for name in ("pred", "s8", "u8", "s32", "u64", "bf16", "f16", "f8e4m3fn", "f8e5m2", "f32", "f64", "c64", "s4"):
        literal = literal_of(np.array(0), element_type(name))
        written = "(0, 0)" if name.startswith("c") else "0"
        text = f"HloModule m\n\nENTRY e {{\n  ROOT r = {name}[] constant({written})\n}}\n"
        wanted = read_here(text.encode()).entry.instructions[0].literal
        assert literal.SerializeToString() == wanted.SerializeToString(), name


@pytest.mark.parametrize("name", TYPES.split())
@given(st.integers(0, 2**31), st.lists(st.integers(0, 3), max_size=3))
@settings(max_examples=10)
def test_a_literal_has_the_values_of_its_array(name: str, seed: int, sizes: list[int]) -> None:
    """In every type, shape and order of dimensions in memory."""
    dtype = numpy_dtype(element_type(name))
    values = np.random.default_rng(seed).integers(0, 2, sizes).astype(dtype)
    for given_array in (values, np.asfortranarray(values), values.T):
        literal = literal_of(given_array, element_type(name))
        found = literal_array(literal)
        assert (found.dtype, found.shape) == (dtype, given_array.shape)
        assert found.tobytes() == given_array.tobytes()
