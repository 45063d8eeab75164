"""Builds the `Graph` of a computation, and of every computation of a module that runs as a sequence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

import numpy as np
import numpy.typing as npt

from engine.hlo.hlo_pb2 import HloComputationProto
from engine.ir.graph import Csr, Graph, Ints
from engine.ir.module import Module

SEQUENTIAL = frozenset({"while", "conditional", "call"})
"""Opcodes whose called computations run as sequences of their own. Others (fusions, reducers, asynchronous wrappers)
are part of their caller's cost."""


def graphs_of(module: Module) -> Mapping[int, Graph]:
    """Graphs of the entry and of the loop bodies, conditions, branches and callees it reaches, callees first."""
    return {id_: graph_of(module, id_) for id_ in executed(module)}


def executed(module: Module) -> tuple[int, ...]:
    """Ids of the computations that run as sequences of their own, callees first and the entry last."""
    found: dict[int, None] = {}
    _visit(module, module.proto.entry_computation_id, found)
    return tuple(found)


def sequences(module: Module) -> Iterator[HloComputationProto]:
    """The computations that run as sequences of their own, in the module's order: no fusions, reducers, or what an
    asynchronous operation wraps."""
    there = frozenset(executed(module))
    return (computation for computation in module.proto.computations if computation.id in there)


def graph_of(module: Module, computation_id: int) -> Graph:
    """The graph of one computation, nodes numbered in the proto's (topological) order."""
    computation = module.computations[computation_id]
    instructions = list(computation.instructions)  # wrappers are made anew on every pass otherwise
    count = len(instructions)
    ids = np.fromiter((i.id for i in instructions), np.int64, count)
    opcodes = tuple(i.opcode for i in instructions)
    number = _Numbering(ids)
    operands = _csr((i.operand_ids for i in instructions), count, number)
    controls = _csr((i.control_predecessor_ids for i in instructions), count, number)
    called = _csr((i.called_computation_ids for i in instructions), count, None)
    consumer = _owners(operands)
    users = _distinct(operands.items, consumer, count)
    sources = np.concatenate([operands.items, controls.items])
    targets = np.concatenate([consumer, _owners(controls)])
    return Graph(
        computation=computation_id,
        name=computation.name,
        ids=_frozen(ids),
        names=tuple(i.name for i in instructions),
        opcodes=opcodes,
        operands=operands,
        users=users,
        controls=controls,
        predecessors=_distinct(targets, sources, count),
        successors=_distinct(sources, targets, count),
        called=called,
        partner=_frozen(_partners(opcodes, operands)),
        root=int(number.of(np.array([computation.root_id]))[0]),
        order=_order(module, computation, number),
    )


def _visit(module: Module, entry: int, found: dict[int, None]) -> None:
    """Post-order over calls, without recursion: a module may nest as deep as it likes."""
    stack = [(entry, False)]
    seen: set[int] = set()
    while stack:
        id_, callees_done = stack.pop()
        if callees_done:
            found[id_] = None
        elif id_ not in seen:
            seen.add(id_)
            stack.append((id_, True))
            for instruction in module.computations[id_].instructions:
                if instruction.opcode in SEQUENTIAL:
                    stack.extend((callee, False) for callee in instruction.called_computation_ids)


class _Numbering:
    """Instruction ids to node numbers."""

    def __init__(self, ids: Ints) -> None:
        self._order = np.argsort(ids, kind="stable")
        self._sorted = ids[self._order]

    def of(self, ids: Ints) -> Ints:
        numbers: Ints = self._order[np.searchsorted(self._sorted, ids)]
        return numbers


def _csr(rows: Iterable[Iterable[int]], count: int, number: _Numbering | None) -> Csr:
    lists = [list(row) for row in rows]
    starts = np.zeros(count + 1, np.int64)
    np.cumsum(np.fromiter(map(len, lists), np.int64, count), out=starts[1:])
    items = np.fromiter(chain.from_iterable(lists), np.int64, int(starts[-1]))
    return Csr(_frozen(starts), _frozen(items if number is None else number.of(items)))


def _owners(rows: Csr) -> Ints:
    """For every item the node whose row it is in."""
    return np.repeat(np.arange(len(rows.starts) - 1, dtype=np.int64), np.diff(rows.starts))


def _distinct(keys: Ints, values: Ints, count: int) -> Csr:
    """Rows by key with their distinct values, ascending."""
    pairs = np.sort(keys * count + values)  # np.unique hashes first, which takes four times as long here
    pairs = pairs[np.diff(pairs, prepend=-1) > 0]
    starts = np.searchsorted(pairs, np.arange(count + 1, dtype=np.int64) * count)
    return Csr(_frozen(starts.astype(np.int64)), _frozen(pairs % count if count else pairs))


def _partners(opcodes: tuple[str, ...], operands: Csr) -> Ints:
    """Starts and dones paired along the first operand; updates between them are passed through."""
    partner = np.full(len(opcodes), -1, np.int64)
    start_of: dict[int, int] = {}
    for node, opcode in enumerate(opcodes):
        if opcode in _UPDATES:
            start_of[node] = _first(operands, node, start_of)
        elif opcode in _DONES:
            start = _first(operands, node, start_of)
            if start >= 0 and opcodes[start] in _STARTS:
                partner[start], partner[node] = node, start
    return partner


def _first(operands: Csr, node: int, start_of: Mapping[int, int]) -> int:
    row = operands.of(node)
    return start_of.get(int(row[0]), int(row[0])) if len(row) else -1


_STARTS = frozenset(
    {"all-gather-start", "all-reduce-start", "async-start", "collective-permute-start", "copy-start", "recv", "send"}
)
_DONES = frozenset(
    {
        "all-gather-done",
        "all-reduce-done",
        "async-done",
        "collective-permute-done",
        "copy-done",
        "recv-done",
        "send-done",
    }
)
_UPDATES = frozenset({"async-update"})


def _order(module: Module, computation: HloComputationProto, number: _Numbering) -> Ints | None:
    """The module's schedule of the computation as node numbers."""
    sequences = module.proto.schedule.sequences
    if computation.id not in sequences:
        return None
    ids = np.array(sequences[computation.id].instruction_ids, np.int64)
    return _frozen(number.of(ids)) if len(ids) == len(computation.instructions) else None


def _frozen(array: npt.NDArray[np.int64]) -> Ints:
    array.flags.writeable = False
    return array
