"""Constants of a module as numpy arrays, and arrays as constants."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from engine.errors import UnsupportedError
from engine.hlo.hlo_pb2 import LiteralProto, PrimitiveType
from engine.ir import shapes

_LISTS = frozenset({"pred", "s32", "s64", "u32", "u64", "f32", "f64"})


def literal_array(literal: LiteralProto) -> npt.NDArray[Any]:
    """The values of an array literal, in its shape and type. Read-only.

    Raises UnsupportedError for tuples, for what numpy has no type for, and for values that were left out.
    """
    name = shapes.dtype_name(literal.shape.element_type)
    dtype = shapes.numpy_dtype(literal.shape.element_type)
    if name in _LISTS:
        values = np.array(getattr(literal, f"{name}s"), dtype)
    elif shapes.is_complex(literal.shape.element_type):
        pairs = np.array(getattr(literal, f"{name}s"), np.float64)
        values = (pairs[0::2] + 1j * pairs[1::2]).astype(dtype)
    else:
        # Types of a byte or less are kept one to a byte, the wider ones as in memory, little-endian.
        values = np.frombuffer(getattr(literal, f"{name}s"), dtype)
    dimensions = tuple(literal.shape.dimensions)
    if values.size != prod(dimensions):
        raise UnsupportedError(f"a constant {shapes.text(literal.shape)} holds {values.size} values")
    major_to_minor = [*literal.shape.layout.minor_to_major][::-1] or list(range(len(dimensions)))
    stored = values.reshape([dimensions[d] for d in major_to_minor])
    values = stored.transpose(np.argsort(major_to_minor)) if dimensions else stored
    values.setflags(write=False)
    return values


def literal_of(array: npt.NDArray[Any], element_type: PrimitiveType) -> LiteralProto:
    """The literal of an array, converted to `element_type`, in row-major order. Raises UnsupportedError as above."""
    literal = LiteralProto(shape=shapes.array(element_type, array.shape))
    values = array.astype(shapes.numpy_dtype(element_type)).ravel()
    name = shapes.dtype_name(element_type)
    if shapes.is_complex(element_type):
        pairs = np.stack([values.real, values.imag], axis=-1).ravel()
        getattr(literal, f"{name}s").extend(pairs.tolist())
    elif name in _LISTS:
        getattr(literal, f"{name}s").extend(values.tolist())
    else:
        setattr(literal, f"{name}s", values.tobytes())
    return literal
