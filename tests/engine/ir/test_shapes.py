"""Sizes, names and builders of shapes, held against XLA's and numpy's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import UnsupportedError
from engine.hlo import hlo_pb2
from engine.hlo.hlo_pb2 import PrimitiveType, ShapeProto
from engine.hlo.reading import read_here
from engine.ir import shapes
from tests.element_types import element_type

NAMES = (
    "pred s1 s2 s4 s8 s16 s32 s64 u1 u2 u4 u8 u16 u32 u64 f16 bf16 f32 f64 c64 c128 f8e5m2 f8e4m3 f8e4m3fn "
    "f8e4m3b11fnuz f8e3m4 f8e5m2fnuz f8e4m3fnuz f8e8m0fnu f6e3m2fn f6e2m3fn f4e2m1fn"
)
ARRAYS = [element_type(name) for name in NAMES.split()]

arrays = st.builds(shapes.array, st.sampled_from(ARRAYS), st.lists(st.integers(0, 9), max_size=4))
any_shapes = st.recursive(arrays, lambda inner: st.lists(inner, max_size=3).map(shapes.tuple_of), max_leaves=6)


def parsed(text: str) -> ShapeProto:
    return (
        read_here(f"HloModule m\nENTRY e {{\n  ROOT p = {text} parameter(0)\n}}\n".encode()).entry.instructions[0].shape
    )


def test_every_array_type_is_there() -> None:
    others = {"PRIMITIVE_TYPE_INVALID", "TUPLE", "OPAQUE_TYPE", "TOKEN", "BUFFER"}
    assert {name.lower() for name in set(PrimitiveType.keys()) - others} == set(NAMES.split())


@pytest.mark.parametrize("number", ARRAYS)
def test_names_and_numpy_types(number: PrimitiveType) -> None:
    name = shapes.dtype_name(number)
    assert element_type(name) == number
    size = shapes.numpy_dtype(number).itemsize
    assert size == -(-shapes.bits(number) // 8)


@pytest.mark.parametrize("name", ["bf16", "f8e4m3b11fnuz", "s4", "pred", "c128", "u2"])
def test_names_are_xlas(name: str) -> None:
    shape = parsed(f"{name}[2,3]")
    assert shapes.text(shape) == f"{name}[2,3]"
    assert shape == shapes.array(element_type(name), (2, 3))


@pytest.mark.parametrize(
    ("text", "count", "elements"),
    [
        ("f32[]", 4, 1),
        ("f32[0,8]", 0, 0),
        ("bf16[2048,2048]", 8388608, 4194304),
        ("s4[7]", 4, 7),
        ("pred[9]", 9, 9),
        ("(f32[2], (s32[], token[]), u8[3])", 15, 6),
        ("f32[<=64]", 256, 64),
        ("()", 0, 0),
    ],
)
def test_sizes(text: str, count: int, elements: int) -> None:
    shape = parsed(text)
    assert shapes.text(shape) == text
    assert shapes.byte_count(shape) == count
    assert shapes.element_count(shape) == elements


def test_memory_space_and_tiles() -> None:
    shape = parsed("bf16[8,128]{1,0:T(8,128)(2,1)S(1)}")
    assert shapes.memory_space(shape) == 1
    assert shapes.byte_count(shape) == 2048
    assert shapes.text(shape) == "bf16[8,128]"
    assert shapes.same(shape, shapes.array(hlo_pb2.BF16, (8, 128)))


def test_leaves_have_their_paths() -> None:
    shape = parsed("(f32[2], (s32[], u8[3]))")
    assert [(path, shapes.text(leaf)) for path, leaf in shapes.leaves(shape)] == [
        ((0,), "f32[2]"),
        ((1, 0), "s32[]"),
        ((1, 1), "u8[3]"),
    ]


@given(any_shapes)
def test_a_tuple_is_the_sum_of_its_leaves(shape: ShapeProto) -> None:
    assert shapes.byte_count(shape) == sum(shapes.byte_count(leaf) for _, leaf in shapes.leaves(shape))
    assert shapes.same(shape, shape)


@given(arrays)
def test_bytes_of_an_array_are_numpys_where_bytes_are_whole(shape: ShapeProto) -> None:
    if shapes.bits(shape.element_type) % 8 == 0:
        dtype = shapes.numpy_dtype(shape.element_type)
        assert shapes.byte_count(shape) == np.zeros(list(shape.dimensions), dtype).nbytes


def test_kinds() -> None:
    assert shapes.is_floating(hlo_pb2.F8E5M2)
    assert not shapes.is_floating(hlo_pb2.C64)
    assert shapes.is_complex(hlo_pb2.C64)
    assert shapes.is_integer(hlo_pb2.U4)
    assert not shapes.is_integer(hlo_pb2.PRED)
    assert not shapes.is_array(hlo_pb2.ShapeProto(element_type=hlo_pb2.TOKEN))


def test_types_without_a_meaning_here() -> None:
    with pytest.raises(UnsupportedError, match="token is not an array type"):
        shapes.numpy_dtype(hlo_pb2.TOKEN)
