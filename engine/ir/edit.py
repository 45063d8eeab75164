"""A working copy of a module that passes change: fresh ids, unique names, provenance, and order kept for them.

An `Editor` copies the module's proto once. Instructions and computations are added, uses replaced and dead code
removed on the copy; `finish` puts everything back in a valid order and returns a new Module. Every operation takes
time in what it touches, never in the size of the module.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from engine.hlo.hlo_pb2 import HloComputationProto, HloInstructionProto, HloModuleProto, ShapeProto
from engine.ir import shapes
from engine.ir.module import Module

Instruction = HloInstructionProto
"""What the editor hands out: the working copy of one instruction."""

_LOCAL_BITS = 32
"""XLA numbers instructions ``computation id << 32 | local id``."""

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
        self._names: set[str] = set()
        self._calls: dict[int, dict[int, None]] = {}
        self._call_counts: dict[int, int] = {}
        self._next_channel = 1
        for computation in self._proto.computations:
            self._computations[computation.id] = computation
            self._names.add(computation.name)
            for instruction in computation.instructions:
                self._instructions[instruction.id] = instruction
                self._computation_of[instruction.id] = computation.id
                self._names.add(instruction.name)
                if instruction.channel_id >= self._next_channel:
                    self._next_channel = instruction.channel_id + 1
                if instruction.called_computation_ids:
                    self._count_calls(computation.id, instruction, 1)
        self._name_counts: dict[str, int] = {}
        self._next_local: dict[int, int] = {}
        self._next_computation = max(self._computations, default=0) + 1
        self._added: dict[int, dict[int | None, list[int]]] = {}
        self._made: list[int] = []
        self._gone: dict[int, Instruction] = {}
        self._replaced: dict[int, int] = {}
        self._origins: dict[int, tuple[int, ...]] = {}
        self._touched: set[int] = set()
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
        return tuple(self._users.get(instruction, ()))

    def is_root(self, instruction: int) -> bool:
        return self._computations[self._computation_of[instruction]].root_id == instruction

    @property
    def made(self) -> int:
        """How many instructions have been added so far."""
        return len(self._made)

    def added_since(self, made: int) -> tuple[int, ...]:
        """Ids of the instructions that were added after `made` others, and are still there."""
        return tuple(i for i in self._made[made:] if i in self._instructions)

    @property
    def count(self) -> int:
        """Instructions in the module as it stands."""
        return len(self._instructions)

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
        instruction.id = self._fresh_id(computation)
        instruction.name = self.fresh_name(name)
        self._instructions[instruction.id] = instruction
        self._computation_of[instruction.id] = computation
        self._added.setdefault(computation, {}).setdefault(before, []).append(instruction.id)
        self._origins[instruction.id] = self._origins_of(origins)
        self._made.append(instruction.id)
        self._touched.add(computation)
        self._count_calls(computation, instruction, 1)
        for operand in instruction.operand_ids:
            self._users.setdefault(operand, {})[instruction.id] = None
        for predecessor in instruction.control_predecessor_ids:
            self._control_successors.setdefault(predecessor, {})[instruction.id] = None
        return instruction

    def add_computation(self, name: str) -> int:
        """An empty computation; `set_root` gives it its result and its program shape. Returns its id."""
        computation = HloComputationProto(id=self._next_computation_id(), name=self.fresh_name(name))
        self._computations[computation.id] = computation
        self._touched.add(computation.id)
        return computation.id

    def build(self, name: str) -> Building:
        """A computation to be made at one go from copies of instructions, in the order in which it runs them.

        Much cheaper than `add_computation` and `add`: nothing in it can be changed before `finish`.
        """
        return Building(self, HloComputationProto(id=self._next_computation_id(), name=self.fresh_name(name)))

    def take(self, computation: HloComputationProto, origins: Mapping[int, int]) -> None:
        """Take in a computation that is complete. `origins`: instruction id → the id that it was copied from."""
        self._computations[computation.id] = computation
        for instruction in computation.instructions:
            self._instructions[instruction.id] = instruction
            self._computation_of[instruction.id] = computation.id
            origin = origins[instruction.id]
            self._origins[instruction.id] = self._origins.get(origin) or self.module.origins_of(origin)
            if instruction.called_computation_ids:
                self._count_calls(computation.id, instruction, 1)
        self._made.extend(origins)

    def _next_computation_id(self) -> int:
        self._next_computation += 1
        return self._next_computation - 1

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
        name = base
        while name in self._names:
            count = self._name_counts.get(base, 0) + 1
            self._name_counts[base] = count
            name = f"{base}.{count}"
        self._names.add(name)
        return name

    def fresh_channel(self) -> int:
        """A channel id that no collective of the module has."""
        channel = self._next_channel
        self._next_channel += 1
        return channel

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
            proto = self._instructions[user]
            proto.operand_ids[:] = [new if o == old else o for o in proto.operand_ids]
            self._users[old].pop(user)
            self._users.setdefault(new, {})[user] = None
        for user in tuple(self._control_successors.get(old, ())):
            if user != new:
                self.remove_control(old, user)
                self.add_control(new, user)
        if self._computations[computation].root_id == old:
            self._computations[computation].root_id = new

    def add_control(self, before: int, after: int) -> None:
        """Let `after` wait for `before` without reading it."""
        successors = self._control_successors.setdefault(before, {})
        if after not in successors:
            successors[after] = None
            self._instructions[after].control_predecessor_ids.append(before)
            self._touched.add(self._computation_of[after])

    def remove_control(self, before: int, after: int) -> None:
        self._control_successors.get(before, {}).pop(after, None)
        proto = self._instructions[after]
        proto.control_predecessor_ids[:] = [p for p in proto.control_predecessor_ids if p != before]
        self._touched.add(self._computation_of[after])

    def remove_dead(self, candidates: Iterable[int]) -> None:
        """Remove those of `candidates` that nobody reads, and what only they read.

        Roots, parameters and instructions with an effect stay. An instruction that others wait for by a control edge
        goes as well: they then wait for what it waited for.
        """
        work = list(candidates)
        while work:
            dead = work.pop()
            if dead not in self._instructions or self._users.get(dead) or self.is_root(dead) or self._stays(dead):
                continue
            proto = self._gone[dead] = self._instructions.pop(dead)
            self._count_calls(self._computation_of[dead], proto, -1)
            predecessors = tuple(proto.control_predecessor_ids)
            for successor in tuple(self._control_successors.pop(dead, ())):
                if successor in self._instructions:
                    self.remove_control(dead, successor)
                    for predecessor in predecessors:
                        if predecessor in self._instructions:
                            self.add_control(predecessor, successor)
            for predecessor in predecessors:
                self._control_successors.get(predecessor, {}).pop(dead, None)
            for operand in dict.fromkeys(proto.operand_ids):
                self._users[operand].pop(dead, None)
                work.append(operand)
            self._origins.pop(dead, None)
            self._touched.add(self._computation_of.pop(dead))

    # --- finishing -----------------------------------------------------------------------------------------------

    def finish(self) -> Module:
        """The edited module: operands before users, callees before callers, otherwise in the order they had.

        A schedule the module carried is dropped, and the notes say so: it does not list what was added. Computations
        that nothing calls any more are left out.
        """
        if not self._touched:
            return self.module
        self._drop_uncalled()
        for computation in sorted(self._touched & self._computations.keys()):
            working = self._computations[computation]
            ordered = [self._instructions[i] for i in self._sorted(computation)]
            del working.instructions[:]
            working.instructions.extend(ordered)
        order = self._computation_order()
        del self._proto.computations[:]
        self._proto.ClearField("schedule")
        proto = HloModuleProto()
        proto.CopyFrom(self._proto)
        proto.computations.extend(self._computations[c] for c in order)
        notes = (*self.module.notes, _UNSCHEDULED) if self.module.is_scheduled else self.module.notes
        alive = self._instructions
        origins = {new: old for new, old in {**self.module.origins, **self._origins}.items() if new in alive}
        return replace(self.module, proto=proto, origins=origins, notes=notes)

    def _drop_uncalled(self) -> None:
        """Leave out computations that lost their last caller, and what only they called."""
        work = [c for c, count in self._call_counts.items() if count == 0]
        while work:
            computation = work.pop()
            if computation not in self._computations:
                continue
            members = list(self._members(computation))
            del self._computations[computation]
            for id_ in members:
                instruction = self._instructions.pop(id_)
                del self._computation_of[id_]
                for callee in instruction.called_computation_ids:
                    self._call_counts[callee] -= 1
                    if self._call_counts[callee] == 0:
                        work.append(callee)

    def _count_calls(self, computation: int, instruction: Instruction, by: int) -> None:
        for callee in instruction.called_computation_ids:
            self._call_counts[callee] = self._call_counts.get(callee, 0) + by
            self._calls.setdefault(computation, {})[callee] = None

    def _stays(self, instruction: int) -> bool:
        proto = self._instructions[instruction]
        if proto.opcode == "custom-call":
            return proto.custom_call_has_side_effect
        return proto.opcode in _KEPT

    def _members(self, computation: int) -> Iterator[int]:
        """Ids in `computation` in their old order, each added one before its anchor."""
        added = self._added.get(computation, {})
        # The proto's list is the old one until `finish` writes it, and never holds what was added.
        for instruction in self._computations[computation].instructions:
            if instruction.id in added:
                yield from (a for a in added[instruction.id] if a in self._instructions)
            if instruction.id in self._instructions:
                yield instruction.id
        known = {i.id for i in self._computations[computation].instructions}
        for anchor, group in added.items():
            if anchor not in known:
                yield from (a for a in group if a in self._instructions)

    def _sorted(self, computation: int) -> list[int]:
        """A topological order that departs from `_members` only where an operand comes too late."""
        instructions = self._instructions
        done: set[int] = set()
        open_: set[int] = set()
        ordered: list[int] = []
        for first in self._members(computation):
            if first in done:
                continue
            stack = [(first, _dependencies(instructions[first]))]
            open_.add(first)
            while stack:
                top, dependencies = stack[-1]
                waiting = next((d for d in dependencies if d not in done), None)
                if waiting is None:
                    stack.pop()
                    open_.remove(top)
                    done.add(top)
                    ordered.append(top)
                    continue
                if waiting in open_:
                    raise ValueError(f"{instructions[waiting].name} waits for itself")
                stack.append((waiting, _dependencies(instructions[waiting])))
                open_.add(waiting)
        return ordered

    def _computation_order(self) -> list[int]:
        """Callees before callers, otherwise in the module's order with added ones right before their first caller."""
        done: dict[int, None] = {}
        for first in [c.id for c in self._proto.computations if c.id in self._computations]:
            # Each computation's callees are gone through once: a caller may have thousands.
            stack = [(first, iter(self._calls.get(first, ())))]
            while stack:
                waiting = next((c for c in stack[-1][1] if c in self._computations and c not in done), None)
                if waiting is None:
                    done.setdefault(stack.pop()[0])
                else:
                    stack.append((waiting, iter(self._calls.get(waiting, ()))))
        return list(done)

    def _fresh_id(self, computation: int) -> int:
        local = self._next_local.get(computation)
        if local is None:
            base = computation << _LOCAL_BITS
            ids = (i.id - base for i in self._computations[computation].instructions)
            local = max((i for i in ids if 0 <= i < 1 << _LOCAL_BITS), default=-1) + 1
        self._next_local[computation] = local + 1
        return computation << _LOCAL_BITS | local

    def _origins_of(self, ids: Iterable[int]) -> tuple[int, ...]:
        origins: dict[int, None] = {}
        for id_ in ids:
            origins.update(dict.fromkeys(self._origins.get(id_) or self.module.origins_of(id_)))
        return tuple(origins)

    @cached_property
    def _users(self) -> dict[int, dict[int, None]]:
        users: dict[int, dict[int, None]] = {}
        for instruction in self._instructions.values():
            for operand in instruction.operand_ids:
                users.setdefault(operand, {})[instruction.id] = None
        return users

    @cached_property
    def _control_successors(self) -> dict[int, dict[int, None]]:
        successors: dict[int, dict[int, None]] = {}
        for instruction in self._instructions.values():
            for predecessor in instruction.control_predecessor_ids:
                successors.setdefault(predecessor, {})[instruction.id] = None
        return successors


class Building:
    """A computation under construction; see `Editor.build`."""

    def __init__(self, editor: Editor, proto: HloComputationProto) -> None:
        self._editor = editor
        self._proto = proto
        self._origins: dict[int, int] = {}
        self._parameters: list[Instruction] = []

    @property
    def id(self) -> int:
        return self._proto.id

    @property
    def result(self) -> ShapeProto:
        """Shape of what it computes, once it is finished."""
        return self._proto.program_shape.result

    def copy(self, source: Instruction, operands: Mapping[int, int]) -> int:
        """Put in a copy of `source` that reads what `operands` has for its operands. Returns its id."""
        made = self._proto.instructions.add()
        made.CopyFrom(source)
        made.operand_ids[:] = [operands[o] for o in source.operand_ids]
        return self._name(made, source.name, source.id)

    def parameter(self, operand: Instruction) -> int:
        """Put in the next parameter, to be given what `operand` computes. Returns its id."""
        made = self._proto.instructions.add(opcode="parameter", parameter_number=len(self._parameters))
        made.shape.CopyFrom(operand.shape)
        self._parameters.append(made)
        return self._name(made, f"{operand.name}.param", operand.id)

    def finish(self, results: Sequence[int], name: str) -> None:
        """Make `results` what it computes, several as a tuple called `name`, and hand it to the editor."""
        made = {i.id: i for i in self._proto.instructions}
        root = made[results[0]]
        if len(results) > 1:
            first = self._origins[results[0]]
            root = self._proto.instructions.add(opcode="tuple", operand_ids=results)
            root.shape.CopyFrom(shapes.tuple_of(made[r].shape for r in results))
            self._name(root, name, first)
        self._proto.root_id = root.id
        program = self._proto.program_shape
        program.parameters.extend(p.shape for p in self._parameters)
        program.parameter_names.extend(p.name for p in self._parameters)
        program.result.CopyFrom(root.shape)
        self._editor.take(self._proto, self._origins)

    def _name(self, made: Instruction, name: str, origin: int) -> int:
        made.id = self._proto.id << _LOCAL_BITS | len(self._origins)
        made.name = self._editor.fresh_name(name)
        self._origins[made.id] = origin
        return made.id


def _dependencies(instruction: HloInstructionProto) -> Iterator[int]:
    return iter((*instruction.operand_ids, *instruction.control_predecessor_ids))
