"""Einsum → ReduceScatter as one loop of partial einsums, added to accumulators that travel towards their owner."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from engine.errors import UnsupportedError
from engine.hlo.hlo_pb2 import PrimitiveType
from engine.ir.build import Builder
from engine.ir.edit import Editor, Instruction
from engine.ir.einsum import Einsum, Index, read_einsum
from engine.passes.decompose.emit.blocks import accumulator_type, partial_einsum, redo_path, stacked_einsum
from engine.passes.decompose.emit.loops import counted_loop
from engine.passes.decompose.emit.ring import Pace, Ring
from engine.passes.decompose.emit.sinking import Source, source_of
from engine.passes.decompose.rings.plans import ScatterPlan, Slot
from engine.passes.decompose.rings.variants import Variant
from engine.passes.decompose.site import ScatterSite, Step

_TYPE_ONLY = frozenset({"convert", "copy", "opt-barrier"})
"""Steps that do at most change the element type, and so can be done on half a block."""


@dataclass(frozen=True, eq=False, slots=True)
class _Lane:
    """What one set of accumulation chains computes: all of the result shard, or half of it."""

    sources: tuple[Source, Source]
    """Its operands; blocks are taken of those that are sliced."""


def emit_scatter(editor: Editor, ring: Ring, site: ScatterSite, variant: Variant) -> None:
    """Replace the result of `site`."""
    collective = editor.instruction(site.collective)
    builder = Builder(editor, site.computation, collective, site.result)
    shard = scattered(builder, ring, site, variant)
    if site.gathered:
        by_block = [site.positions.index(block) for block in range(ring.size)]
        groups = [[group[r] for r in by_block] for group in ring.groups.members]
        shard = builder.all_gather(shard, site.dim, groups, partitions=ring.by_partition)
    editor.replace_uses(site.result, shard.id)
    editor.remove_dead([site.result, site.collective])


def scattered(builder: Builder, ring: Ring, site: ScatterSite, variant: Variant) -> Instruction:
    """The shard that each position keeps, built before `builder.before`."""
    scatter = _Scatter(builder, ring, site, variant)
    return scatter.run()


def halves_refused(editor: Editor, site: ScatterSite) -> str | None:
    """Why the result shard of `site` cannot be split between two chains; None where it can."""
    steps = (*site.use.steps, *site.tail)
    reshaping = next((s for s in steps if editor.instruction(s.instruction).opcode not in _TYPE_ONLY), None)
    if reshaping is not None:
        return (
            f"chains=halves: {editor.instruction(reshaping.instruction).name} stands between the halves and the whole"
        )
    original = editor.instruction(site.use.instruction)
    lhs, rhs = editor.operands(original.id)
    einsum = read_einsum(original, lhs.shape, rhs.shape)
    return None if halved_index(einsum, site) else "chains=halves: the result shard has no second dimension to split"


def halved_index(einsum: Einsum, site: ScatterSite) -> Index | None:
    """The index along which chains=halves splits the result shard: the longest of the result but for the scattered
    one; None where there is none."""
    found = (i for i in einsum.indices if i.out not in (None, site.use.output_dim) and i.size > 1)
    return max(found, key=lambda i: i.size, default=None)


class _Scatter:
    """The loop of one site. State: an accumulator a chain; None before its first step."""

    def __init__(self, builder: Builder, ring: Ring, site: ScatterSite, variant: Variant) -> None:
        self.builder = builder
        self.ring = ring
        self.site = site
        self.use = site.use
        self.plan: ScatterPlan = variant.scatter_plan(ring.size)
        self.variant = variant
        self.editor = builder.editor
        self.original = self.editor.instruction(site.use.instruction)
        lhs, rhs = self.editor.operands(self.original.id)
        self.einsum: Einsum = read_einsum(self.original, lhs.shape, rhs.shape)
        self.position = ring.position(builder)
        sliced = (lhs, rhs)[self.use.side].shape.dimensions[self.use.dim]
        self.block = -(-sliced // ring.size)
        self.stacks = variant.blocks == "stacked" and self.original.opcode == "dot"
        self.summed: PrimitiveType = accumulator_type(self._sent_type(), variant.accumulate)
        self.product: PrimitiveType = self._product_type()
        self.halved: Index | None = halved_index(self.einsum, site) if variant.halved else None
        if variant.halved and self.halved is None:
            raise UnsupportedError(halves_refused(self.editor, site) or "chains=halves does not apply")
        self.lanes = self._lanes(self._sources((lhs, rhs)))

    def run(self) -> Instruction:
        plan, builder = self.plan, self.builder
        chains: list[Instruction | None] = [None] * len(plan.hops)
        step = 0
        while step < len(plan.steps):
            if plan.loop.trips and step == plan.loop.first:
                chains = self._loop(chains)
                step = plan.loop.stop
                continue
            chains = self._step(builder, step, chains, None)
            step += 1
        lanes = [self._gathered_up(lane, chains) for lane in range(plan.lanes)]
        shard = lanes[0]
        if self.halved is not None and self.halved.out is not None:
            shard = builder.concatenate(lanes, self.halved.out)
        shard = builder.convert(shard, self._sent_type())
        return redo_path(builder, self.site.tail, shard)

    def _gathered_up(self, lane: int, chains: Sequence[Instruction | None]) -> Instruction:
        """The epilogue: every chain goes the hops it still has to, and what arrives is added up, the own part last."""
        builder, plan = self.builder, self.plan
        there = [(plan.ends[k], chain) for k, chain in enumerate(chains) if chain is not None and plan.lane(k) == lane]
        arrivals = [self.ring.shift(builder, chain, hops) for hops, chain in there if hops]
        arrivals += [chain for hops, chain in there if not hops]
        total = arrivals[0]
        for arrival in arrivals[1:]:
            total = builder.add(total, arrival)
        return total

    def _loop(self, chains: Sequence[Instruction | None]) -> list[Instruction | None]:
        """Runs the chains that have been started; the others have no part in it."""
        loop = self.plan.loop
        started = [k for k, chain in enumerate(chains) if chain is not None]

        def body(inside: Builder, iteration: Instruction, state: list[Instruction]) -> list[Instruction]:
            at: list[Instruction | None] = [None] * len(chains)
            for k, value in zip(started, state, strict=True):
                at[k] = value
            for step in range(loop.first, loop.first + loop.period):
                at = self._step(inside, step, at, iteration)
            return [value for value in at if value is not None]

        state = counted_loop(self.builder, [c for c in chains if c is not None], loop.trips, body)
        result: list[Instruction | None] = [None] * len(chains)
        for k, value in zip(started, state, strict=True):
            result[k] = value
        return result

    def _step(
        self, builder: Builder, step: int, chains: Sequence[Instruction | None], iteration: Instruction | None
    ) -> list[Instruction | None]:
        """One step: shift the accumulators, compute meanwhile, and add where they arrive."""
        plan = self.plan
        slots, following = plan.steps[step], list(chains)
        numbers = [self._number(builder, slot, iteration) for slot in slots]
        lane = self.lanes[plan.lane(slots[0].stream)]
        pieces = [p for taken in self.variant.together(numbers) for p in self._compute(builder, lane, taken)]
        for slot, piece in zip(slots, pieces, strict=True):
            chain, hops = chains[slot.stream], plan.hops[slot.stream]
            early = slot.stream in plan.early
            if chain is not None:
                piece = builder.add(chain if early else self.ring.shift(builder, chain, hops), piece)
            if early and not (iteration is None and plan.is_last(step, slot.stream)):
                piece = self.ring.shift(builder, piece, hops)
            following[slot.stream] = piece
        return following

    def _number(self, builder: Builder, slot: Slot, iteration: Instruction | None) -> Instruction:
        """Which block of the result the position works on."""
        pace = None
        if iteration is not None:
            pace = Pace(iteration, self.plan.hops[slot.stream], self.plan.loop.trips)
        shard = self.ring.shard(builder, self.position, slot, pace)
        return self.ring.numbered(builder, shard, self.site.positions)

    def _compute(self, builder: Builder, lane: _Lane, numbers: Sequence[Instruction]) -> list[Instruction]:
        """The partial result of each block, as it is added up; one einsum for all of `numbers`."""
        builder = builder.working_for(self.original)
        out = self.use.output_dim
        assert out is not None
        side, other = self.use.side, 1 - self.use.side
        if self.stacks and len(numbers) > 1 and self._sliced(other) is None:
            starts = [builder.scale_index(number, self.block) for number in numbers]
            parts = [lane.sources[side].block(builder, start, self.block) for start in starts]
            taken = (parts, lane.sources[other].whole)
            pieces = stacked_einsum(builder, self.original, self.einsum, taken, side, out, self.product)
            return [builder.convert(self._after_steps(builder, piece), self.summed) for piece in pieces]
        operands = []
        for side, source in enumerate(lane.sources):
            dim = self._sliced(side)
            if dim is None:
                operands.append(source.whole)
                continue
            starts = [builder.scale_index(number, self.block) for number in numbers]
            operands.append(builder.concatenate([source.block(builder, s, self.block) for s in starts], dim))
        product = partial_einsum(builder, self.original, self.einsum, (operands[0], operands[1]), self.product)
        pieces = [builder.slice(product, out, k * self.block, (k + 1) * self.block) for k in range(len(numbers))]
        return [builder.convert(self._after_steps(builder, piece), self.summed) for piece in pieces]

    def _after_steps(self, builder: Builder, piece: Instruction) -> Instruction:
        if self.halved is None:
            return redo_path(builder, self.use.steps, piece)
        for step in self.use.steps:
            piece = self._half_step(builder, step, piece)
        return piece

    def _half_step(self, builder: Builder, step: Step, piece: Instruction) -> Instruction:
        """A step on half a block: only its element type matters."""
        original = self.editor.instruction(step.instruction)
        return builder.convert(piece, original.shape.element_type) if original.opcode == "convert" else piece

    def _sliced(self, side: int) -> int | None:
        """Dimension along which blocks of operand `side` are taken; None where it is used whole."""
        return self.use.dim if side == self.use.side else self.use.other_dim

    def _sources(self, operands: tuple[Instruction, Instruction]) -> tuple[Source, Source]:
        """The operands with zeros where their last blocks reach past their end."""
        builder = self.builder.working_for(self.original)
        found = []
        for side, operand in enumerate(operands):
            dim = self._sliced(side)
            whole = operand if dim is None else builder.pad_end(operand, dim, self.block * self.ring.size)
            if dim is None or whole is not operand or (self.halved and self.halved.operand(side) is not None):
                found.append(Source(whole, dim or 0))
            else:
                found.append(source_of(self.editor, operand, self.original.id, dim))
        return found[0], found[1]

    def _lanes(self, sources: tuple[Source, Source]) -> list[_Lane]:
        if self.halved is None:
            return [_Lane(sources)]
        builder = self.builder.working_for(self.original)
        middle = (self.halved.size + 1) // 2
        lanes = []
        for start, stop in ((0, middle), (middle, self.halved.size)):
            parts = []
            for side, source in enumerate(sources):
                dim = self.halved.operand(side)
                half = source if dim is None else replace(source, whole=builder.slice(source.whole, dim, start, stop))
                parts.append(half)
            lanes.append(_Lane((parts[0], parts[1])))
        return lanes

    def _sent_type(self) -> PrimitiveType:
        """Element type of what the collective reduces."""
        if not self.use.steps:
            return self.original.shape.element_type
        return self.editor.instruction(self.use.steps[-1].instruction).shape.element_type

    def _product_type(self) -> PrimitiveType:
        """Partial results are not rounded to a type that the sum does not have."""
        own = self.original.shape.element_type
        return self.summed if self.summed != self._sent_type() and accumulator_type(own, "f32") == self.summed else own
