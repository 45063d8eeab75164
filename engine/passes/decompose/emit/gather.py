"""AllGather → einsums as one loop of partial einsums, each on the shard at hand while the next one arrives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.hlo.hlo_pb2 import PrimitiveType, ShapeProto
from engine.ir.build import Builder, resized
from engine.ir.edit import Editor, Instruction
from engine.ir.einsum import Einsum, read_einsum
from engine.passes.decompose.emit.blocks import accumulator_type, partial_einsum, redo_step, stacked_einsum
from engine.passes.decompose.emit.loops import counted_loop
from engine.passes.decompose.emit.ring import Pace, Ring
from engine.passes.decompose.emit.sinking import Source, redo_elementwise, source_of, users_of
from engine.passes.decompose.rings.plans import GatherPlan, Slot
from engine.passes.decompose.rings.variants import Variant
from engine.passes.decompose.site import Case, EinsumUse, GatherSite


@dataclass(frozen=True, eq=False, slots=True)
class _Shard:
    """One shard at hand and which one it is."""

    value: Instruction
    number: Instruction
    """Which block of the gathered array it is, an s32 scalar."""


@dataclass(frozen=True, eq=False, slots=True)
class _Use:
    """One einsum of the site, with what does not change from step to step."""

    use: EinsumUse
    original: Instruction
    einsum: Einsum
    other: Source
    """The operand that is not gathered, padded where its blocks reach past its end."""
    block: int
    """Elements of one block along the blocked dimension."""
    element_type: PrimitiveType
    """In which partial results are."""

    @property
    def adds(self) -> bool:
        return self.use.case is Case.CONTRACTING

    @property
    def stackable(self) -> bool:
        """Whether blocks are of a free dimension of a dot."""
        return self.original.opcode == "dot" and not self.adds and self.use.other_dim is None


@dataclass(frozen=True, eq=False, slots=True)
class _Output:
    """An array that the loop fills."""

    original: Instruction
    """Whose users get it."""
    shape: ShapeProto
    dim: int | None
    """Dimension along which blocks are written; None where partial results are added up."""


def emit_gather(editor: Editor, ring: Ring, site: GatherSite, variant: Variant) -> None:
    """Replace the einsums of `site`, and its gathers where nobody else reads them."""
    collective = editor.instruction(site.collectives[0])
    builder = Builder(editor, site.computation, collective, site.uses[0].instruction)
    gather = _Gather(builder, ring, site, variant)
    filled = gather.run()
    for output, value in zip(gather.outputs, filled, strict=False):
        editor.replace_uses(output.original.id, gather.finished(output, value).id)
    if site.rebuild:
        for gathered in site.collectives:
            editor.replace_uses(gathered, filled[-1].id)
    editor.remove_dead([*site.collectives, *(u.instruction for u in site.uses), *gather.users.steps])


class _Gather:
    """The loop of one site. State: a buffer a stream, then the outputs, then the gathered array if it is rebuilt."""

    def __init__(self, builder: Builder, ring: Ring, site: GatherSite, variant: Variant) -> None:
        self.builder = builder
        self.ring = ring
        self.site = site
        self.plan: GatherPlan = variant.gather_plan(ring.size)
        self.variant = variant
        self.stacks = variant.blocks == "stacked"
        self.shard = builder.editor.current(site.operand)
        self.position = ring.position(builder)
        self.uses = [self._prepared(use, variant) for use in site.uses]
        written = [u for u in self.uses if not u.adds]
        followed = {u.original.id: u.use.output_dim for u in written if u.use.valid is None}
        self.users = users_of(builder.editor, {e: dim for e, dim in followed.items() if dim is not None})
        self.outputs = self._outputs(written)

    def run(self) -> list[Instruction]:
        """What the outputs, and the gathered array if it is rebuilt, are after all steps."""
        builder, plan = self.builder, self.plan
        buffers = [self.ring.shift(builder, self.shard, hops) for hops in plan.entries]
        filled = [None if o.dim is None else self._zeros(o) for o in self.outputs]
        if self.site.rebuild:
            filled.append(builder.zeros(builder.source.shape))
        step = 0
        while step < len(plan.steps):
            if plan.loop.trips and step == plan.loop.first:
                buffers, filled = self._loop(buffers, filled)
                step = plan.loop.stop
                continue
            buffers, filled = self._step(builder, step, buffers, filled, None)
            step += 1
        return [value for value in filled if value is not None]

    def finished(self, output: _Output, value: Instruction) -> Instruction:
        """An output as the users of the original expect it."""
        builder = self.builder.working_for(output.original)
        if output.dim is not None:
            value = builder.slice(value, output.dim, 0, output.original.shape.dimensions[output.dim])
        return builder.convert(value, output.original.shape.element_type)

    def _outputs(self, written: Sequence[_Use]) -> list[_Output]:
        """Sums of the contracting einsums, then results of the others and of what follows them."""
        outputs = [_Output(u.original, _typed(u.original.shape, u.element_type), None) for u in self.uses if u.adds]
        for use in written:
            dim = use.use.output_dim
            assert dim is not None
            if use.original.id in self.users.results or use.use.valid is not None:
                shape = _typed(use.original.shape, use.element_type)
                shape.dimensions[dim] = use.block * self.ring.size
                outputs.append(_Output(use.original, shape, dim))
        for step in self.users.results:
            if step in self.users.steps:
                original = self.builder.editor.instruction(step)
                outputs.append(_Output(original, original.shape, self.users.dims[step]))
        return outputs

    def _loop(
        self, buffers: list[Instruction], filled: list[Instruction | None]
    ) -> tuple[list[Instruction], list[Instruction | None]]:
        loop, count = self.plan.loop, len(buffers)
        started = [self._zeros(self.outputs[k]) if value is None else value for k, value in enumerate(filled)]

        def body(inside: Builder, iteration: Instruction, state: list[Instruction]) -> list[Instruction]:
            at, values = state[:count], list[Instruction | None](state[count:])
            for step in range(loop.first, loop.first + loop.period):
                at, values = self._step(inside, step, at, values, iteration)
            return [*at, *(value for value in values if value is not None)]

        state = counted_loop(self.builder, [*buffers, *started], loop.trips, body)
        return state[:count], list[Instruction | None](state[count:])

    def _step(
        self,
        builder: Builder,
        step: int,
        buffers: Sequence[Instruction],
        filled: Sequence[Instruction | None],
        iteration: Instruction | None,
    ) -> tuple[list[Instruction], list[Instruction | None]]:
        """One step: shift what is needed again, and compute with what is here."""
        plan = self.plan
        slots = plan.steps[step]
        shards = [_Shard(buffers[s.stream], self._number(builder, s, iteration)) for s in slots]
        following = list(buffers)
        if step + 1 < len(plan.steps):
            for slot in slots:
                following[slot.stream] = self.ring.shift(builder, buffers[slot.stream], plan.hops[slot.stream])
        computed = [self._compute(builder, taken) for taken in self.variant.together(shards)]
        blocks = [done for _, several in computed for done in several]
        values: list[Instruction | None] = []
        for output, value in zip(self.outputs, filled, strict=False):
            maker = builder.working_for(output.original)
            if output.dim is None:
                for sums, _ in computed:
                    part = sums[output.original.id]
                    value = part if value is None else maker.add(value, part)
                values.append(value)
                continue
            for shard, done in zip(shards, blocks, strict=True):
                assert value is not None
                value = _written(maker, value, done[output.original.id], output.dim, shard.number)
            values.append(value)
        if self.site.rebuild:
            whole = filled[-1]
            assert whole is not None
            for shard in shards:
                whole = _written(builder, whole, shard.value, self.site.dim, shard.number)
            values.append(whole)
        return following, values

    def _number(self, builder: Builder, slot: Slot, iteration: Instruction | None) -> Instruction:
        pace = None
        if iteration is not None:
            loop = self.plan.loop
            pace = Pace(iteration, self.plan.hops[slot.stream] * loop.period, loop.trips)
        shard = self.ring.shard(builder, self.position, slot, pace)
        return self.ring.numbered(builder, shard, self.site.positions) if self.site.positions else shard

    def _compute(
        self, builder: Builder, shards: Sequence[_Shard]
    ) -> tuple[dict[int, Instruction], list[dict[int, Instruction]]]:
        """Partial sums by einsum, and for every shard the blocks of other einsums and of what follows them."""
        paths = _Paths(builder)
        sums: dict[int, Instruction] = {}
        blocks: list[dict[int, Instruction]] = [{} for _ in shards]
        for use in self.uses:
            maker = builder.working_for(use.original)
            dim = use.use.output_dim
            if self.stacks and dim is not None and use.stackable and len(shards) > 1:
                parts = [paths.block(use.use, shard.value) for shard in shards]
                operands = (parts, use.other.whole)
                made = stacked_einsum(maker, use.original, use.einsum, operands, use.use.side, dim, use.element_type)
                for part, done in zip(made, blocks, strict=True):
                    done[use.original.id] = part
                continue
            product = self._product(maker, use, shards, paths)
            if use.adds or dim is None:
                sums[use.original.id] = product
                continue
            for k, done in enumerate(blocks):
                done[use.original.id] = maker.slice(product, dim, k * use.block, (k + 1) * use.block)
        for shard, done in zip(shards, blocks, strict=True):
            for step in self.users.steps:
                dim = self.users.dims[step]
                size = self.builder.editor.instruction(step).shape.dimensions[dim] // self.ring.size
                start = builder.scale_index(shard.number, size)
                done[step] = redo_elementwise(builder, step, dim, size, start, done)
        return sums, blocks

    def _product(self, builder: Builder, use: _Use, shards: Sequence[_Shard], paths: _Paths) -> Instruction:
        """One einsum over all shards at hand."""
        parts, others = [], []
        for shard in shards:
            part = paths.block(use.use, shard.value)
            start = builder.scale_index(shard.number, use.block)
            if use.adds and use.use.valid is not None:
                part = builder.masked(part, use.use.dim, start, use.use.valid)
            parts.append(part)
            if use.use.other_dim is not None:
                others.append(use.other.block(builder, start, use.block))
        gathered = builder.concatenate(parts, use.use.dim)
        other = use.other.whole if use.use.other_dim is None else builder.concatenate(others, use.use.other_dim)
        operands = (gathered, other) if use.use.side == 0 else (other, gathered)
        return partial_einsum(builder, use.original, use.einsum, operands, use.element_type)

    def _prepared(self, use: EinsumUse, variant: Variant) -> _Use:
        editor = self.builder.editor
        original = editor.instruction(use.instruction)
        lhs, rhs = editor.operands(use.instruction)
        einsum = read_einsum(original, lhs.shape, rhs.shape)
        block = use.steps[-1].block if use.steps else self.shard.shape.dimensions[self.site.dim]
        whole = (lhs, rhs)[1 - use.side]
        other = Source(whole, 0)
        if use.other_dim is not None and use.valid is None:
            other = source_of(editor, whole, original.id, use.other_dim)
        elif use.other_dim is not None:
            padded = self.builder.working_for(original).pad_end(whole, use.other_dim, block * self.ring.size)
            other = Source(padded, use.other_dim)
        element_type = original.shape.element_type
        if use.case is Case.CONTRACTING:
            element_type = accumulator_type(element_type, variant.accumulate)
        return _Use(use, original, einsum, other, block, element_type)

    def _zeros(self, output: _Output) -> Instruction:
        return self.builder.working_for(output.original).zeros(output.shape)


class _Paths:
    """Shards after the steps that lead to each einsum; what several einsums share is done once."""

    def __init__(self, builder: Builder) -> None:
        self._builder = builder
        self._done: dict[tuple[int, int], Instruction] = {}

    def block(self, use: EinsumUse, shard: Instruction) -> Instruction:
        block = shard
        for step in use.steps:
            key = (block.id, step.instruction)
            if key not in self._done:
                self._done[key] = redo_step(self._builder, step, block)
            block = self._done[key]
        return block


def _written(builder: Builder, whole: Instruction, block: Instruction, dim: int, number: Instruction) -> Instruction:
    start = builder.scale_index(number, block.shape.dimensions[dim])
    return builder.dynamic_update_slice(whole, block, dim, start)


def _typed(shape: ShapeProto, element_type: PrimitiveType) -> ShapeProto:
    made = resized(shape, shape.dimensions)
    made.element_type = element_type
    return made
