"""Which of our instructions each one of a compiled module stands for, by the tags that a run of ours gave them.

Compilers carry an instruction's op_name along when they clone, split or fuse it. What they add themselves (copies
around loops, conversions) has none and belongs to the instruction that it serves.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from engine.hlo.hlo_pb2 import HloComputationProto, HloInstructionProto, HloModuleProto

TAG = re.compile(r"lapstrake=([\w.\-]+)")
"""In an op_name: the name of the instruction in our module."""

_FREE = frozenset({"parameter", "constant", "tuple", "get-tuple-element", "bitcast"})


@dataclass(frozen=True, slots=True)
class Stands:
    """What a compiled instruction stands for."""

    name: str
    """Of our instruction; ``NAME/done`` for the done of a transfer whose start is NAME."""
    copy: bool = False
    """Whether it is the compiler's copy of that instruction's value."""


def own_tag(instruction: HloInstructionProto) -> str | None:
    """The last tag: those before it are of calls that it was inlined from, or of earlier runs."""
    found = TAG.findall(instruction.metadata.op_name)
    return found[-1] if found else None


def tag(proto: HloModuleProto) -> None:
    """Write each instruction's name into its op_name, in place of tags that are there."""
    for computation in proto.computations:
        for instruction in computation.instructions:
            rest = TAG.sub("", instruction.metadata.op_name).strip()
            instruction.metadata.op_name = f"{rest} lapstrake={instruction.name}".strip()


def attribute(compiled: HloModuleProto) -> Mapping[str, Stands]:
    """Compiled instruction name → what it stands for; empty for a module without tags, and without what is in doubt."""
    if not any(own_tag(i) for c in compiled.computations for i in c.instructions):
        return {}
    bodies = {c.id: c for c in compiled.computations}
    found: dict[str, Stands] = {}
    for computation in compiled.computations:
        found.update(_Attribution(computation, bodies).found())
    _from_callers(compiled, bodies, found)
    return found


class _Attribution:
    """One computation: tags first, then what untagged instructions serve."""

    def __init__(self, computation: HloComputationProto, bodies: Mapping[int, HloComputationProto]) -> None:
        self._computation = computation
        self._by_id = {i.id: i for i in computation.instructions}
        self._users: dict[int, list[HloInstructionProto]] = {}
        for instruction in computation.instructions:
            for operand in instruction.operand_ids:
                self._users.setdefault(operand, []).append(instruction)
        self._tags = {i.id: own_tag(i) or _inside(i, bodies) for i in computation.instructions}

    def found(self) -> Iterator[tuple[str, Stands]]:
        for instruction in self._computation.instructions:
            name = self._tags[instruction.id]
            if instruction.opcode == "copy":
                value = (
                    name or self._nearest([instruction], self._operands) or self._nearest([instruction], self._using)
                )
                if value is not None:
                    yield instruction.name, Stands(value, copy=name is None)
                continue
            served = name or self._served(instruction)
            if served is not None:
                end = "/done" if name is not None and instruction.opcode.endswith("-done") else ""
                yield instruction.name, Stands(served + end)

    def _served(self, instruction: HloInstructionProto) -> str | None:
        """Of an untagged instruction: what uses it, if that is something that runs, else what it is made of."""
        users = [u for u in self._using(instruction) if u.opcode not in _FREE]
        for user in users:
            tag_ = self._tags[user.id]
            if tag_ is not None:
                return tag_
        return self._nearest([instruction], self._operands) or self._nearest([instruction], self._using)

    def _nearest(self, start: Iterable[HloInstructionProto], step: object) -> str | None:
        """The first tag found by going on from `start`, breadth first."""
        assert callable(step)
        level, seen = list(start), {i.id for i in start}
        while level:
            following = []
            for instruction in level:
                for other in step(instruction):
                    if other.id in seen:
                        continue
                    seen.add(other.id)
                    tag_ = self._tags[other.id]
                    if tag_ is not None:
                        return tag_
                    following.append(other)
            level = following
        return None

    def _operands(self, instruction: HloInstructionProto) -> list[HloInstructionProto]:
        return [self._by_id[o] for o in instruction.operand_ids]

    def _using(self, instruction: HloInstructionProto) -> list[HloInstructionProto]:
        return self._users.get(instruction.id, [])


def _inside(instruction: HloInstructionProto, bodies: Mapping[int, HloComputationProto]) -> str | None:
    """The tag of a fusion's root, or of the last tagged instruction in it."""
    if instruction.opcode != "fusion":
        return None
    body = bodies[instruction.called_computation_ids[0]]
    root = next(i for i in body.instructions if i.id == body.root_id)
    return own_tag(root) or next(filter(None, map(own_tag, reversed(body.instructions))), None)


def _from_callers(
    compiled: HloModuleProto, bodies: Mapping[int, HloComputationProto], found: dict[str, Stands]
) -> None:
    """What is in a computation without any tags, such as a loop that the compiler made, is its caller's."""
    for computation in reversed(compiled.computations):  # callers come after what they call
        for caller in computation.instructions:
            stands = found.get(caller.name)
            if stands is None:
                continue
            for callee in caller.called_computation_ids:
                for instruction in bodies[callee].instructions:
                    found.setdefault(instruction.name, stands)
