"""Which collectives are alike: the same shapes, groups and einsums, and the same place in the program up to numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from engine.ir import shapes
from engine.ir.flow import Flow
from engine.passes.decompose.find.examining import Examined

_NUMBERS = re.compile(r"\d+")


def row_keys(flow: Flow, examined: Sequence[Examined]) -> Mapping[int, str]:
    """Collective id → key of its row: ``all-gather.1*`` after the first of several alike, its own name when alone."""
    alike: dict[object, list[Examined]] = {}
    for one in examined:
        alike.setdefault(_signature(flow, one), []).append(one)
    keys: dict[int, str] = {}
    for members in alike.values():
        first = flow.name(members[0].collective.id)
        keys.update({one.collective.id: f"{first}*" if len(members) > 1 else first for one in members})
    return keys


def _signature(flow: Flow, one: Examined) -> object:
    collective = one.collective
    written = collective.written
    return (
        one.kind,
        one.case,
        collective.opcode,
        _place(written.metadata.op_name),
        shapes.text(flow.instructions[collective.id].shape),
        tuple(shapes.text(flow.instructions[o].shape) for o in flow.operands[collective.start]),
        tuple(written.dimensions),
        _groups(one),
        tuple(_einsum(flow, e) for e in one.einsums),
    )


def _einsum(flow: Flow, einsum: int) -> object:
    written = flow.instructions[einsum]
    return (
        _place(written.metadata.op_name),
        written.dot_dimension_numbers.SerializeToString(),
        tuple(shapes.text(flow.instructions[i].shape) for i in (einsum, *flow.operands[einsum])),
    )


def _groups(one: Examined) -> object:
    if one.gather is not None:
        return one.gather.groups
    if one.scatter is not None:
        return one.scatter.groups
    return one.group_size


def _place(op_name: str) -> str:
    return _NUMBERS.sub("#", op_name)
