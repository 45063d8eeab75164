"""Literals of every kind of type come out with their values, in their shape."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from engine.errors import UnsupportedError
from engine.hlo import hlo_pb2
from engine.hlo.hlo_pb2 import LiteralProto, PrimitiveType, ShapeProto
from engine.ir.literals import literal_array
from engine.ir.shapes import array


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
