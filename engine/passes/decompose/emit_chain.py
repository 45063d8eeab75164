"""Gather → einsums → element-wise → einsum → scatter in one go, whose middle stays in shards (technique §2).

Two shapes. *Pipelined*: every shard that arrives goes through both einsums at once, and its partial result joins the
accumulator that passes by; in one direction, or with half of every shard in each. *Two-phase*: both directions bring
whole shards, nearest first, while the scatter needs the farthest first, so it begins when the gather ends; nothing is
written into one array in between.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from engine.hlo.hlo_pb2 import PrimitiveType
from engine.ir.build import Builder, resized
from engine.ir.edit import Editor, Instruction
from engine.ir.einsum import Einsum, read_einsum
from engine.passes.decompose.emit_blocks import (
    accumulator_type,
    partial_einsum,
    redo,
    redo_path,
    shortened_broadcast,
)
from engine.passes.decompose.loops import counted_loop
from engine.passes.decompose.plans import Slot
from engine.passes.decompose.ring import Pace, Ring
from engine.passes.decompose.site import ChainSite, EinsumUse, MiddleStep, Step
from engine.passes.decompose.variants import Variant

_T = TypeVar("_T")


@dataclass(frozen=True, eq=False, slots=True)
class _Piece:
    """A shard, or half of one, at any stage of the chain."""

    value: Instruction
    slot: Slot
    """Which shard it is; the stream is the lane."""
    pace: Pace | None = None


def emit_chain(editor: Editor, ring: Ring, site: ChainSite, variant: Variant) -> None:
    """Replace the result of `site`; everything in between goes away."""
    collective = editor.instruction(site.gather.collectives[0])
    builder = Builder(editor, site.computation, collective, site.scatter.result)
    chain = _Chain(builder, ring, site, variant)
    shard = chain.pipelined() if chain.lanes > 1 or not variant.both else chain.two_phase()
    editor.replace_uses(site.scatter.result, shard.id)
    editor.remove_dead([site.scatter.result, site.scatter.collective, *site.gather.collectives])


class _Chain:
    """One chain on its way into the module."""

    def __init__(self, builder: Builder, ring: Ring, site: ChainSite, variant: Variant) -> None:
        self.builder = builder
        self.ring = ring
        self.site = site
        self.variant = variant
        self.editor = builder.editor
        self.lanes = variant.lanes
        self.ways = (1, -1)[: self.lanes]
        """Hops to the left of each lane's shifts."""
        self.shard = self.editor.current(site.gather.operand)
        self.position = ring.position(builder)
        self.scatter = site.scatter
        self.second = self.editor.instruction(site.scatter.use.instruction)
        self.end = builder.working_for(self.editor.instruction(site.scatter.collective))
        self.summed: PrimitiveType = accumulator_type(self._sent_type(), variant.accumulate)

    # --- the two shapes ------------------------------------------------------------------------------------------

    def pipelined(self) -> Instruction:
        """Offset 1, 2, … N-1 one after the other, the own shard last; lane 1 goes the other way round."""
        builder, size, at_once = self.builder, self.ring.size, self.variant.turns
        own = self._split(self.shard)
        kept = self._first(builder, [_Piece(value, Slot(k, 0)) for k, value in enumerate(own)])
        buffers = [self.ring.shift(builder, value, way) for value, way in zip(own, self.ways, strict=True)]
        chains: list[Instruction] = []
        offset, period = 1, self.variant.unroll
        trips = max(0, (size - 3) // period) if self.variant.form == "rolled" else 0
        while offset < size:
            if offset == 2 and trips:
                buffers, chains = self._loop(buffers, chains, trips, period)
                offset += trips * period
                continue
            # The first turn of a rolled chain stands alone: the loop needs accumulators to begin with.
            turns = 1 if trips and offset == 1 else min(at_once, size - offset)
            slots = [[Slot(k, way * (offset + t)) for k, way in enumerate(self.ways)] for t in range(turns)]
            buffers, chains = self._turns(builder, slots, None, buffers, chains, last=offset + turns == size)
            offset += turns
        arrived = [self.ring.shift(self.end, chain, way) for chain, way in zip(chains, self.ways, strict=True)]
        partials = self._second(builder, kept)
        done = [self.end.add(a, p) for a, p in zip(arrived, partials, strict=True)]
        return self._finished(self.end.concatenate(done, self.scatter.dim))

    def two_phase(self) -> Instruction:
        """Both gather streams to their ends, then both scatter chains over what they brought."""
        builder, ring, variant = self.builder, self.ring, self.variant
        plan = variant.gather_plan(ring.size)
        buffers = [ring.shift(builder, self.shard, hops) for hops in plan.entries]
        there: dict[int, _Piece] = {}
        waiting: list[_Piece] = []
        for number, slots in enumerate(plan.steps):
            waiting += [_Piece(buffers[s.stream], Slot(0, s.offset)) for s in slots]
            if number + 1 < len(plan.steps):
                for slot in slots:
                    buffers[slot.stream] = ring.shift(builder, buffers[slot.stream], plan.hops[slot.stream])
            if len(waiting) >= variant.shards or number + 1 == len(plan.steps):
                there.update({p.slot.offset % ring.size: p for p in self._first(builder, waiting)})
                waiting = []
        scatter = variant.scatter_plan(ring.size)
        chains: list[Instruction | None] = [None] * len(scatter.hops)
        for together in _grouped(scatter.steps, max(1, variant.seconds // 2)):
            wanted = [slot for slots in together for slot in slots]
            partials = self._second(builder, [there[slot.offset % ring.size] for slot in wanted])
            for slot, partial in zip(wanted, partials, strict=True):
                chain = chains[slot.stream]
                if chain is not None:
                    partial = self.end.add(ring.shift(self.end, chain, scatter.hops[slot.stream]), partial)
                chains[slot.stream] = partial
        ends = [(hops, chain) for hops, chain in zip(scatter.ends, chains, strict=True) if chain is not None]
        arrivals = [ring.shift(self.end, chain, hops) for hops, chain in ends if hops]
        arrivals += [chain for hops, chain in ends if not hops]
        total = arrivals[0]
        for arrival in arrivals[1:]:
            total = self.end.add(total, arrival)
        return self._finished(total)

    def _loop(
        self, buffers: Sequence[Instruction], chains: Sequence[Instruction], trips: int, period: int
    ) -> tuple[list[Instruction], list[Instruction]]:
        def body(inside: Builder, iteration: Instruction, state: list[Instruction]) -> list[Instruction]:
            at, sums = state[: self.lanes], state[self.lanes :]
            for turns in _grouped(range(2, 2 + period), self.variant.turns):
                slots = [[Slot(k, way * turn) for k, way in enumerate(self.ways)] for turn in turns]
                pace = Pace(iteration, period, trips)
                at, sums = self._turns(inside, slots, pace, at, sums, last=False)
            return [*at, *sums]

        state = counted_loop(self.builder, [*buffers, *chains], trips, body)
        return state[: self.lanes], state[self.lanes :]

    def _turns(
        self,
        builder: Builder,
        turns: Sequence[Sequence[Slot]],
        pace: Pace | None,
        buffers: Sequence[Instruction],
        chains: Sequence[Instruction],
        *,
        last: bool,
    ) -> tuple[list[Instruction], list[Instruction]]:
        """Both einsums on the shards of some turns, while the next shards and the accumulators travel.

        `pace` is that of lane 0; lane 1 goes the other way. No shard is wanted after the `last` turns.
        """
        end = builder.working_for(self.end.source)
        at, sums = list(buffers), list(chains)
        pieces: list[_Piece] = []
        for number, slots in enumerate(turns):
            for slot, way in zip(slots, self.ways, strict=True):
                own_pace = None if pace is None else replace(pace, delta=way * pace.delta)
                pieces.append(_Piece(at[slot.stream], slot, own_pace))
            if not last or number + 1 < len(turns):
                at = [self.ring.shift(builder, value, way) for value, way in zip(at, self.ways, strict=True)]
        for partials in _grouped(self._second(builder, self._first(builder, pieces)), self.lanes):
            if sums:
                arrived = [self.ring.shift(end, chain, way) for chain, way in zip(sums, self.ways, strict=True)]
                partials = [end.add(a, p) for a, p in zip(arrived, partials, strict=True)]
            sums = partials
        return at, sums

    # --- the two einsums and what is between them ----------------------------------------------------------------

    def _first(self, builder: Builder, pieces: Sequence[_Piece]) -> list[_Piece]:
        """First einsums and middle on some shards; einsums take as many at once as the variant says."""
        results: list[dict[int, Instruction]] = [{} for _ in pieces]
        for use in self.site.gather.uses:
            original = self.editor.instruction(use.instruction)
            maker = builder.working_for(original)
            steps = self._cut(use.steps)
            blocks = [replace(p, value=redo_path(maker, steps, p.value)) for p in pieces]
            for group in _grouped(range(len(pieces)), self.variant.shards):
                products = self._einsum(maker, use, [blocks[k] for k in group])
                for k, product in zip(group, products, strict=True):
                    results[k][original.id] = product
        return [self._middle(builder, p, done) for p, done in zip(pieces, results, strict=True)]

    def _second(self, builder: Builder, pieces: Sequence[_Piece]) -> list[Instruction]:
        """The partial results of some shards, in the type in which they are added up."""
        use = self.scatter.use
        maker = builder.working_for(self.second)
        partials: list[Instruction] = []
        for group in _grouped(pieces, self.variant.seconds):
            partials += self._einsum(maker, use, group)
        steps = self._cut(use.steps)
        return [maker.convert(redo_path(maker, steps, partial), self.summed) for partial in partials]

    def _einsum(self, builder: Builder, use: EinsumUse, pieces: Sequence[_Piece]) -> list[Instruction]:
        """One einsum over all pieces; its result cut into theirs."""
        original = builder.source
        operands = list(self.editor.operands(original.id))
        einsum: Einsum = read_einsum(original, operands[0].shape, operands[1].shape)
        if use.other_dim is not None:
            other = operands[1 - use.side]
            block = other.shape.dimensions[use.other_dim] // self.ring.size
            parts = [self._block_of(builder, other, use.other_dim, block, piece) for piece in pieces]
            operands[1 - use.side] = builder.concatenate(parts, use.other_dim)
        operands[use.side] = builder.concatenate([p.value for p in pieces], use.dim)
        product = partial_einsum(builder, original, einsum, (operands[0], operands[1]), self._result_type(original))
        dim, start, cut = use.output_dim, 0, []
        assert dim is not None
        for piece in pieces:
            stop = start + piece.value.shape.dimensions[use.dim]
            cut.append(builder.slice(product, dim, start, stop))
            start = stop
        return cut

    def _middle(self, builder: Builder, piece: _Piece, done: dict[int, Instruction]) -> _Piece:
        """The operand of the second einsum for one shard, from the results of the first ones."""
        for step in self.site.middle:
            original = self.editor.instruction(step.instruction)
            maker = builder.working_for(original)
            operands = [
                self._operand(maker, operand, dim, piece, done)
                for operand, dim in zip(self.editor.operands(original.id), step.slices, strict=True)
            ]
            shape = resized(original.shape, original.shape.dimensions)
            shape.dimensions[step.dim] = step.block // self.lanes
            done[original.id] = redo(maker, original, operands, step.dim, shape)
        return replace(piece, value=done[self.second.operand_ids[self.scatter.use.side]])

    def _operand(
        self, builder: Builder, operand: Instruction, dim: int | None, piece: _Piece, done: dict[int, Instruction]
    ) -> Instruction:
        if operand.id in done:
            return done[operand.id]
        if dim is None:
            return operand
        block = operand.shape.dimensions[dim] // self.ring.size
        if operand.opcode == "broadcast" and dim not in operand.dimensions:
            return shortened_broadcast(builder, operand, dim, block // self.lanes)
        return self._block_of(builder, operand, dim, block, piece)

    def _block_of(self, builder: Builder, whole: Instruction, dim: int, block: int, piece: _Piece) -> Instruction:
        """The part of an array that goes with a piece."""
        size = block // self.lanes
        shard = self.ring.shard(builder, self.position, piece.slot, piece.pace)
        number = self.ring.numbered(builder, shard, self.scatter.positions)
        start = builder.add_index(builder.scale_index(number, block), piece.slot.stream * size)
        return builder.once(("part", whole.id, dim, start.id), lambda: builder.dynamic_slice(whole, dim, start, size))

    def _split(self, shard: Instruction) -> list[Instruction]:
        dim = self.site.gather.dim
        size = shard.shape.dimensions[dim] // self.lanes
        return [self.builder.slice(shard, dim, k * size, (k + 1) * size) for k in range(self.lanes)]

    def _cut(self, steps: Sequence[Step]) -> tuple[Step, ...]:
        """Steps for the part of a block that a lane carries."""
        return tuple(replace(step, block=step.block // self.lanes) for step in steps)

    def _finished(self, shard: Instruction) -> Instruction:
        return redo_path(self.end, self.scatter.tail, self.end.convert(shard, self._sent_type()))

    def _sent_type(self) -> PrimitiveType:
        steps = self.scatter.use.steps
        last = self.editor.instruction(steps[-1].instruction) if steps else self.second
        return last.shape.element_type

    def _result_type(self, original: Instruction) -> PrimitiveType:
        own = original.shape.element_type
        wide = original.id == self.second.id and self.summed != self._sent_type()
        return self.summed if wide and accumulator_type(own, "f32") == self.summed else own


def halving_refused(editor: Editor, site: ChainSite) -> str | None:
    """Why the shards of a chain cannot be halved between the two directions; None where they can."""
    shard = editor.current(site.gather.operand)
    sizes = [shard.shape.dimensions[site.gather.dim]]
    sizes += [s.block for use in site.gather.uses for s in use.steps]
    steps: tuple[Step | MiddleStep, ...] = (*site.middle, *site.scatter.use.steps, *site.scatter.tail)
    sizes += [s.block for s in steps]
    odd = next((size for size in sizes if size % 2), None)
    return None if odd is None else f"chains=halves: a block of {odd} cannot be halved"


def _grouped(items: Sequence[_T], size: int) -> list[list[_T]]:
    return [list(items[k : k + size]) for k in range(0, len(items), size)]
