"""What each opcode asks of its operands: how many, of which shape, and attributes that point inside them.

Not a type checker for HLO: it covers what XLA's parser accepts and its converters, compilers and our passes rely on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from types import MappingProxyType

from engine.hlo.hlo_pb2 import HloInstructionProto, ShapeProto
from engine.ir import shapes

Check = Callable[[HloInstructionProto, Sequence[ShapeProto]], Iterator[str]]

_UNARY = """
abs acos acosh asin asinh atanh cbrt ceil convert copy cosine cosh count-leading-zeros domain erf exponential
exponential-minus-one floor imag is-finite log log-plus-one logistic negate not opt-barrier popcnt real
reduce-precision round-nearest-afz round-nearest-even rsqrt sign sine sinh sqrt tan tanh
"""
_BINARY = """
add and atan2 compare complex divide maximum minimum mulhi multiply or power remainder shift-left shift-right-arithmetic
shift-right-logical subtract xor
"""


def _dims(shape: ShapeProto) -> list[int]:
    return list(shape.dimensions)


def _arity(instruction: HloInstructionProto, operands: Sequence[ShapeProto], *expected: int) -> Iterator[str]:
    if len(operands) not in expected:
        yield f"{instruction.opcode} takes {' or '.join(map(str, expected))} operands, found {len(operands)}"


def _counted(instruction: HloInstructionProto, operands: Sequence[ShapeProto], *, expected: int) -> Iterator[str]:
    yield from _arity(instruction, operands, expected)


def _elementwise(instruction: HloInstructionProto, operands: Sequence[ShapeProto], *, count: int) -> Iterator[str]:
    yield from _arity(instruction, operands, count)
    for k, operand in enumerate(operands):
        if _dims(operand) != _dims(instruction.shape):
            yield f"operand {k} is {shapes.text(operand)}, which does not fit {shapes.text(instruction.shape)}"


def _select(instruction: HloInstructionProto, operands: Sequence[ShapeProto]) -> Iterator[str]:
    """The predicate of a select, and the bounds of a clamp, may be scalars."""
    yield from _arity(instruction, operands, 3)
    may_be_scalar = (0,) if instruction.opcode == "select" else (0, 2)
    for k, operand in enumerate(operands):
        scalar = not operand.dimensions and k in may_be_scalar
        if not scalar and not shapes.is_tuple(operand) and _dims(operand) != _dims(instruction.shape):
            yield f"operand {k} is {shapes.text(operand)}, which does not fit {shapes.text(instruction.shape)}"


def _get_tuple_element(instruction: HloInstructionProto, operands: Sequence[ShapeProto]) -> Iterator[str]:
    yield from _arity(instruction, operands, 1)
    operand = operands[0]
    if not shapes.is_tuple(operand):
        yield f"its operand is {shapes.text(operand)}, expected a tuple"
        return
    index, size = instruction.tuple_index, len(operand.tuple_shapes)
    if not 0 <= index < size:
        yield f"index={index} is outside of its operand, a tuple of {size}"
    elif not shapes.same(operand.tuple_shapes[index], instruction.shape):
        element = shapes.text(operand.tuple_shapes[index])
        yield f"element {index} of its operand is {element}, its own shape {shapes.text(instruction.shape)}"


def _tuple(instruction: HloInstructionProto, operands: Sequence[ShapeProto]) -> Iterator[str]:
    parts = instruction.shape.tuple_shapes
    if not shapes.is_tuple(instruction.shape) or len(parts) != len(operands):
        yield f"its shape {shapes.text(instruction.shape)} is not a tuple of its {len(operands)} operands"
        return
    for k, (part, operand) in enumerate(zip(parts, operands, strict=True)):
        if not shapes.same(part, operand):
            yield f"element {k} of its shape is {shapes.text(part)}, operand {k} is {shapes.text(operand)}"


def _dot(instruction: HloInstructionProto, operands: Sequence[ShapeProto]) -> Iterator[str]:
    if len(operands) < 2:
        yield from _arity(instruction, operands, 2)
        return
    numbers = instruction.dot_dimension_numbers
    left, right = _dims(operands[0]), _dims(operands[1])
    sides = (
        ("lhs", left, numbers.lhs_contracting_dimensions, numbers.lhs_batch_dimensions),
        ("rhs", right, numbers.rhs_contracting_dimensions, numbers.rhs_batch_dimensions),
    )
    for side, dims, contracting, batch in sides:
        used = [*contracting, *batch]
        if any(not 0 <= d < len(dims) for d in used) or len(set(used)) != len(used):
            yield f"the {side} dimensions {used} are not distinct dimensions of {shapes.text(operands[side == 'rhs'])}"
            return
    for what, a, b in (
        ("contracting", numbers.lhs_contracting_dimensions, numbers.rhs_contracting_dimensions),
        ("batch", numbers.lhs_batch_dimensions, numbers.rhs_batch_dimensions),
    ):
        if [left[d] for d in a] != [right[d] for d in b] and len(operands) == 2:
            yield f"the {what} dimensions {[left[d] for d in a]} and {[right[d] for d in b]} differ in size"
            return
    free = [
        [size for d, size in enumerate(dims) if d not in contracting and d not in batch]
        for _, dims, contracting, batch in sides
    ]
    expected = [left[d] for d in numbers.lhs_batch_dimensions] + free[0] + free[1]
    if _dims(instruction.shape) != expected:
        yield f"its operands give dimensions {expected}, its shape is {shapes.text(instruction.shape)}"


def _convolution(instruction: HloInstructionProto, operands: Sequence[ShapeProto]) -> Iterator[str]:
    yield from _arity(instruction, operands, 2)
    numbers = instruction.convolution_dimension_numbers
    sides = (
        ("input", operands[0], numbers.input_batch_dimension, numbers.input_feature_dimension),
        ("kernel", operands[1], numbers.kernel_input_feature_dimension, numbers.kernel_output_feature_dimension),
        ("output", instruction.shape, numbers.output_batch_dimension, numbers.output_feature_dimension),
    )
    spatial = (numbers.input_spatial_dimensions, numbers.kernel_spatial_dimensions, numbers.output_spatial_dimensions)
    for (what, shape, first, second), rest in zip(sides, spatial, strict=True):
        if sorted([first, second, *rest]) != list(range(len(shape.dimensions))):
            named = [first, second, *rest]
            yield f"the {what} dimension numbers {named} are no permutation of the dimensions of {shapes.text(shape)}"
    if len(instruction.window.dimensions) != len(numbers.input_spatial_dimensions):
        yield "its window and its dimension numbers differ in the number of spatial dimensions"


def _reshape(instruction: HloInstructionProto, operands: Sequence[ShapeProto]) -> Iterator[str]:
    yield from _arity(instruction, operands, 1)
    before, after = shapes.element_count(operands[0]), shapes.element_count(instruction.shape)
    if before != after:
        yield f"its operand has {before} elements, its shape {shapes.text(instruction.shape)} has {after}"


def _broadcast(instruction: HloInstructionProto, operands: Sequence[ShapeProto]) -> Iterator[str]:
    yield from _arity(instruction, operands, 1)
    source, target, mapped = _dims(operands[0]), _dims(instruction.shape), list(instruction.dimensions)
    if len(mapped) != len(source):
        yield f"dimensions={mapped} does not name one dimension for each of {shapes.text(operands[0])}"
        return
    for size, d in zip(source, mapped, strict=True):
        if not 0 <= d < len(target) or target[d] != size:
            yield f"dimensions={mapped} does not map {shapes.text(operands[0])} into {shapes.text(instruction.shape)}"
            return


def _transpose(instruction: HloInstructionProto, operands: Sequence[ShapeProto]) -> Iterator[str]:
    yield from _arity(instruction, operands, 1)
    source, order = _dims(operands[0]), list(instruction.dimensions)
    if sorted(order) != list(range(len(source))):
        yield f"dimensions={order} is no permutation of the dimensions of {shapes.text(operands[0])}"
    elif [source[d] for d in order] != _dims(instruction.shape):
        yield f"its operand gives dimensions {[source[d] for d in order]}, its shape {shapes.text(instruction.shape)}"


def _slice(instruction: HloInstructionProto, operands: Sequence[ShapeProto]) -> Iterator[str]:
    yield from _arity(instruction, operands, 1)
    source, cuts = _dims(operands[0]), instruction.slice_dimensions
    if len(cuts) != len(source):
        yield f"it slices {len(cuts)} dimensions of {shapes.text(operands[0])}"
        return
    for size, cut in zip(source, cuts, strict=True):
        if not 0 <= cut.start <= cut.limit <= size or cut.stride < 1:
            yield f"[{cut.start}:{cut.limit}:{cut.stride}] is outside of {shapes.text(operands[0])}"
            return
    expected = [-(-(cut.limit - cut.start) // cut.stride) for cut in cuts]
    if expected != _dims(instruction.shape):
        yield f"its slice has dimensions {expected}, its shape is {shapes.text(instruction.shape)}"


def _dynamic_slice(instruction: HloInstructionProto, operands: Sequence[ShapeProto]) -> Iterator[str]:
    if not operands:
        yield from _arity(instruction, operands, 2)
        return
    yield from _indices(operands[0], operands[1:])
    source, sizes = _dims(operands[0]), list(instruction.dynamic_slice_sizes)
    if len(sizes) != len(source) or any(not 0 <= s <= d for s, d in zip(sizes, source, strict=False)):
        yield f"dynamic_slice_sizes={sizes} is no slice of {shapes.text(operands[0])}"
    elif sizes != _dims(instruction.shape):
        yield f"dynamic_slice_sizes={sizes} differs from its shape {shapes.text(instruction.shape)}"


def _dynamic_update_slice(instruction: HloInstructionProto, operands: Sequence[ShapeProto]) -> Iterator[str]:
    if len(operands) < 2:
        yield from _arity(instruction, operands, 3)
        return
    yield from _indices(operands[0], operands[2:])
    target, update = operands[0], operands[1]
    if _dims(target) != _dims(instruction.shape):
        yield f"its operand is {shapes.text(target)}, its shape {shapes.text(instruction.shape)}"
    fits = len(update.dimensions) == len(target.dimensions) and all(
        u <= t for u, t in zip(update.dimensions, target.dimensions, strict=False)
    )
    if not fits:
        yield f"the update {shapes.text(update)} does not fit into {shapes.text(target)}"


def _indices(array: ShapeProto, indices: Sequence[ShapeProto]) -> Iterator[str]:
    """Where a slice of `array` starts: a scalar for each dimension, or all of them in one vector."""
    rank = len(array.dimensions)
    vector = len(indices) == 1 and _dims(indices[0]) == [rank]
    if not vector and (len(indices) != rank or any(i.dimensions for i in indices)):
        yield f"expected {rank} scalar start indices for {shapes.text(array)}, found {len(indices)}"


def _concatenate(instruction: HloInstructionProto, operands: Sequence[ShapeProto]) -> Iterator[str]:
    result, axes = _dims(instruction.shape), list(instruction.dimensions)
    if len(axes) != 1 or not 0 <= axes[0] < len(result):
        yield f"dimensions={axes} is not one dimension of {shapes.text(instruction.shape)}"
        return
    axis = axes[0]
    for k, operand in enumerate(operands):
        dims = _dims(operand)
        if len(dims) != len(result) or any(
            a != b for d, (a, b) in enumerate(zip(dims, result, strict=True)) if d != axis
        ):
            yield f"operand {k} is {shapes.text(operand)}, which does not fit {shapes.text(instruction.shape)}"
            return
    total = sum(o.dimensions[axis] for o in operands)
    if total != result[axis]:
        yield f"its operands have {total} along dimension {axis}, its shape {shapes.text(instruction.shape)}"


def _pad(instruction: HloInstructionProto, operands: Sequence[ShapeProto]) -> Iterator[str]:
    yield from _arity(instruction, operands, 2)
    source, edges = _dims(operands[0]), instruction.padding_config.dimensions
    if len(edges) != len(source):
        yield f"it pads {len(edges)} dimensions of {shapes.text(operands[0])}"
        return
    expected = [
        size + edge.edge_padding_low + edge.edge_padding_high + max(size - 1, 0) * edge.interior_padding
        for size, edge in zip(source, edges, strict=True)
    ]
    if expected != _dims(instruction.shape):
        yield f"its padding gives dimensions {expected}, its shape is {shapes.text(instruction.shape)}"


def _reduce(instruction: HloInstructionProto, operands: Sequence[ShapeProto]) -> Iterator[str]:
    if not operands or len(operands) % 2:
        yield f"reduce takes arrays and as many initial values, found {len(operands)} operands"
        return
    source, reduced = _dims(operands[0]), list(instruction.dimensions)
    if any(not 0 <= d < len(source) for d in reduced) or len(set(reduced)) != len(reduced):
        yield f"dimensions={reduced} are not distinct dimensions of {shapes.text(operands[0])}"
        return
    expected = [size for d, size in enumerate(source) if d not in reduced]
    for _, leaf in shapes.leaves(instruction.shape):
        if _dims(leaf) != expected:
            yield f"its operand reduces to dimensions {expected}, its shape is {shapes.text(instruction.shape)}"
            return


def _named_dimensions(instruction: HloInstructionProto, operands: Sequence[ShapeProto]) -> Iterator[str]:
    """Dimensions that an attribute names exist (iota, reverse, sort)."""
    rank = len(next(shapes.leaves(instruction.shape), ((), instruction.shape))[1].dimensions)
    outside = [d for d in instruction.dimensions if not 0 <= d < rank]
    if outside:
        yield f"dimension {outside[0]} is none of {shapes.text(instruction.shape)}"


def _collective(instruction: HloInstructionProto, operands: Sequence[ShapeProto]) -> Iterator[str]:
    """all-gather, reduce-scatter, all-reduce, all-to-all and collective-permute in their blocking form."""
    results = [leaf for _, leaf in shapes.leaves(instruction.shape)]
    if not operands:
        yield f"{instruction.opcode} takes at least one operand"
        return
    if len(results) != len(operands):
        if instruction.opcode not in ("all-to-all", "collective-permute"):
            yield f"it has {len(operands)} operands and {len(results)} results"
        return
    for operand, result in zip(operands, results, strict=True):
        if shapes.is_array(operand):
            yield from _moved(instruction, operand, result)
    pairs = instruction.source_target_pairs
    for what, ids in (("source", [p.source for p in pairs]), ("target", [p.target for p in pairs])):
        twice = next((i for k, i in enumerate(ids) if i in ids[:k]), None) if len(set(ids)) != len(ids) else None
        if twice is not None:
            yield f"device {twice} is the {what} of more than one pair"
        if any(i < 0 for i in ids):
            yield f"a {what} is negative"


def _moved(instruction: HloInstructionProto, operand: ShapeProto, result: ShapeProto) -> Iterator[str]:
    before, after = _dims(operand), _dims(result)
    axis = instruction.dimensions[0] if len(instruction.dimensions) == 1 else None
    if instruction.opcode in ("all-gather", "reduce-scatter"):
        small, large = (before, after) if instruction.opcode == "all-gather" else (after, before)
        if axis is None or not 0 <= axis < len(before):
            yield f"dimensions={list(instruction.dimensions)} is not one dimension of {shapes.text(operand)}"
            return
        others = [k for k in range(len(small)) if k != axis]
        fits = len(small) == len(large) and all(small[k] == large[k] for k in others)
        if not fits or large[axis] % max(small[axis], 1):
            yield f"{shapes.text(operand)} and {shapes.text(result)} do not fit along dimension {axis}"
    elif instruction.opcode in ("all-reduce", "collective-permute") and before != after:
        yield f"its operand is {shapes.text(operand)}, its result {shapes.text(result)}"


def _start(instruction: HloInstructionProto, operands: Sequence[ShapeProto]) -> Iterator[str]:
    """Asynchronous starts whose shape is a tuple of operands, results and contexts."""
    if not shapes.is_tuple(instruction.shape) or len(instruction.shape.tuple_shapes) < 2:
        yield f"its shape is {shapes.text(instruction.shape)}, expected a tuple of operand, result and contexts"


def _done(instruction: HloInstructionProto, operands: Sequence[ShapeProto]) -> Iterator[str]:
    yield from _arity(instruction, operands, 1)
    if not shapes.is_tuple(operands[0]) and instruction.opcode != "all-reduce-done":
        yield f"its operand is {shapes.text(operands[0])}, expected the tuple of an asynchronous start"


def _device_id(instruction: HloInstructionProto, operands: Sequence[ShapeProto]) -> Iterator[str]:
    yield from _arity(instruction, operands, 0)
    if shapes.text(instruction.shape) != "u32[]":
        yield f"its shape is {shapes.text(instruction.shape)}, expected u32[]"


def _constant(instruction: HloInstructionProto, operands: Sequence[ShapeProto]) -> Iterator[str]:
    yield from _arity(instruction, operands, 0)
    if not shapes.same(instruction.literal.shape, instruction.shape):
        yield f"its value is {shapes.text(instruction.literal.shape)}, its shape {shapes.text(instruction.shape)}"


def _bitcast_convert(instruction: HloInstructionProto, operands: Sequence[ShapeProto]) -> Iterator[str]:
    yield from _arity(instruction, operands, 1)
    before, after = shapes.byte_count(operands[0]), shapes.byte_count(instruction.shape)
    if before != after:
        yield f"its operand has {before} bytes, its shape {shapes.text(instruction.shape)} has {after}"


BY_SHAPES = frozenset((*_UNARY.split(), *_BINARY.split(), "select", "clamp"))
"""Opcodes that are judged by their own and their operands' shapes, and by nothing else."""

OPERAND_CHECKS: MappingProxyType[str, Check] = MappingProxyType(
    {
        **dict.fromkeys(_UNARY.split(), partial(_elementwise, count=1)),
        **dict.fromkeys(_BINARY.split(), partial(_elementwise, count=2)),
        **dict.fromkeys(
            ("all-gather", "all-reduce", "all-to-all", "collective-permute", "reduce-scatter"), _collective
        ),
        **dict.fromkeys(("async-start", "collective-permute-start", "copy-start"), _start),
        **dict.fromkeys(
            (
                "all-gather-done",
                "all-reduce-done",
                "async-done",
                "async-update",
                "collective-permute-done",
                "copy-done",
            ),
            _done,
        ),
        **dict.fromkeys(("iota", "reverse", "sort"), _named_dimensions),
        **dict.fromkeys(("partition-id", "replica-id"), _device_id),
        **dict.fromkeys(("select", "clamp"), _select),
        "bitcast": partial(_counted, expected=1),
        "bitcast-convert": _bitcast_convert,
        "broadcast": _broadcast,
        "concatenate": _concatenate,
        "constant": _constant,
        "convolution": _convolution,
        "dot": _dot,
        "dynamic-slice": _dynamic_slice,
        "dynamic-update-slice": _dynamic_update_slice,
        "gather": partial(_counted, expected=2),
        "get-tuple-element": _get_tuple_element,
        "pad": _pad,
        "parameter": partial(_counted, expected=0),
        "reduce": _reduce,
        "reshape": _reshape,
        "slice": _slice,
        "transpose": _transpose,
        "tuple": _tuple,
    }
)
