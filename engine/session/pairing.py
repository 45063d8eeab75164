"""Sets two modules against each other one to one, so that they can be drawn and printed side by side.

A `Correspondence` tells what stands for what, many for many; a picture of both needs pairs, the same place for either.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

from engine.hlo.hlo_pb2 import HloComputationProto, HloInstructionProto, HloModuleProto
from engine.ir.module import Module
from engine.session.correspondence import Side, correspond


def are_apart(one: Module, two: Module) -> bool:
    """Whether two modules were read from different files, so that their ids say nothing about each other."""
    return one.source is not None and two.source is not None and one.source.sha256 != two.source.sha256


def pairs_of(before: Module, after: Module) -> tuple[Mapping[int, int], Mapping[int, int]]:
    """Ids of computations, and of instructions in them, that are one and the same in both: before → after.

    Beside what has the same op_name these are parameters by their numbers, elements of what is paired, and roots.
    """
    found = correspond(before, after)
    mine, theirs = _alone(before, found.one), _alone(after, found.two)
    instructions = {mine[key]: theirs[key] for key in mine.keys() & theirs.keys()}
    computations = _computations(before, after, instructions)
    kept = {
        one: two
        for one, two in instructions.items()
        if computations.get(before.computation_of[one]) == after.computation_of[two]
    }
    taken = set(kept.values())
    for first, second in computations.items():
        for one, two in _structure(before.computations[first], after.computations[second], kept):
            if one not in kept and two not in taken:
                kept[one] = two
                taken.add(two)
    return MappingProxyType(computations), MappingProxyType(kept)


def renumbered(before: Module, after: Module) -> tuple[Module, Mapping[int, int]]:
    """`before` with the ids of `after` for what both have and with ids of its own for the rest; new id → old id.

    It has no order and no origins: these speak of other ids.
    """
    computations, instructions = pairs_of(before, after)
    above = 1 + max((*after.instructions, *after.computations, *after.origins, 0))

    numbers = {i: instructions.get(i, above + i) for i in before.instructions}
    places = {c: computations.get(c, above + c) for c in before.computations}
    return _numbered(before, numbers, places), {new: old for old, new in numbers.items()}


def _numbered(module: Module, instructions: Mapping[int, int], computations: Mapping[int, int]) -> Module:
    """`module` with other ids, without an order and origins."""
    proto = HloModuleProto()
    proto.CopyFrom(module.proto)
    proto.entry_computation_id = computations[proto.entry_computation_id]
    proto.ClearField("schedule")
    for computation in proto.computations:
        computation.id, computation.root_id = computations[computation.id], instructions[computation.root_id]
        for instruction in computation.instructions:
            instruction.id = instructions[instruction.id]
            for ids in (instruction.operand_ids, instruction.control_predecessor_ids):
                ids[:] = [instructions[id_] for id_ in ids]
            instruction.called_computation_ids[:] = [computations[id_] for id_ in instruction.called_computation_ids]
    return replace(module, proto=proto, origins=MappingProxyType({}))


def told_apart(before: Module, after: Module) -> tuple[Module, Mapping[int, int]]:
    """`before`, of the same file as `after`, with ids of its own for what passes made in both under one id although it
    is not the same; new id → old id of all its instructions, empty where no id had to change.

    Passes of two plans number what they make from the same next free id on.
    """
    mine, theirs = before.instructions, after.instructions
    twice = {i for i in mine.keys() & theirs.keys() if not _same(before, after, i)}
    computations = {
        c.id
        for c in before.proto.computations
        if c.id in after.computations and c.id != before.proto.entry_computation_id and twice.issuperset(_ids(c))
    }
    if not twice and not computations:
        return before, {}
    above = 1 + max((*mine, *theirs, *before.computations, *after.computations))
    instructions = {i: above + i if i in twice else i for i in mine}
    made = _numbered(
        before, instructions, {c.id: c.id + above * (c.id in computations) for c in before.proto.computations}
    )
    origins = {instructions[i]: of for i, of in before.origins.items() if i in instructions}
    return replace(made, origins=MappingProxyType(origins)), {new: old for old, new in instructions.items()}


def _same(before: Module, after: Module, instruction: int) -> bool:
    """Whether one id stands for one instruction: as loaded in both, or made alike."""
    one, two = before.origins.get(instruction), after.origins.get(instruction)
    if one is None and two is None:
        return True
    mine, theirs = before.instructions[instruction], after.instructions[instruction]
    return one == two and (mine.opcode, mine.name) == (theirs.opcode, theirs.name)


def _ids(computation: HloComputationProto) -> tuple[int, ...]:
    return tuple(i.id for i in computation.instructions)


def paired_names(before: Module, after: Module) -> Mapping[str, str]:
    """Names of computations and instructions that are one and the same in both: before → after."""
    computations, instructions = pairs_of(before, after)
    found = {before.computations[one].name: after.computations[two].name for one, two in computations.items()}
    found.update((before.instructions[one].name, after.instructions[two].name) for one, two in instructions.items())
    return found


def _alone(module: Module, side: Side) -> Mapping[tuple[int, ...], int]:
    """Rows → the one instruction that has these; a fusion has those of what it is for, and what is in it its own."""
    found: dict[tuple[int, ...], int] = {}
    shared: set[tuple[int, ...]] = set()
    for id_, instruction in module.instructions.items():
        if instruction.opcode.endswith(("-done", "-update")):
            continue
        rows = side.rows_of(id_)
        key = (0, *rows) if id_ not in side.holder else (1, *rows)
        if not rows:
            continue
        if key in found:
            shared.add(key)
        found[key] = id_
    return {key: id_ for key, id_ in found.items() if key not in shared}


def _computations(before: Module, after: Module, instructions: Mapping[int, int]) -> dict[int, int]:
    """Computation → the one that most of its instructions are found in, each taken once; the entries are a pair."""
    votes = Counter((before.computation_of[one], after.computation_of[two]) for one, two in instructions.items())
    entries = before.proto.entry_computation_id, after.proto.entry_computation_id
    found = {entries[0]: entries[1]}
    taken = {entries[1]}
    for (one, two), _ in votes.most_common():
        if one not in found and two not in taken:
            found[one] = two
            taken.add(two)
    return found


def _structure(
    before: HloComputationProto, after: HloComputationProto, known: Mapping[int, int]
) -> Iterator[tuple[int, int]]:
    """Pairs that follow from where they stand: parameters, elements and dones of what is paired, roots."""
    parts = {place: i.id for i in after.instructions if (place := _place(i, list(i.operand_ids))) is not None}
    made = dict(known)
    for instruction in before.instructions:
        place = _place(instruction, [made.get(operand, -1) for operand in instruction.operand_ids])
        if place is not None and place in parts:
            made.setdefault(instruction.id, parts[place])
            yield instruction.id, parts[place]
    roots = [next((i for i in c.instructions if i.id == c.root_id), None) for c in (before, after)]
    if roots[0] is not None and roots[1] is not None and roots[0].opcode == roots[1].opcode:
        yield roots[0].id, roots[1].id


def _place(instruction: HloInstructionProto, operands: list[int]) -> tuple[str, int, int] | None:
    """What tells an instruction by its place: kind, number, operand; None for most."""
    if instruction.opcode == "parameter":
        return "parameter", instruction.parameter_number, 0
    if instruction.opcode == "get-tuple-element":
        return "element", instruction.tuple_index, operands[0]
    if instruction.opcode.endswith("-done"):
        return "done", 0, operands[0]
    return None
