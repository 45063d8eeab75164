"""Constants rewritten: row-major, or with wider numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from engine.hlo import hlo_pb2
from engine.hlo.hlo_pb2 import LiteralProto, PrimitiveType
from engine.ir import shapes

_LISTS = frozenset({"preds", "s32s", "s64s", "u32s", "u64s", "f32s", "f64s"})


def literal_of(array: npt.NDArray[Any], element_type: PrimitiveType) -> LiteralProto:
    """The literal of an array, converted to `element_type`, in row-major order."""
    literal = LiteralProto(shape=shapes.array(element_type, array.shape))
    values = array.astype(shapes.numpy_dtype(element_type)).ravel()
    field = f"{shapes.dtype_name(element_type)}s"
    if element_type in (hlo_pb2.C64, hlo_pb2.C128):
        pairs = np.stack([values.real, values.imag], axis=-1).ravel()
        getattr(literal, field).extend(pairs.tolist())
    elif field in _LISTS:
        getattr(literal, field).extend(values.tolist())
    else:
        setattr(literal, field, values.tobytes())
    return literal
