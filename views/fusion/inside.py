"""The inside of a fusion as a small graph: what it holds, what comes from outside, and which of that arrives late."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from engine.hlo.hlo_pb2 import HloComputationProto, HloInstructionProto, HloModuleProto
from engine.ir.graph import Graph
from engine.ir.module import Header, Module
from engine.layout.outline import Bytes, Look, Outline
from engine.layout.outlining import outline_of
from engine.layout.picture import Picture, picture_of
from engine.passes.fusion import Fusion
from engine.session.lookup import lookup
from engine.session.variant import Variant

MOST = 90
"""Instructions of a fusion that are drawn."""
LATE = len(Look)
"""Number of a node for a transfer that the fusion's einsum does not need."""
_MOST_VISITED = 2_000


@dataclass(frozen=True, eq=False)
class Inside:
    """A laid out graph; `number` is the `Look` of each item of the outline, or `LATE`."""

    outline: Outline
    picture: Picture
    number: Bytes
    einsum: int
    """Item of the einsum, -1 where there is none."""
    outside: frozenset[int]
    """Items that the fusion does not hold."""


def inside_of(variant: Variant, fusion: Fusion) -> Inside | None:
    """The graph of one decision; None where its instruction is not scheduled, or it holds more than `MOST`."""
    place = lookup(variant).place(fusion.instruction)
    proto = lookup(variant).proto(fusion.instruction)
    if place is None or proto is None:
        return None
    held = _held(variant.program.module, proto)
    if len(held) > MOST:
        return None
    graph, node = place
    operands = [int(graph.ids[n]) for n in dict.fromkeys(graph.operands.of(node).tolist())]
    arrivals = {operand: _arrivals(graph, operand, fusion) for operand in operands}
    made = _drawn(variant, proto, held, arrivals)
    outline = outline_of(Module(HloModuleProto(entry_computation_id=1, computations=[made]), Header()))
    inner = {i.id for i in held}
    outside = frozenset(n for n, i in enumerate(outline.instruction.tolist()) if i >= 0 and i not in inner)
    waited = {done for dones in arrivals.values() for done in dones}
    number = outline.look.copy()
    for item in outside:
        number[item] = _number(outline.names[item], fusion, waited)
    einsum = next((n for n, name in enumerate(outline.names) if name == fusion.einsum and n not in outside), -1)
    if einsum < 0:  # inside, instructions may have other names than in the module that the pass was given
        einsum = next((n for n in np.flatnonzero(outline.look == Look.EINSUM).tolist() if n not in outside), -1)
    details = tuple(_detail(n, text, fusion, outline, outside) for n, text in enumerate(outline.details))
    outline = replace(outline, details=details)
    return Inside(outline, picture_of(outline), number, einsum, outside)


def _held(module: Module, proto: HloInstructionProto) -> list[HloInstructionProto]:
    """Instructions inside, without parameters; the instruction itself where it was left apart."""
    if proto.opcode != "fusion":
        return [proto]
    return [i for i in module.computation_at(proto.called_computation_ids[0]).instructions if i.opcode != "parameter"]


def _drawn(
    variant: Variant,
    proto: HloInstructionProto,
    held: Iterable[HloInstructionProto],
    arrivals: Mapping[int, tuple[str, ...]],
) -> HloComputationProto:
    """A computation of what is drawn: transfers, then what comes from outside, then what is held."""
    there = lookup(variant)
    made = HloComputationProto(id=1, name="inside")
    dones: dict[str, int] = {}
    for operand, names in arrivals.items():
        needed: list[int] = []
        for name in names[:1]:
            if name != there.name(operand):
                number = there.by_name(name)
                if number is not None and name not in dones:
                    dones[name] = number
                    made.instructions.append(_outer(there.proto(number), ()))
                needed.extend(dones[name] for _ in range(number is not None))
        if operand not in dones.values():
            made.instructions.append(_outer(there.proto(operand), needed))
    passed: dict[int, int] = {}
    if proto.opcode == "fusion":
        called = variant.program.module.computation_at(proto.called_computation_ids[0])
        passed = {i.id: proto.operand_ids[i.parameter_number] for i in called.instructions if i.opcode == "parameter"}
    for instruction in held:
        copy = HloInstructionProto(id=instruction.id, name=instruction.name, opcode=instruction.opcode)
        copy.shape.CopyFrom(instruction.shape)
        copy.operand_ids.extend(passed.get(i, i) for i in instruction.operand_ids)
        made.instructions.append(copy)
    made.root_id = made.instructions[-1].id
    return made


def _outer(instruction: HloInstructionProto | None, operands: Iterable[int]) -> HloInstructionProto:
    copy = HloInstructionProto(opcode="parameter")
    if instruction is not None:
        copy.id, copy.name = instruction.id, instruction.name
        copy.shape.CopyFrom(instruction.shape)
    copy.operand_ids.extend(operands)
    return copy


def _arrivals(graph: Graph, operand: int, fusion: Fusion) -> tuple[str, ...]:
    """The nearest of the fusion's dones that an operand comes from, those that its einsum does not need first."""
    wanted = frozenset(fusion.waits_for) | frozenset(fusion.foreign)
    front = np.flatnonzero(graph.ids == operand).tolist()
    seen, found = set(front), []
    while front and len(seen) < _MOST_VISITED:
        node = front.pop(0)
        if graph.names[node] in wanted:
            found.append(graph.names[node])
            continue
        fresh = [n for n in graph.operands.of(node).tolist() if n not in seen]
        seen.update(fresh)
        front.extend(fresh)
    return tuple(sorted(found, key=lambda name: name not in fusion.foreign))


def _number(name: str, fusion: Fusion, waited: Iterable[str]) -> int:
    if name in fusion.foreign:
        return LATE
    return int(Look.PERMUTE if name in waited else Look.SILENT)


def _detail(item: int, text: str, fusion: Fusion, outline: Outline, outside: frozenset[int]) -> str:
    if item not in outside:
        return text
    name = outline.names[item]
    if name in fusion.foreign:
        return "the einsum does not need it"
    return "waited for" if name in fusion.waits_for else text.replace("parameter", "from outside")
