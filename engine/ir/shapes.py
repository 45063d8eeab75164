"""Shapes: sizes in bytes, text forms, numpy types, and building protos of them.

Sizes count elements packed (an s4 takes four bits), without the padding of tiles: it is what transfers move and what
compute reads; the padding belongs to a compiler's layout, which a plan does not choose.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import prod
from types import MappingProxyType
from typing import Any

import ml_dtypes
import numpy as np

from engine.errors import UnsupportedError
from engine.hlo import hlo_pb2
from engine.hlo.hlo_pb2 import PrimitiveType, ShapeProto

TUPLE = hlo_pb2.TUPLE

_BITS = MappingProxyType(
    {
        hlo_pb2.PRED: 8,
        hlo_pb2.S1: 1,
        hlo_pb2.S2: 2,
        hlo_pb2.S4: 4,
        hlo_pb2.S8: 8,
        hlo_pb2.S16: 16,
        hlo_pb2.S32: 32,
        hlo_pb2.S64: 64,
        hlo_pb2.U1: 1,
        hlo_pb2.U2: 2,
        hlo_pb2.U4: 4,
        hlo_pb2.U8: 8,
        hlo_pb2.U16: 16,
        hlo_pb2.U32: 32,
        hlo_pb2.U64: 64,
        hlo_pb2.F16: 16,
        hlo_pb2.BF16: 16,
        hlo_pb2.F32: 32,
        hlo_pb2.F64: 64,
        hlo_pb2.F4E2M1FN: 4,
        hlo_pb2.F6E2M3FN: 6,
        hlo_pb2.F6E3M2FN: 6,
        hlo_pb2.F8E5M2: 8,
        hlo_pb2.F8E4M3: 8,
        hlo_pb2.F8E4M3FN: 8,
        hlo_pb2.F8E4M3B11FNUZ: 8,
        hlo_pb2.F8E3M4: 8,
        hlo_pb2.F8E5M2FNUZ: 8,
        hlo_pb2.F8E4M3FNUZ: 8,
        hlo_pb2.F8E8M0FNU: 8,
        hlo_pb2.C64: 64,
        hlo_pb2.C128: 128,
    }
)

_NUMPY: MappingProxyType[PrimitiveType, Any] = MappingProxyType(
    {
        hlo_pb2.PRED: np.bool_,
        hlo_pb2.S1: ml_dtypes.int1,
        hlo_pb2.S2: ml_dtypes.int2,
        hlo_pb2.S4: ml_dtypes.int4,
        hlo_pb2.S8: np.int8,
        hlo_pb2.S16: np.int16,
        hlo_pb2.S32: np.int32,
        hlo_pb2.S64: np.int64,
        hlo_pb2.U1: ml_dtypes.uint1,
        hlo_pb2.U2: ml_dtypes.uint2,
        hlo_pb2.U4: ml_dtypes.uint4,
        hlo_pb2.U8: np.uint8,
        hlo_pb2.U16: np.uint16,
        hlo_pb2.U32: np.uint32,
        hlo_pb2.U64: np.uint64,
        hlo_pb2.F16: np.float16,
        hlo_pb2.BF16: ml_dtypes.bfloat16,
        hlo_pb2.F32: np.float32,
        hlo_pb2.F64: np.float64,
        hlo_pb2.F4E2M1FN: ml_dtypes.float4_e2m1fn,
        hlo_pb2.F6E2M3FN: ml_dtypes.float6_e2m3fn,
        hlo_pb2.F6E3M2FN: ml_dtypes.float6_e3m2fn,
        hlo_pb2.F8E5M2: ml_dtypes.float8_e5m2,
        hlo_pb2.F8E4M3: ml_dtypes.float8_e4m3,
        hlo_pb2.F8E4M3FN: ml_dtypes.float8_e4m3fn,
        hlo_pb2.F8E4M3B11FNUZ: ml_dtypes.float8_e4m3b11fnuz,
        hlo_pb2.F8E3M4: ml_dtypes.float8_e3m4,
        hlo_pb2.F8E5M2FNUZ: ml_dtypes.float8_e5m2fnuz,
        hlo_pb2.F8E4M3FNUZ: ml_dtypes.float8_e4m3fnuz,
        hlo_pb2.F8E8M0FNU: ml_dtypes.float8_e8m0fnu,
        hlo_pb2.C64: np.complex64,
        hlo_pb2.C128: np.complex128,
    }
)

_FLOATING = frozenset(t for t in _BITS if PrimitiveType.Name(t).startswith(("F", "BF")))
_COMPLEX = frozenset({hlo_pb2.C64, hlo_pb2.C128})
_INTEGER = frozenset(t for t in _BITS if PrimitiveType.Name(t)[0] in "SU")


_NAMES = MappingProxyType(
    {t: PrimitiveType.Name(t).lower() for t in (*_BITS, hlo_pb2.TUPLE, hlo_pb2.TOKEN, hlo_pb2.BUFFER)}
    | {hlo_pb2.OPAQUE_TYPE: "opaque"}
)


def is_known(element_type: PrimitiveType) -> bool:
    """Whether this version knows the type; newer XLA may have others."""
    return element_type in _NAMES


def bits(element_type: PrimitiveType) -> int:
    """Bits of one element; 0 for tokens, opaques and tuples."""
    return _BITS.get(element_type, 0)


def dtype_name(element_type: PrimitiveType) -> str:
    """As HLO text writes it: ``bf16``, ``f8e4m3fn``, ``pred``; a type unknown to this version by its number."""
    return _NAMES.get(element_type, f"type{int(element_type)}")


def numpy_dtype(element_type: PrimitiveType) -> np.dtype[Any]:
    """The numpy type of one element (``ml_dtypes`` for what numpy lacks). Raises UnsupportedError if there is none."""
    found = _NUMPY.get(element_type)
    if found is None:
        raise UnsupportedError(f"{dtype_name(element_type)} is not an array type")
    dtype: np.dtype[Any] = np.dtype(found)
    return dtype


def is_floating(element_type: PrimitiveType) -> bool:
    return element_type in _FLOATING


def is_complex(element_type: PrimitiveType) -> bool:
    return element_type in _COMPLEX


def is_integer(element_type: PrimitiveType) -> bool:
    """Signed or unsigned; not pred."""
    return element_type in _INTEGER


def is_array(shape: ShapeProto) -> bool:
    """Neither a tuple nor a token, opaque or buffer."""
    return shape.element_type in _BITS


def is_tuple(shape: ShapeProto) -> bool:
    return shape.element_type == TUPLE


def element_count(shape: ShapeProto) -> int:
    """Elements of an array (a bounded dimension counts with its bound); of a tuple, the sum over its leaves."""
    if shape.tuple_shapes:
        return sum(element_count(s) for s in shape.tuple_shapes)
    return prod(shape.dimensions) if shape.element_type in _BITS else 0


def byte_count(shape: ShapeProto) -> int:
    """Bytes of an array, or of all leaves of a tuple (an array that appears twice counts twice)."""
    if shape.tuple_shapes:
        return sum(byte_count(s) for s in shape.tuple_shapes)
    return (prod(shape.dimensions) * _BITS.get(shape.element_type, 0) + 7) // 8


def memory_space(shape: ShapeProto) -> int:
    """Memory space of an array's layout: 0 is the default (HBM), others are the compiler's own."""
    return shape.layout.memory_space


def leaves(shape: ShapeProto, path: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], ShapeProto]]:
    """Every array, token and opaque of a shape with its index into the tuple, depth first."""
    if shape.element_type != TUPLE:
        yield path, shape
        return
    for k, part in enumerate(shape.tuple_shapes):
        yield from leaves(part, (*path, k))


def text(shape: ShapeProto) -> str:
    """As HLO prints it, without layout: ``bf16[2048,2048]``, ``(f32[8], s32[])``, ``f32[<=64]``."""
    if shape.element_type == TUPLE:
        return f"({', '.join(text(s) for s in shape.tuple_shapes)})"
    if shape.element_type == hlo_pb2.BUFFER:
        return f"b({', '.join(text(s) for s in shape.tuple_shapes)})"
    dynamic = shape.is_dynamic_dimension
    if any(dynamic):
        dimensions = ",".join(f"<={d}" if k else str(d) for d, k in zip(shape.dimensions, dynamic, strict=True))
    else:
        dimensions = ",".join(map(str, shape.dimensions))
    return f"{dtype_name(shape.element_type)}[{dimensions}]"


def array(element_type: PrimitiveType, dimensions: Iterable[int] = ()) -> ShapeProto:
    """An array shape with the default, row-major layout."""
    dims = list(dimensions)
    shape = ShapeProto(element_type=element_type, dimensions=dims, is_dynamic_dimension=[False] * len(dims))
    shape.layout.minor_to_major.extend(range(len(dims) - 1, -1, -1))
    shape.layout.tail_padding_alignment_in_elements = 1
    return shape


def with_dimensions(shape: ShapeProto, dimensions: Iterable[int]) -> ShapeProto:
    """An array of the same element type and other dimensions, with the default layout."""
    return array(shape.element_type, dimensions)


def tuple_of(shapes: Iterable[ShapeProto]) -> ShapeProto:
    """A tuple shape; the parts are copied."""
    return ShapeProto(element_type=TUPLE, tuple_shapes=list(shapes))


def same(a: ShapeProto, b: ShapeProto) -> bool:
    """Equal element types, dimensions and tuple structure; layouts are ignored."""
    if a.element_type != b.element_type or a.dimensions != b.dimensions or len(a.tuple_shapes) != len(b.tuple_shapes):
        return False
    return all(same(x, y) for x, y in zip(a.tuple_shapes, b.tuple_shapes, strict=True))
