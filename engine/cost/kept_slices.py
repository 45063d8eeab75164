"""All-reduces of whose sum every device keeps its own slice alone: compilers run them as reduce-scatters.

Partitioners write a reduce-scatter as an all-reduce and a dynamic-slice at the device's position. XLA's
ReduceScatterCreator, which the GPU pipeline runs, makes one of the two (`MatchReduceScatter` in
`xla/service/collective_opt_utils.cc`); the TPU compiler writes them as its fusion ``all-reduce-scatter``. To price
what no compiler will run would show that rewriting as a gain of decomposition.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from engine.errors import UnsupportedError
from engine.hlo.hlo_pb2 import HloInstructionProto
from engine.ir.flow import Flow
from engine.ir.groups import device_groups
from engine.ir.scalars import ElidedValueError, Scalars, UnknownValueError

_REDUCES = frozenset({"all-reduce", "all-reduce-start"})
_WAITS = frozenset({"all-reduce-done", "async-done", "async-update"})
_RESHAPES = frozenset({"bitcast", "reshape"})


def kept_in_slices(flow: Flow) -> frozenset[int]:
    """Ids of the all-reduces, or their starts, that compilers make reduce-scatters of.

    As XLA has it: of one array, with one reader, a dynamic-slice along one dimension, behind one reshape at most that
    leaves that dimension as it is; member j of every group keeps slice j. Where that happens is evaluated, not
    recognised, and passes may have put a start, a done or a fusion in between. A table that the text left out is taken
    to hold the positions, which is what partitioners write.
    """
    found = flow.module.by_opcode
    reduces = [i for opcode in _REDUCES for i in found.get(opcode, ()) if len(i.operand_ids) == 1]
    if not reduces:
        return frozenset()
    kept, scalars = _Kept(flow), Scalars(flow)
    return frozenset(i.id for i in reduces if kept.is_kept_in_slices(i, scalars))


def run_as(collective: HloInstructionProto, scattered: frozenset[int]) -> str:
    """Opcode, without start and done, of what compilers run where a module has `collective`, its start or its done.

    `scattered` are ids from `kept_in_slices`.
    """
    opcode = collective.opcode
    start = collective.operand_ids[0] if opcode == "all-reduce-done" else collective.id
    return "reduce-scatter" if start in scattered else opcode.removesuffix("-start").removesuffix("-done")


class _Kept:
    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._wrapping = {i.called_computation_ids[0]: i.id for i in flow.module.by_opcode.get("async-start", ())}

    def is_kept_in_slices(self, reduce: HloInstructionProto, scalars: Scalars) -> bool:
        part, reshaped = self._slice_of(reduce)
        if part is None:
            return False
        before, sizes = (self._flow.instructions[i.operand_ids[0]].shape.dimensions for i in (reduce, part))
        dims = [d for d, (own, whole) in enumerate(zip(part.dynamic_slice_sizes, sizes, strict=True)) if own < whole]
        if len(dims) != 1 or len(part.operand_ids) != 1 + len(sizes):
            return False
        (dim,) = dims
        if reshaped and not _is_left(dim, sizes, before):
            return False
        try:
            groups = device_groups(reduce, self._flow.module.header)
            starts = scalars.on_devices(part.operand_ids[1 + dim])
        except ElidedValueError:
            starts = None
        except (UnknownValueError, UnsupportedError):
            return False
        own, count = part.dynamic_slice_sizes[dim], len(groups[0])
        if count < 2 or own * count != sizes[dim] or any(len(group) != count for group in groups):
            return False
        wanted = own * np.arange(count)
        return starts is None or all(np.array_equal(starts[list(group)], wanted) for group in groups)

    def _slice_of(self, reduce: HloInstructionProto) -> tuple[HloInstructionProto | None, bool]:
        """The dynamic-slice that is all that reads a sum, and whether the sum is reshaped first."""
        flow, value, reshaped = self._flow, reduce.id, False
        while True:
            if value in flow.roots:
                value = self._wrapping.get(flow.computation(value), -1)
            reader = flow.only_reader(value)
            if reader is None:
                return None, False
            written = flow.instructions[reader]
            if written.opcode == "dynamic-slice" and value not in written.operand_ids[1:]:
                return written, reshaped
            if written.opcode == "fusion" and list(written.operand_ids).count(value) == 1:
                number = list(written.operand_ids).index(value)
                called = flow.module.computations[written.called_computation_ids[0]]
                value = next(
                    i.id for i in called.instructions if i.opcode == "parameter" and i.parameter_number == number
                )
            elif written.opcode in _WAITS or (written.opcode in _RESHAPES and not reshaped):
                reshaped |= written.opcode in _RESHAPES
                value = reader
            else:
                return None, False


def _is_left(dim: int, after: Sequence[int], before: Sequence[int]) -> bool:
    """Whether dimension `dim` of what a reshape makes is one of what it takes."""
    outer = prod(after[:dim])
    return any(prod(before[:k]) == outer and before[k] == after[dim] for k in range(len(before)))
