"""A working copy of a module that passes change: fresh ids, unique names, provenance, and order kept for them.

An `Editor` copies the module's proto once. Instructions and computations are added, uses replaced and dead code
removed on the copy; `finish` puts everything back in a valid order and returns a new Module. Every operation takes
time in what it touches, never in the size of the module.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from engine.hlo.hlo_pb2 import HloComputationProto, HloInstructionProto, HloModuleProto, ShapeProto
from engine.ir.calls import Calls
from engine.ir.edges import Edges
from engine.ir.module import Module
from engine.ir.numbering import Numbering, local_id
from engine.ir.order import callees_first, operands_first

Instruction = HloInstructionProto
"""What the editor hands out: the working copy of one instruction."""

_KEPT = frozenset(
    {
        "parameter",
        "infeed",
        "outfeed",
        "send",
        "recv",
        "send-done",
        "recv-done",
        "rng",
        "rng-bit-generator",
        "rng-get-and-update-state",
        "after-all",
        "domain",
        "async-update",
    }
)
"""Opcodes that dead code removal leaves: they act on the world, or belong to the computation's signature."""

_UNSCHEDULED = "The order that the module came with was dropped: it does not list what a pass added."


class Editor:
    """One edit of one module. Not to be used again after `finish`."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self._proto = HloModuleProto()
        self._proto.CopyFrom(module.proto)
        self._instructions: dict[int, Instruction] = {}
        self._computation_of: dict[int, int] = {}
        self._computations: dict[int, HloComputationProto] = {}
        self._calls = Calls()
        for computation in self._proto.computations:
            self._computations[computation.id] = computation
            members = {i.id: i for i in computation.instructions}
            self._instructions.update(members)
            self._computation_of.update(dict.fromkeys(members, computation.id))
            for instruction in members.values():
                self._calls.add(computation.id, instruction)
        self._edges = Edges(self._instructions)
        self._numbering = Numbering(module.proto, module.gone)
        self._added: dict[int, dict[int | None, list[int]]] = {}
        self._made: list[int] = []
        self._gone: dict[int, Instruction] = {}
        self._last_gone: dict[int, int] = dict(module.gone)
        self._replaced: dict[int, int] = {}
        self._origins: dict[int, tuple[int, ...]] = {}
        self._touched: set[int] = set()
        self._rewired: set[int] = set()
        """Instructions that have come, or read what they did not."""
        self.shared: dict[int, dict[tuple[object, ...], Instruction]] = {}
        """By computation, what builders made once there and use again: constants and index arithmetic."""

    # --- reading -------------------------------------------------------------------------------------------------

    def instruction(self, instruction: int) -> Instruction:
        """The working copy. Its fields may be changed except id, name, operands and shape.

        One that was removed can still be read here, to be copied from or to be named after.
        """
        return self._instructions.get(instruction) or self._gone[instruction]

    def current(self, instruction: int) -> Instruction:
        """What an instruction has become: itself, or the last one that its users were given instead."""
        while instruction in self._replaced:
            instruction = self._replaced[instruction]
        return self._instructions[instruction]

    def computation(self, computation: int) -> HloComputationProto:
        """The working copy of a computation; its instruction list is valid only after `finish`."""
        return self._computations[computation]

    def computation_of(self, instruction: int) -> int:
        """Id of the computation that holds it."""
        return self._computation_of[instruction]

    def __contains__(self, instruction: int) -> bool:
        return instruction in self._instructions

    def operands(self, instruction: int) -> tuple[Instruction, ...]:
        return tuple(self._instructions[o] for o in self.instruction(instruction).operand_ids)

    def users(self, instruction: int) -> tuple[int, ...]:
        """Distinct users, in the order in which they came to be."""
        return self._edges.users(instruction)

    def is_root(self, instruction: int) -> bool:
        return self._computations[self._computation_of[instruction]].root_id == instruction

    @property
    def made(self) -> int:
        """How many instructions have been added so far."""
        return len(self._made)

    def added_since(self, made: int) -> tuple[int, ...]:
        """Ids of the instructions that were added after `made` others, and are still there."""
        return tuple(i for i in self._made[made:] if i in self._instructions)

    # --- adding --------------------------------------------------------------------------------------------------

    def add(
        self,
        computation: int,
        instruction: Instruction,
        *,
        name: str,
        origins: Iterable[int],
        before: int | None = None,
    ) -> Instruction:
        """Take `instruction` into `computation`; its id and name are given here, the latter from `name`.

        `origins` are ids, in the module this edit began with, that it comes from. It is placed before the instruction
        `before`, or at the end; an order that operands contradict is put right by `finish`.
        """
        instruction.id = self._numbering.instruction(self._computations[computation])
        instruction.name = self.fresh_name(name)
        self._instructions[instruction.id] = instruction
        self._computation_of[instruction.id] = computation
        self._added.setdefault(computation, {}).setdefault(before, []).append(instruction.id)
        self._origins[instruction.id] = self._origins_of(origins)
        self._made.append(instruction.id)
        self._rewired.add(instruction.id)
        self._touched.add(computation)
        self._calls.add(computation, instruction)
        self._edges.add(instruction)
        return instruction

    def add_computation(self, name: str) -> int:
        """An empty computation; `set_root` gives it its result and its program shape. Returns its id."""
        computation = self.new_computation(name)
        self._computations[computation.id] = computation
        self._touched.add(computation.id)
        return computation.id

    def new_computation(self, name: str) -> HloComputationProto:
        """A computation with an id and a name called after `name`, to be made complete and then given to `take`."""
        return self._proto.computations.add(id=self.fresh_computation(), name=self.fresh_name(name))

    def take(
        self, computation: HloComputationProto, members: Mapping[int, Instruction], origins: Mapping[int, int]
    ) -> None:
        """Take in a `new_computation` that is complete: its instructions by id, and the ids they were copied from."""
        self._computations[computation.id] = computation
        self._instructions.update(members)
        self._computation_of.update(dict.fromkeys(members, computation.id))
        known, loaded = self._origins, self.module.origins
        for id_, origin in origins.items():
            known[id_] = known.get(origin) or loaded.get(origin) or (origin,)
            if self._calls.has(origin):
                self._calls.add(computation.id, members[id_])
        self._made.extend(origins)

    def set_root(self, computation: int, root: int) -> None:
        """Make `root` the result of `computation`, and derive the program shape from it and the parameters."""
        proto = self._computations[computation]
        proto.root_id = root
        members = (self._instructions[i] for i in self._members(computation))
        parameters = sorted((i for i in members if i.opcode == "parameter"), key=lambda i: i.parameter_number)
        proto.program_shape.Clear()
        proto.program_shape.parameters.extend(p.shape for p in parameters)
        proto.program_shape.parameter_names.extend(p.name for p in parameters)
        proto.program_shape.result.CopyFrom(self._instructions[root].shape)

    def fresh_name(self, base: str) -> str:
        """`base` if nobody has it, else with the next free number."""
        return self._numbering.name(base)

    def fresh_channel(self) -> int:
        """A channel id that no collective of the module has."""
        return self._numbering.channel()

    def fresh_computation(self) -> int:
        """A computation id that no computation of the module has."""
        return self._numbering.computation()

    # --- changing ------------------------------------------------------------------------------------------------

    def set_shape(self, instruction: int, shape: ShapeProto) -> None:
        self._instructions[instruction].shape.CopyFrom(shape)
        self._touched.add(self._computation_of[instruction])

    def replace_uses(self, old: int, new: int, *, keep: Iterable[int] = ()) -> None:
        """Let every user of `old` (but those in `keep`), the root included, read `new` instead.

        Whoever waited for `old` by a control edge waits for `new`.
        """
        if old not in self._instructions:
            return
        kept = set(keep)
        self._replaced[old] = new
        computation = self._computation_of[old]
        self._touched.add(computation)
        for user in self.users(old):
            if user == new or user in kept:
                continue
            self._edges.read(user, old, new)
            self._rewired.add(user)
        for user in self._edges.successors(old):
            if user != new:
                self.remove_control(old, user)
                self.add_control(new, user)
        if self._computations[computation].root_id == old:
            self._computations[computation].root_id = new

    def add_control(self, before: int, after: int) -> None:
        """Let `after` wait for `before` without reading it."""
        if self._edges.wait(before, after):
            self._touched.add(self._computation_of[after])

    def remove_control(self, before: int, after: int) -> None:
        self._edges.stop_waiting(before, after)
        self._touched.add(self._computation_of[after])

    def remove_dead(self, candidates: Iterable[int]) -> None:
        """Remove those of `candidates` that nobody reads, and what only they read.

        Roots, parameters and instructions with an effect stay. An instruction that others wait for by a control edge
        goes as well: they then wait for what it waited for.
        """
        work = list(candidates)
        while work:
            dead = work.pop()
            proto = self._instructions.get(dead)
            if proto is None or self._edges.is_read(dead) or self.is_root(dead) or _stays(proto):
                continue
            self._gone[dead] = self._instructions.pop(dead)
            self._calls.remove(proto)
            self._bridge_control(proto)
            work.extend(self._edges.stop_reading(proto))
            self._origins.pop(dead, None)
            self._touched.add(self._computation_of[dead])
            self._note_gone(dead)

    def _note_gone(self, instruction: int) -> None:
        computation = self._computation_of.pop(instruction)
        last = self._last_gone.get(computation, -1)
        self._last_gone[computation] = max(last, local_id(computation, instruction))

    def _bridge_control(self, gone: Instruction) -> None:
        """Let whoever waited for an instruction that is gone wait for what it waited for."""
        predecessors = tuple(gone.control_predecessor_ids)
        for successor in self._edges.successors(gone.id):
            self.remove_control(gone.id, successor)
            for predecessor in predecessors:
                self.add_control(predecessor, successor)
        for predecessor in predecessors:
            self._edges.stop_waiting(predecessor, gone.id)

    # --- finishing -----------------------------------------------------------------------------------------------

    def finish(self) -> Module:
        """The edited module: operands before users, callees before callers, otherwise in the order they had.

        A computation that was added comes right before its first caller; those that nothing calls any more are left
        out. A schedule that the module carried is dropped, and the notes say so: it does not list what was added.
        """
        if not self._touched:
            return self.module
        self._drop_uncalled()
        # Members change places and are cut off: to put copies of them together takes longer than all else.
        # What was there follows what it reads; that it follows what it waits for by control edges, nobody says.
        changed = self._rewired | self._edges.waiting()
        for computation in sorted(self._touched & self._computations.keys()):
            self._put_in_order(computation, changed)
        left = [c.id for c in self.module.proto.computations if c.id in self._computations]
        order = callees_first(left, self._calls.callees(self._computations))
        place = {id_: number for number, id_ in enumerate(order)}
        self._proto.computations.sort(key=lambda c: place.get(c.id, len(place)))
        del self._proto.computations[len(place) :]
        self._proto.ClearField("schedule")
        notes = (*self.module.notes, _UNSCHEDULED) if self.module.is_scheduled else self.module.notes
        alive = self._instructions
        origins = {new: old for new, old in {**self.module.origins, **self._origins}.items() if new in alive}
        return replace(self.module, proto=self._proto, origins=origins, notes=notes, gone=self._last_gone)

    def _put_in_order(self, computation: int, changed: Collection[int]) -> None:
        ordered = operands_first(self._members(computation), self._instructions, changed)
        place = {id_: number for number, id_ in enumerate(ordered)}
        members = self._computations[computation].instructions
        added = {id_ for group in self._added.get(computation, {}).values() for id_ in group}
        members.extend(self._instructions[i] for i in ordered if i in added)
        members.sort(key=lambda i: place.get(i.id, len(place)))
        del members[len(place) :]

    def _drop_uncalled(self) -> None:
        """Leave out computations that lost their last caller, and what only they called."""
        work = self._calls.lost()
        while work:
            computation = work.pop()
            if computation not in self._computations:
                continue
            members = list(self._members(computation))
            del self._computations[computation]
            for id_ in members:
                instruction = self._instructions.pop(id_)
                self._note_gone(id_)
                self._calls.remove(instruction)
                work.extend(c for c in instruction.called_computation_ids if not self._calls.is_called(c))

    def _members(self, computation: int) -> Iterator[int]:
        """Ids in `computation` in their old order, each added one before its anchor."""
        added = self._added.get(computation, {})
        # The proto's list is the old one until `finish` writes it, and never holds what was added.
        there = [i.id for i in self._computations[computation].instructions]
        for id_ in there:
            if id_ in added:
                yield from (a for a in added[id_] if a in self._instructions)
            if id_ in self._instructions:
                yield id_
        known = set(there) if added else ()
        for anchor, group in added.items():
            if anchor not in known:
                yield from (a for a in group if a in self._instructions)

    def _origins_of(self, ids: Iterable[int]) -> tuple[int, ...]:
        origins: dict[int, None] = {}
        for id_ in ids:
            for origin in self._origins.get(id_) or self.module.origins_of(id_):
                origins[origin] = None
        return tuple(origins)


def _stays(instruction: Instruction) -> bool:
    """Whether it is there although nobody reads it."""
    opcode = instruction.opcode
    return instruction.custom_call_has_side_effect if opcode == "custom-call" else opcode in _KEPT
