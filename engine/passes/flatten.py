"""Makes one index of several that an einsum treats alike and that lie beside each other.

A TPU multiplies matrices: it writes further indices as spatial dimensions of a convolution, and pays for windows over
them. ``bsf,bsd->fd`` over a reshaped ``bs`` is a plain product of matrices.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar, Literal

from engine.hlo.hlo_pb2 import DotDimensionNumbers
from engine.ir import shapes
from engine.ir.build import Builder
from engine.ir.edit import Editor, Instruction
from engine.ir.einsum import Index, Role, read_einsum
from engine.ir.graphs import sequences
from engine.ir.module import Module
from engine.passes.passes import Context, Result


@dataclass(frozen=True)
class Flatten:
    """Reshapes the operands and results of dots so that neighbouring indices of one role become one.

    Reshapes that keep the order of elements cost nothing in most layouts. What is computed is the same, to the bit
    where the compiler multiplies the same way.
    """

    name: ClassVar[str] = "flatten"

    indices: Literal["contracting", "all"] = "contracting"
    """Which are merged: those summed over, or every role's."""

    def apply(self, module: Module, context: Context) -> Result:
        editor = Editor(module)
        roles = set(Role) if self.indices == "all" else {Role.CONTRACTING}
        merged = [_merge(editor, dot, roles) for dot in list(_dots(module))]
        context.control.step(1.0, self.name)
        return Result(editor.finish() if any(merged) else module)


def _dots(module: Module) -> Iterator[Instruction]:
    """Of computations that run as sequences: inside a fusion the compiler has decided already."""
    return (i for computation in sequences(module) for i in computation.instructions if i.opcode == "dot")


def _merge(editor: Editor, dot: Instruction, roles: set[Role]) -> bool:
    """Whether anything of `dot` could be merged, and was."""
    lhs, rhs = editor.operands(dot.id)
    runs = _runs(read_einsum(dot, lhs.shape, rhs.shape).indices, roles)
    if all(len(run) == 1 for run in runs):
        return False
    builder = Builder(editor, editor.computation_of(dot.id), dot, dot.id)
    at_lhs, at_rhs, at_out = (_places(runs, where) for where in ("lhs", "rhs", "out"))
    left = _reshaped(builder, lhs, [_size(runs[k]) for k in at_lhs])
    right = _reshaped(builder, rhs, [_size(runs[k]) for k in at_rhs])
    shape = shapes.with_dimensions(dot.shape, [_size(runs[k]) for k in at_out])
    flat = builder.clone(dot, shape, (left, right), "flat")
    numbers = DotDimensionNumbers()
    for number, run in enumerate(runs):
        if run[0].role is Role.BATCH:
            numbers.lhs_batch_dimensions.append(at_lhs.index(number))
            numbers.rhs_batch_dimensions.append(at_rhs.index(number))
        elif run[0].role is Role.CONTRACTING:
            numbers.lhs_contracting_dimensions.append(at_lhs.index(number))
            numbers.rhs_contracting_dimensions.append(at_rhs.index(number))
    flat.dot_dimension_numbers.CopyFrom(numbers)
    for predecessor in dot.control_predecessor_ids:
        editor.add_control(predecessor, flat.id)
    editor.replace_uses(dot.id, _reshaped(builder, flat, list(dot.shape.dimensions)).id)
    editor.remove_dead([dot.id])
    return True


Run = tuple[Index, ...]


def _runs(indices: Sequence[Index], roles: set[Role]) -> list[Run]:
    """The indices in groups that become one: of one role, beside each other and in the same order everywhere.

    Those that are summed over come in the left operand's order: which is first changes nothing.
    """
    runs: list[Run] = []
    for index in sorted(indices, key=lambda i: (i.lhs or 0) if i.role is Role.CONTRACTING else -1):
        if runs and index.role in roles and index.role is runs[-1][-1].role and _follows(runs[-1][-1], index):
            runs[-1] = (*runs[-1], index)
        else:
            runs.append((index,))
    return runs


def _follows(first: Index, second: Index) -> bool:
    places = ((first.lhs, second.lhs), (first.rhs, second.rhs), (first.out, second.out))
    return all(b == a + 1 if a is not None and b is not None else a is b for a, b in places)


def _places(runs: Sequence[Run], where: Literal["lhs", "rhs", "out"]) -> list[int]:
    """Numbers of the runs that occur in that array, in the order of its dimensions."""
    found = [(place, number) for number, run in enumerate(runs) if (place := getattr(run[0], where)) is not None]
    return [number for _, number in sorted(found)]


def _size(run: Run) -> int:
    return prod(index.size for index in run)


def _reshaped(builder: Builder, array: Instruction, sizes: list[int]) -> Instruction:
    return array if list(array.shape.dimensions) == sizes else builder.reshape(array, sizes)
