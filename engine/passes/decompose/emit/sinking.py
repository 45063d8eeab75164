"""Element-wise work next to an einsum that moves into its loop, onto the block at hand.

There it can hide transfers, and be fused with the partial einsum. A producer moves when nobody else reads what it
makes. A user moves when nobody needs its operand whole any more, and when nothing else that it reads waits for the
einsum.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from engine.ir.build import Builder, resized
from engine.ir.edit import Editor, Instruction
from engine.ir.opcodes import ELEMENTWISE
from engine.passes.decompose.emit.blocks import redo, shortened_broadcast

_FARTHEST = 64
"""Instructions looked at before something counts as possibly waiting for the einsum."""

_GIVEN = frozenset({"parameter", "constant", "iota", "partition-id", "replica-id"})

_OTHERS = frozenset({"dot", "convolution", "while", "call", "conditional"})
"""What may be, or become, part of another loop: if that loop waits for this one, this one must not wait for it."""


@dataclass(frozen=True, slots=True)
class Source:
    """An array of which blocks are wanted: sliced as it is, or made block by block from what it was made of."""

    whole: Instruction
    dim: int
    steps: tuple[int, ...] = ()
    """Instructions to redo on a block, in order of data flow; the last one makes `whole`. Empty: slice it."""

    def block(self, builder: Builder, start: Instruction, size: int) -> Instruction:
        """`size` elements along `dim` from `start`."""
        done: dict[int, Instruction] = {}
        for step in self.steps:
            done[step] = redo_elementwise(builder, step, self.dim, size, start, done)
        return done[self.steps[-1]] if self.steps else _cut(builder, self.whole, self.dim, start, size)


@dataclass(frozen=True, slots=True)
class Users:
    """Element-wise instructions that follow blocked einsums inside their loop."""

    steps: tuple[int, ...] = ()
    """In order of data flow."""
    results: tuple[int, ...] = ()
    """Einsums and steps whose whole result is needed outside."""
    dims: Mapping[int, int] = field(default_factory=dict)
    """Along which dimension each of them is blocked."""


def source_of(editor: Editor, operand: Instruction, reader: int, dim: int) -> Source:
    """How blocks of `operand` along `dim` are had, when only `reader` reads it."""
    chosen: set[int] = set()
    work = [operand]
    while work and len(chosen) < _FARTHEST:
        found = work.pop()
        same = found.shape.dimensions[:] == operand.shape.dimensions[:]
        if found.id in chosen or found.opcode not in ELEMENTWISE or not same:
            continue
        if editor.is_root(found.id) or found.control_predecessor_ids:
            continue
        if all(user == reader or user in chosen for user in editor.users(found.id)):
            chosen.add(found.id)
            work.extend(editor.operands(found.id))
    return Source(operand, dim, _in_order(editor, operand.id, chosen))


def users_of(editor: Editor, einsums: Mapping[int, int]) -> Users:
    """What follows `einsums` (id → blocked dimension of its result) into their loop."""
    dims = dict(einsums)
    steps: dict[int, None] = {}
    given: dict[int, bool] = {}
    work = [user for einsum in einsums for user in editor.users(einsum)]
    while work and len(steps) < _FARTHEST:
        user = work.pop(0)
        if user not in dims and _follows(editor, user, dims, given):
            dims[user] = next(dims[o] for o in editor.instruction(user).operand_ids if o in dims)
            steps[user] = None
            work.extend(editor.users(user))
    _withdraw(editor, einsums, steps)
    return Users(tuple(steps), tuple(_needed_whole(editor, (*einsums, *steps))), dims)


def redo_elementwise(
    builder: Builder, step: int, dim: int, size: int, start: Instruction, done: Mapping[int, Instruction]
) -> Instruction:
    """An element-wise instruction on the block of `size` elements along `dim` that begins at `start`.

    Operands in `done` are there as blocks; of others the block is cut out.
    """
    original = builder.editor.instruction(step)
    maker = builder.working_for(original)
    operands = []
    for operand in builder.editor.operands(step):
        if operand.id in done:
            operands.append(done[operand.id])
        elif not operand.shape.dimensions:
            operands.append(operand)
        elif operand.opcode == "broadcast" and dim not in operand.dimensions:
            operands.append(shortened_broadcast(maker, operand, dim, size))
        else:
            operands.append(_cut(maker, operand, dim, start, size))
    shape = resized(original.shape, original.shape.dimensions)
    shape.dimensions[dim] = size
    return redo(maker, original, operands, dim, shape)


def _cut(builder: Builder, whole: Instruction, dim: int, start: Instruction, size: int) -> Instruction:
    key = ("cut", whole.id, dim, start.id, size)
    return builder.once(key, lambda: builder.dynamic_slice(whole, dim, start, size))


def _follows(editor: Editor, user: int, dims: Mapping[int, int], given: dict[int, bool]) -> bool:
    """Whether `user` can work block by block on what its operands in `dims` give."""
    instruction = editor.instruction(user)
    if instruction.opcode not in ELEMENTWISE or instruction.control_predecessor_ids:
        return False
    operands = editor.operands(user)
    blocked = {dims[o.id] for o in operands if o.id in dims}
    if len(blocked) != 1:
        return False
    if any(o.shape.dimensions[:] not in ([], instruction.shape.dimensions[:]) for o in operands):
        return False
    return all(o.id in dims or _is_given(editor, o, given) for o in operands)


def _is_given(editor: Editor, value: Instruction, given: dict[int, bool]) -> bool:
    """Whether a value comes from parameters and constants in a few steps, and so waits for no einsum."""
    if value.id not in given:
        given[value.id] = False
        seen, work = {value.id}, [value]
        while work and len(seen) <= _FARTHEST:
            instruction = work.pop()
            if instruction.opcode in _OTHERS:
                return False
            before = () if instruction.opcode in _GIVEN else editor.operands(instruction.id)
            work.extend(o for o in before if o.id not in seen)
            seen.update(o.id for o in before)
        given[value.id] = not work
    return given[value.id]


def _needed_whole(editor: Editor, inside: Collection[int]) -> list[int]:
    """Those that are read by something outside."""
    return [v for v in inside if editor.is_root(v) or any(user not in inside for user in editor.users(v))]


def _withdraw(editor: Editor, einsums: Iterable[int], steps: dict[int, None]) -> None:
    """Take back steps with an operand that is needed whole anyway, and those that depend on them."""
    region = {*einsums, *steps}
    while True:
        inside = {*einsums, *steps}
        lost = (region - inside) | set(_needed_whole(editor, inside))
        gone = [step for step in steps if not lost.isdisjoint(editor.instruction(step).operand_ids)]
        for step in gone:
            del steps[step]
        if not gone:
            return


def _in_order(editor: Editor, last: int, chosen: Collection[int]) -> tuple[int, ...]:
    """`chosen` with operands before users; all of them lead to `last`."""
    done: dict[int, None] = {}
    stack = [last] if last in chosen else []
    while stack:
        operands = editor.instruction(stack[-1]).operand_ids
        waiting = next((o for o in operands if o in chosen and o not in done), None)
        if waiting is None:
            done.setdefault(stack.pop())
        else:
            stack.append(waiting)
    return tuple(done)
