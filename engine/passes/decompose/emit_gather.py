"""AllGather → einsums as one loop of partial einsums, each on the shard at hand while the next one arrives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.hlo.hlo_pb2 import PrimitiveType, ShapeProto
from engine.ir.build import Builder, resized
from engine.ir.edit import Editor, Instruction
from engine.ir.einsum import Einsum, read_einsum
from engine.passes.decompose.emit_blocks import accumulator_type, partial_einsum, redo_step
from engine.passes.decompose.loops import counted_loop
from engine.passes.decompose.plans import GatherPlan, Slot
from engine.passes.decompose.ring import Pace, Ring
from engine.passes.decompose.site import Case, EinsumUse, GatherSite
from engine.passes.decompose.variants import Variant


@dataclass(frozen=True, eq=False, slots=True)
class Shard:
    """One shard at hand and which one it is."""

    value: Instruction
    number: Instruction
    """Ring position that owns it, an s32 scalar."""


@dataclass(frozen=True, eq=False, slots=True)
class _Use:
    """One einsum of the site, with what does not change from step to step."""

    use: EinsumUse
    original: Instruction
    einsum: Einsum
    other: Instruction
    """The operand that is not gathered, padded where its blocks reach past its end."""
    block: int
    """Elements of one block along the blocked dimension."""
    element_type: PrimitiveType
    """In which partial results are."""

    @property
    def adds(self) -> bool:
        return self.use.case is Case.CONTRACTING


def emit_gather(editor: Editor, ring: Ring, site: GatherSite, variant: Variant) -> None:
    """Replace the einsums of `site`, and its gathers where nobody else reads them."""
    collective = editor.instruction(site.collectives[0])
    builder = Builder(editor, site.computation, collective, site.uses[0].instruction)
    gather = _Gather(builder, ring, site, variant)
    outputs = gather.run()
    dead = [u.instruction for u in site.uses]
    for use, output in zip(gather.uses, outputs, strict=False):
        editor.replace_uses(use.original.id, gather.finished(use, output).id)
    if site.rebuild:
        for gathered in site.collectives:
            editor.replace_uses(gathered, outputs[-1].id)
    editor.remove_dead([*dead, *site.collectives])


class _Gather:
    """The loop of one site. State: a buffer a stream, then an output a use, then the rebuilt array."""

    def __init__(self, builder: Builder, ring: Ring, site: GatherSite, variant: Variant) -> None:
        self.builder = builder
        self.ring = ring
        self.site = site
        self.plan: GatherPlan = variant.gather_plan(ring.size)
        self.shard = builder.editor.current(site.operand)
        self.position = ring.position(builder)
        self.uses = [self._prepared(use, variant) for use in site.uses]

    def run(self) -> list[Instruction]:
        """The outputs after all steps."""
        builder, plan = self.builder, self.plan
        buffers = [self.ring.shift(builder, self.shard, hops) for hops in plan.entries]
        outputs: list[Instruction | None] = [self._start(use) for use in self.uses]
        if self.site.rebuild:
            outputs.append(builder.zeros(builder.source.shape))
        step = 0
        while step < len(plan.steps):
            if plan.loop.trips and step == plan.loop.first:
                buffers, outputs = self._loop(buffers, outputs)
                step = plan.loop.stop
                continue
            buffers, outputs = self._step(builder, step, buffers, outputs, None)
            step += 1
        return [output for output in outputs if output is not None]

    def finished(self, use: _Use, output: Instruction) -> Instruction:
        """An output as the original einsum's users expect it."""
        builder = self.builder.working_for(use.original)
        if use.use.output_dim is not None and not use.adds:
            output = builder.slice(output, use.use.output_dim, 0, use.original.shape.dimensions[use.use.output_dim])
        return builder.convert(output, use.original.shape.element_type)

    def _loop(
        self, buffers: list[Instruction], outputs: list[Instruction | None]
    ) -> tuple[list[Instruction], list[Instruction | None]]:
        builder, loop, count = self.builder, self.plan.loop, len(buffers)
        started = [
            builder.working_for(self.uses[k].original).zeros(self._output_shape(self.uses[k]))
            if output is None
            else output
            for k, output in enumerate(outputs)
        ]

        def body(inside: Builder, iteration: Instruction, state: list[Instruction]) -> list[Instruction]:
            at, written = state[:count], list[Instruction | None](state[count:])
            for step in range(loop.first, loop.first + loop.period):
                at, written = self._step(inside, step, at, written, iteration)
            return [*at, *(w for w in written if w is not None)]

        state = counted_loop(builder, [*buffers, *started], loop.trips, body)
        return state[:count], list[Instruction | None](state[count:])

    def _step(
        self,
        builder: Builder,
        step: int,
        buffers: Sequence[Instruction],
        outputs: Sequence[Instruction | None],
        iteration: Instruction | None,
    ) -> tuple[list[Instruction], list[Instruction | None]]:
        """One step: shift what is needed again, and compute with what is here."""
        plan = self.plan
        slots = plan.steps[step]
        shards = [Shard(buffers[s.stream], self._number(builder, s, iteration)) for s in slots]
        following = list(buffers)
        if step + 1 < len(plan.steps):
            for slot in slots:
                following[slot.stream] = self.ring.shift(builder, buffers[slot.stream], plan.hops[slot.stream])
        blocks = _Blocks(builder)
        written = [
            self._compute(builder, use, shards, blocks, output) for use, output in zip(self.uses, outputs, strict=False)
        ]
        if self.site.rebuild:
            whole = outputs[-1]
            assert whole is not None
            for shard in shards:
                whole = self._written(builder, whole, shard.value, self.site.dim, shard.number)
            written.append(whole)
        return following, list[Instruction | None](written)

    def _number(self, builder: Builder, slot: Slot, iteration: Instruction | None) -> Instruction:
        pace = None
        if iteration is not None:
            loop = self.plan.loop
            pace = Pace(iteration, self.plan.hops[slot.stream] * loop.period, loop.trips)
        return self.ring.shard(builder, self.position, slot, pace)

    def _compute(
        self, builder: Builder, use: _Use, shards: Sequence[Shard], blocks: _Blocks, output: Instruction | None
    ) -> Instruction:
        builder = builder.working_for(use.original)
        parts, others = [], []
        for shard in shards:
            part = blocks.of(use.use, shard.value)
            start = builder.scale_index(shard.number, use.block)
            if use.adds and use.use.valid is not None:
                part = builder.masked(part, use.use.dim, start, use.use.valid)
            parts.append(part)
            if use.use.other_dim is not None:
                others.append(builder.dynamic_slice(use.other, use.use.other_dim, start, use.block))
        gathered = builder.concatenate(parts, use.use.dim)
        other = use.other if use.use.other_dim is None else builder.concatenate(others, use.use.other_dim)
        operands = (gathered, other) if use.use.side == 0 else (other, gathered)
        product = partial_einsum(builder, use.original, use.einsum, operands, use.element_type)
        if use.adds:
            return product if output is None else builder.add(output, product)
        assert output is not None
        dim = use.use.output_dim
        assert dim is not None
        for k, shard in enumerate(shards):
            piece = builder.slice(product, dim, k * use.block, (k + 1) * use.block)
            output = self._written(builder, output, piece, dim, shard.number)
        return output

    def _written(
        self, builder: Builder, whole: Instruction, block: Instruction, dim: int, number: Instruction
    ) -> Instruction:
        start = builder.scale_index(number, block.shape.dimensions[dim])
        return builder.dynamic_update_slice(whole, block, dim, start)

    def _prepared(self, use: EinsumUse, variant: Variant) -> _Use:
        editor = self.builder.editor
        original = editor.instruction(use.instruction)
        lhs, rhs = editor.operands(use.instruction)
        einsum = read_einsum(original, lhs.shape, rhs.shape)
        other = (lhs, rhs)[1 - use.side]
        block = use.steps[-1].block if use.steps else self.shard.shape.dimensions[self.site.dim]
        if use.other_dim is not None:
            builder = self.builder.working_for(original)
            other = builder.pad_end(other, use.other_dim, block * self.ring.size)
        element_type = original.shape.element_type
        if use.case is Case.CONTRACTING:
            element_type = accumulator_type(element_type, variant.accumulate)
        return _Use(use, original, einsum, other, block, element_type)

    def _start(self, use: _Use) -> Instruction | None:
        return None if use.adds else self.builder.working_for(use.original).zeros(self._output_shape(use))

    def _output_shape(self, use: _Use) -> ShapeProto:
        shape = resized(use.original.shape, use.original.shape.dimensions)
        shape.element_type = use.element_type
        if use.use.output_dim is not None and not use.adds:
            shape.dimensions[use.use.output_dim] = use.block * self.ring.size
        return shape


class _Blocks:
    """Shards after the steps that lead to each einsum; what several einsums share is done once."""

    def __init__(self, builder: Builder) -> None:
        self._builder = builder
        self._done: dict[tuple[int, int], Instruction] = {}

    def of(self, use: EinsumUse, shard: Instruction) -> Instruction:
        block = shard
        for step in use.steps:
            key = (block.id, step.instruction)
            if key not in self._done:
                self._done[key] = redo_step(self._builder.working_for(block), step, block)
            block = self._done[key]
        return block
