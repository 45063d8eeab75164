"""Gather → einsums → element-wise → einsum → scatter whose middle can stay in blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from engine.ir.flow import Flow
from engine.ir.opcodes import ELEMENTWISE
from engine.passes.decompose.find.tracing import back, is_blockwise, is_scalar
from engine.passes.decompose.refusal import Refusal
from engine.passes.decompose.site import Case, ChainSite, EinsumUse, GatherSite, MiddleStep, ScatterSite
from engine.passes.decompose.verdicts import listed

_LONGEST_MIDDLE = 64
"""Instructions that are looked at between the einsums."""


@dataclass(slots=True)
class _Walk:
    """Backwards from the second einsum to the first ones."""

    flow: Flow
    gather: GatherSite
    from_gather: Callable[[int], bool]
    """Whether an instruction is a first einsum or depends on one."""
    reached: dict[int, int] = field(default_factory=dict)
    """Instruction → dimension of its result that is blocked."""
    steps: dict[int, MiddleStep] = field(default_factory=dict)


def chain_of(
    flow: Flow, gather: GatherSite, scatter: ScatterSite, depends: Callable[[int, Iterable[int]], bool]
) -> ChainSite:
    """The chain from `gather` to `scatter`; `depends` says whether an instruction needs any of some einsums.

    Raises Refusal with the condition that does not hold.
    """
    blocks = gather.groups.size
    if gather.groups != scatter.groups:
        raise Refusal("the gather and the scatter act on different groups")
    if scatter.positions != (gather.positions or tuple(range(blocks))):
        raise Refusal("the scatter numbers its blocks differently from the gather")
    if gather.rebuild:
        raise Refusal(f"{flow.name(gather.collectives[0])} is also read by others than the einsums of the chain")
    for use in gather.uses:
        if use.case is Case.CONTRACTING or use.output_dim is None:
            raise Refusal(f"{flow.name(use.instruction)} sums over the gathered dimension")
        if use.valid is not None:
            raise Refusal(f"{flow.name(use.instruction)} reads blocks of which the last is partly padding")
    if scatter.use.valid is not None:
        raise Refusal("the last scattered block is partly padding")
    firsts = {u.instruction: u for u in gather.uses}
    walk = _Walk(flow, gather, lambda value: value in firsts or depends(value, firsts))
    second = flow.instructions[scatter.use.instruction]
    start = second.operand_ids[scatter.use.side]
    if walk.from_gather(second.operand_ids[1 - scatter.use.side]):
        raise Refusal(f"both operands of {second.name} come from the gather")
    _walk(walk, start, scatter.use.dim, firsts)
    missing = [flow.name(i) for i in firsts if i not in walk.reached]
    if missing:
        raise Refusal(f"{listed(missing)} reads the gather but is not part of the chain")
    inside = {*walk.steps, *firsts, scatter.use.instruction}
    for value in (*walk.steps, *firsts):
        if not walk.from_gather(value) and value not in firsts:
            continue
        outside = [flow.name(u) for u in flow.users(value) if u not in inside]
        if value in flow.roots:
            outside.append("the caller")
        if outside:
            raise Refusal(f"{flow.name(value)} in the middle is also read by {listed(outside)}")
    ordered = sorted(walk.steps.values(), key=lambda s: flow.order[s.instruction])
    return ChainSite(gather.computation, gather, tuple(ordered), scatter)


def first_einsums(flow: Flow, scatter: ScatterSite) -> frozenset[int]:
    """Einsums whose results reach the operand of `scatter`'s einsum through what may be the middle of a chain."""
    second = flow.instructions[scatter.use.instruction]
    work, seen = [second.operand_ids[scatter.use.side]], set[int]()
    found: set[int] = set()
    while work and len(seen) < _LONGEST_MIDDLE:
        value = work.pop()
        if value in seen:
            continue
        seen.add(value)
        if flow.opcodes[value] in ("dot", "convolution"):
            found.add(value)
        elif is_blockwise(flow.instructions[value]):
            work.extend(flow.operands[value])
    return frozenset(found)


def _walk(walk: _Walk, start: int, dim: int, firsts: dict[int, EinsumUse]) -> None:
    flow, blocks = walk.flow, walk.gather.groups.size
    work = [(start, dim)]
    if not walk.from_gather(start):
        raise Refusal(f"{flow.name(start)} does not come from the gather")
    while work:
        value, at = work.pop()
        if value in walk.reached:
            if walk.reached[value] != at:
                raise Refusal(f"{flow.name(value)} is needed in blocks along two dimensions")
            continue
        walk.reached[value] = at
        if value in firsts:
            if firsts[value].output_dim != at:
                raise Refusal(f"the blocks of {flow.name(value)} lie along another dimension than those of the scatter")
            continue
        step, before = _step(walk, value, at, blocks)
        walk.steps[value] = step
        work.extend(before)


def _step(walk: _Walk, value: int, dim: int, blocks: int) -> tuple[MiddleStep, list[tuple[int, int]]]:
    """One instruction of the middle, and what of its operands belongs to the middle too."""
    flow = walk.flow
    written = flow.instructions[value]
    opcode, operands = written.opcode, flow.operands[value]
    if not is_blockwise(written) or opcode == "custom-call":
        raise Refusal(f"{written.name} ({opcode}) in the middle mixes blocks")
    block = written.shape.dimensions[dim] // blocks
    if written.shape.dimensions[dim] % blocks:
        raise Refusal(f"{written.name} does not divide into {blocks} blocks")
    slices: list[int | None] = []
    before: list[tuple[int, int]] = []
    for operand in operands:
        shape = flow.instructions[operand].shape
        at = dim
        if opcode not in ELEMENTWISE:
            if opcode == "broadcast" and dim not in written.dimensions:
                if walk.from_gather(operand):
                    raise Refusal(f"{written.name} (broadcast) in the middle needs the whole array")
                slices.append(None)
                continue
            at = back(written, shape, dim, blocks)
        elif not shape.dimensions:
            slices.append(None)
            continue
        slices.append(at)
        if walk.from_gather(operand) or _is_repeated(flow, operand):
            before.append((operand, at))
    return MiddleStep(value, dim, block, tuple(slices)), before


def _is_repeated(flow: Flow, value: int) -> bool:
    """Whether a block of it is better made again than cut from the whole: something small, repeated."""
    return flow.opcodes[value] == "broadcast" and is_scalar(flow, value)
