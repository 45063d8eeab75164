"""Fusion that a loop gives up: what a compiler would have computed inside the einsum's fusion has to be written out.

As loaded, element-wise operands of an einsum are computed inside its fusion, for nothing next to the matrix product,
and so is what follows it. A loop's partial einsums need operands in memory that the loop does not slice, and a result
that is put together block by block is there before anything can follow. Blocks that are sliced off are made of what
their operand is made of (`emit.sinking`), so nothing is lost there. The rules are those of the `fuse` pass.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from engine.cost.work import Role, Work
from engine.ir import shapes
from engine.ir.edit import Editor
from engine.ir.flow import Flow
from engine.ir.opcodes import ELEMENTWISE
from engine.passes.decompose.emit.sinking import source_of, users_of
from engine.passes.decompose.site import EinsumUse
from engine.passes.fuse.clusters import BEFORE_EINSUM, MOST_COPIES, MOST_MEMBERS
from engine.passes.fuse.roles import REPEATABLE, role_of
from engine.passes.fuse.roles import Role as FusionRole

_MOVES = frozenset({"bitcast", "broadcast", "copy", "dynamic-slice", "iota", "pad", "reshape", "slice", "transpose"})
"""What computes nothing."""


def written_out(
    flow: Flow, editor: Editor, use: EinsumUse, sliced: Mapping[int, int | None]
) -> Iterator[tuple[int, Work]]:
    """What must be computed before the loop of `use` and was part of the whole einsum, with the operand it fed.

    `sliced` holds for operands (0 lhs, 1 rhs) the dimension along which blocks are sliced off, None where every partial
    einsum takes all of it.
    """
    written = flow.instructions[use.instruction]
    for side, dim in sliced.items():
        operand = written.operand_ids[side]
        readers = {use.instruction}
        wanted: tuple[int, ...] = (operand,)
        if dim is not None:
            sunk = source_of(editor, editor.instruction(operand), use.instruction, dim).steps
            readers.update(sunk)
            if sunk:
                beside = dict.fromkeys(o for step in sunk for o in flow.operands[step] if o not in sunk)
                wanted = tuple(o for o in beside if flow.opcodes[o] != "broadcast")
        for value in wanted:
            members = _prologue(flow, value, readers)
            if any(flow.opcodes[m] not in ("bitcast", "reshape") for m in members):
                yield side, _kernel(flow, members, value)


def put_behind(flow: Flow, editor: Editor, use: EinsumUse) -> Work | None:
    """What follows the einsum of a gather, was part of its fusion, and cannot follow it into its loop."""
    einsum = use.instruction
    reader = flow.only_reader(einsum)
    if reader is None or flow.opcodes[reader] not in ELEMENTWISE:
        return None
    if any(flow.opcodes[o] in ("dot", "convolution") for o in flow.operands[reader] if o != einsum):
        return None  # that one takes it
    if _feeds_einsum(flow, reader):
        return None
    if use.output_dim is not None and use.valid is None and reader in users_of(editor, {einsum: use.output_dim}).steps:
        return None
    return _kernel(flow, (reader,), reader)


def _prologue(flow: Flow, value: int, readers: Collection[int]) -> tuple[int, ...]:
    """What would be computed inside the fusion of `readers` to give `value`; empty where it comes from memory.

    What has other readers too is there only where it is done again in each of them.
    """
    members: dict[int, bool] = {}
    """Whether it is computed for these readers alone."""
    work = [(value, True)]
    while work and len(members) < MOST_MEMBERS:
        found, alone = work.pop()
        if found in members or found in flow.roots or flow.opcodes[found] not in BEFORE_EINSUM:
            continue
        if _ends_einsum(flow, found):
            continue
        users = flow.users(found)
        alone = alone and all(user in members or user in readers for user in users)
        if alone or (flow.opcodes[found] in REPEATABLE and len(users) <= MOST_COPIES and _are_fused(flow, users)):
            members[found] = alone
            work.extend((operand, alone) for operand in flow.operands[found])
    return tuple(members)


def _are_fused(flow: Flow, readers: Sequence[int]) -> bool:
    """Whether each can be part of a fusion: what anything else reads is written to memory."""
    return all(role_of(flow.instructions[reader]) is not FusionRole.BARRIER for reader in readers)


def _ends_einsum(flow: Flow, value: int) -> bool:
    """Whether element-wise work leads to it from an einsum that nothing else reads: then it is done there."""
    work = [value]
    while work:
        found = work.pop()
        if flow.opcodes[found] in ELEMENTWISE:
            own = [o for o in flow.operands[found] if flow.only_reader(o) == found]
            if any(flow.opcodes[o] in ("dot", "convolution") for o in own):
                return True
            work.extend(own)
    return False


def _feeds_einsum(flow: Flow, value: int) -> bool:
    """Whether it only becomes the operand of another einsum, which computes it on the way."""
    while flow.opcodes[value] in BEFORE_EINSUM:
        reader = flow.only_reader(value)
        if reader is None:
            return False
        if flow.opcodes[reader] in ("dot", "convolution"):
            return True
        value = reader
    return False


def _kernel(flow: Flow, members: Sequence[int], result: int) -> Work:
    """All `members` in one fusion of their own that writes `result`."""
    work = Work()
    for operand, share in _read(flow, members).items():
        work.move(flow.instructions[operand].shape, share)
    work.move(flow.instructions[result].shape, 1.0, Role.WRITTEN)
    work.vector = float(
        sum(shapes.element_count(flow.instructions[m].shape) for m in members if flow.opcodes[m] not in _MOVES)
    )
    return work


def _read(flow: Flow, members: Sequence[int]) -> Mapping[int, float]:
    """What `members` read of other arrays, and which share of each: a slice reads what it keeps."""
    found: dict[int, float] = {}
    for member in members:
        for k, operand in enumerate(flow.operands[member]):
            if operand in members or flow.opcodes[operand] == "constant":
                continue
            share = 1.0
            if flow.opcodes[member] in ("slice", "dynamic-slice") and k == 0:
                kept, whole = (shapes.element_count(flow.instructions[i].shape) for i in (member, operand))
                share = kept / whole if whole else 0.0
            found[operand] = min(1.0, max(found.get(operand, 0.0), share))
    return found
