"""Gather → einsums → element-wise → einsum → scatter in one go, whose middle stays in shards.

Two shapes. *Pipelined*: every shard that arrives goes through both einsums at once, and its partial result joins the
accumulator that passes by; in one direction, or with half of every shard in each. *Two-phase*: both directions bring
whole shards, nearest first, while the scatter needs the farthest first, so it begins when the gather ends; nothing is
written into one array in between.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from engine.hlo.hlo_pb2 import PrimitiveType
from engine.ir.build import Builder, resized
from engine.ir.edit import Editor, Instruction
from engine.ir.einsum import Einsum, read_einsum
from engine.passes.decompose.emit.blocks import (
    accumulator_type,
    partial_einsum,
    redo,
    redo_path,
    shortened_broadcast,
)
from engine.passes.decompose.emit.loops import counted_loop
from engine.passes.decompose.emit.ring import Pace, Ring
from engine.passes.decompose.rings.plans import Slot
from engine.passes.decompose.rings.variants import Variant
from engine.passes.decompose.site import ChainSite, EinsumUse, MiddleStep, Step

_T = TypeVar("_T")


@dataclass(frozen=True, eq=False, slots=True)
class _Piece:
    """A shard, or half of one."""

    value: Instruction
    slot: Slot
    """Which shard it is; the stream is the lane."""
    pace: Pace | None = None


@dataclass(frozen=True, eq=False, slots=True)
class _Bundle:
    """What some pieces have become before the second einsum, one after the other along the blocked dimension."""

    value: Instruction
    pieces: tuple[_Piece, ...]


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
        mine = [_Piece(value, Slot(k, 0)) for k, value in enumerate(own)]
        kept = self._first(builder, mine)
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
        partials = self._second(builder, kept, mine)
        done = [self.end.add(a, p) for a, p in zip(arrived, partials, strict=True)]
        return self._finished(self.end.concatenate(done, self.scatter.dim))

    def two_phase(self) -> Instruction:
        """Both gather streams to their ends, then both scatter chains over what they brought."""
        builder, ring, variant = self.builder, self.ring, self.variant
        plan = variant.gather_plan(ring.size)
        buffers = [ring.shift(builder, self.shard, hops) for hops in plan.entries]
        there: list[_Bundle] = []
        waiting: list[_Piece] = []
        for number, slots in enumerate(plan.steps):
            waiting += [_Piece(buffers[s.stream], Slot(0, s.offset)) for s in slots]
            if number + 1 < len(plan.steps):
                for slot in slots:
                    buffers[slot.stream] = ring.shift(builder, buffers[slot.stream], plan.hops[slot.stream])
            if len(waiting) >= variant.shards or number + 1 == len(plan.steps):
                there += self._first(builder, waiting)
                waiting = []
        held = {p.slot.offset % ring.size: p for bundle in there for p in bundle.pieces}
        scatter = variant.scatter_plan(ring.size)
        chains: list[Instruction | None] = [None] * len(scatter.hops)
        for together in _grouped(scatter.steps, max(1, variant.seconds // 2)):
            wanted = [slot for slots in together for slot in slots]
            partials = self._second(builder, there, [held[slot.offset % ring.size] for slot in wanted])
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
        for partials in _grouped(self._second(builder, self._first(builder, pieces), pieces), self.lanes):
            if sums:
                arrived = [self.ring.shift(end, chain, way) for chain, way in zip(sums, self.ways, strict=True)]
                partials = [end.add(a, p) for a, p in zip(arrived, partials, strict=True)]
            sums = partials
        return at, sums

    # --- the two einsums and what is between them ----------------------------------------------------------------

    def _first(self, builder: Builder, pieces: Sequence[_Piece]) -> list[_Bundle]:
        """First einsums and middle; as many pieces at once as the variant says, and together from there on."""
        return [self._bundle(builder, tuple(group)) for group in _grouped(pieces, self.variant.shards)]

    def _bundle(self, builder: Builder, pieces: tuple[_Piece, ...]) -> _Bundle:
        done: dict[int, Instruction] = {}
        for use in self.site.gather.uses:
            original = self.editor.instruction(use.instruction)
            maker = builder.working_for(original)
            blocks = [redo_path(maker, self._cut(use.steps), piece.value) for piece in pieces]
            done[original.id] = self._einsum(maker, use, maker.concatenate(blocks, use.dim), pieces)
        for step in self.site.middle:
            original = self.editor.instruction(step.instruction)
            maker = builder.working_for(original)
            operands = [
                self._operand(maker, operand, dim, pieces, done)
                for operand, dim in zip(self.editor.operands(original.id), step.slices, strict=True)
            ]
            shape = resized(original.shape, original.shape.dimensions)
            shape.dimensions[step.dim] = len(pieces) * step.block // self.lanes
            done[original.id] = redo(maker, original, operands, step.dim, shape)
        return _Bundle(done[self.second.operand_ids[self.scatter.use.side]], pieces)

    def _second(self, builder: Builder, bundles: Sequence[_Bundle], wanted: Sequence[_Piece]) -> list[Instruction]:
        """The partial results of the `wanted` pieces, in the type in which they are added up."""
        use = self.scatter.use
        maker = builder.working_for(self.second)
        steps, partials = self._cut(use.steps), dict[_Piece, Instruction]()
        for group in _grouped(wanted, self.variant.seconds):
            bundle = self._together(maker, bundles, group)
            product = self._einsum(maker, use, bundle.value, bundle.pieces)
            for piece, partial in zip(bundle.pieces, self._apart(maker, product, use.output_dim, bundle), strict=True):
                partials[piece] = maker.convert(redo_path(maker, steps, partial), self.summed)
        return [partials[piece] for piece in wanted]

    def _together(self, builder: Builder, bundles: Sequence[_Bundle], group: Sequence[_Piece]) -> _Bundle:
        """`group` as one bundle: one that is there already, in whatever order, or its pieces cut out and joined."""
        members = set(group)
        dim = self.scatter.use.dim
        cut: dict[_Piece, Instruction] = {}
        for bundle in bundles:
            found = set(bundle.pieces)
            if found == members:
                return bundle
            if found & members:
                parts = zip(bundle.pieces, self._apart(builder, bundle.value, dim, bundle), strict=True)
                cut.update(parts)
        return _Bundle(builder.concatenate([cut[piece] for piece in group], dim), tuple(group))

    def _apart(self, builder: Builder, value: Instruction, dim: int | None, bundle: _Bundle) -> list[Instruction]:
        """The pieces of a bundle, or of what became of it, along `dim`."""
        assert dim is not None
        size = value.shape.dimensions[dim] // len(bundle.pieces)
        return [builder.slice(value, dim, k * size, (k + 1) * size) for k in range(len(bundle.pieces))]

    def _einsum(self, builder: Builder, use: EinsumUse, joined: Instruction, pieces: Sequence[_Piece]) -> Instruction:
        """One einsum over all pieces."""
        original = builder.source
        operands = list(self.editor.operands(original.id))
        einsum: Einsum = read_einsum(original, operands[0].shape, operands[1].shape)
        if use.other_dim is not None:
            operands[1 - use.side] = self._blocks_of(builder, operands[1 - use.side], use.other_dim, pieces)
        operands[use.side] = joined
        return partial_einsum(builder, original, einsum, (operands[0], operands[1]), self._result_type(original))

    def _operand(
        self,
        builder: Builder,
        operand: Instruction,
        dim: int | None,
        pieces: Sequence[_Piece],
        done: Mapping[int, Instruction],
    ) -> Instruction:
        if operand.id in done:
            return done[operand.id]
        if dim is None:
            return operand
        if operand.opcode == "broadcast" and dim not in operand.dimensions:
            block = operand.shape.dimensions[dim] // self.ring.size // self.lanes
            return shortened_broadcast(builder, operand, dim, len(pieces) * block)
        return self._blocks_of(builder, operand, dim, pieces)

    def _blocks_of(self, builder: Builder, whole: Instruction, dim: int, pieces: Sequence[_Piece]) -> Instruction:
        """The parts of an array that go with the pieces."""
        block = whole.shape.dimensions[dim] // self.ring.size
        size = block // self.lanes
        parts = []
        for piece in pieces:
            shard = self.ring.shard(builder, self.position, piece.slot, piece.pace)
            number = self.ring.numbered(builder, shard, self.scatter.positions)
            start = builder.add_index(builder.scale_index(number, block), piece.slot.stream * size)
            parts.append(self._cut_out(builder, whole, dim, start, size))
        return builder.concatenate(parts, dim)

    def _cut_out(self, builder: Builder, whole: Instruction, dim: int, start: Instruction, size: int) -> Instruction:
        key = ("part", whole.id, dim, start.id, size)
        return builder.once(key, lambda: builder.dynamic_slice(whole, dim, start, size))

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
