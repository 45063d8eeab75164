"""What a decomposition would gain: the terms of ``comp + comm + beside >= max(comp, ring) + extra``.

That is Wang et al. §5.5, which prices a site by itself, and what other work hides of either side.

`comp` and `comm` are the einsums and collectives as they are. `ring` is all that one link of the logical ring carries
(`rings.variants.link_load`). `extra` is what nothing hides: the transfer of a prologue or epilogue, what partial
einsums take longer than whole ones, and the memory traffic that decomposing adds. Element-wise work is taken to fuse
with einsums on both sides of the comparison, so that the gain of fusion does not pass for that of overlap; what cannot
fuse with a loop is extra. `beside` is what other work of the computation hides: of the permutes of a straight line (a
loop has nothing else to do in the meantime) and of a prologue or epilogue, less what it would hide of the whole
collective where the chip's compiler makes that asynchronous.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from engine.chips.budget import Kind
from engine.chips.chip import Exclusive
from engine.chips.machine import Machine
from engine.cost.collectives import collective_time, ring_time
from engine.cost.compute import einsum_time, instruction_time, work_time
from engine.cost.costs import Origin
from engine.cost.given import NOTHING_GIVEN, GivenTime
from engine.cost.kept_slices import kept_in_slices, run_as
from engine.cost.pricing import KINDS
from engine.cost.work import Role, Work
from engine.hlo.hlo_pb2 import HloInstructionProto, ShapeProto
from engine.ir import shapes
from engine.ir.edit import Editor
from engine.ir.einsum import read_einsum
from engine.ir.flow import Flow
from engine.ir.groups import Groups, Lists, Mode, device_groups
from engine.ir.module import Header
from engine.passes.candidate import GateTerms
from engine.passes.decompose.emit.scatter import halved_index
from engine.passes.decompose.find.collectives import Collective
from engine.passes.decompose.gate.lost_fusion import put_behind, written_out
from engine.passes.decompose.gate.surroundings import Beside, beside
from engine.passes.decompose.rings.plans import GatherPlan, ScatterPlan
from engine.passes.decompose.rings.variants import Variant, link_load
from engine.passes.decompose.site import AllReduceSite, Case, ChainSite, EinsumUse, GatherSite, ScatterSite, Site

_WHOLE: Mapping[tuple[int, int], int] = {}
_EINSUMS = frozenset({"dot", "convolution"})
_DECOMPOSABLE = frozenset({Kind.ALL_GATHER, Kind.REDUCE_SCATTER})


class Pricing:
    """Prices sites of one module on one machine, in integer picoseconds of one execution."""

    def __init__(
        self,
        flow: Flow,
        machine: Machine,
        collectives: Iterable[Collective],
        editor: Editor,
        given: Mapping[int, GivenTime] = NOTHING_GIVEN,
    ) -> None:
        """`editor`, of the same module, is only looked at. `given` are times by instruction id that replace the
        model's, as in the simulator: partial einsums take the model's time × given / modelled time of the whole, a
        ring's permutes the model's."""
        self._flow = flow
        self._editor = editor
        self._machine = machine
        self._collectives = {c.id: c for c in collectives}
        self._header = flow.module.header
        self._given = given
        self._einsum_times: dict[tuple[object, ...], int] = {}
        self._collective_times: dict[int, int] = {}
        self._lost_times: dict[tuple[int, bool], int] = {}
        self._scattered = kept_in_slices(flow)

    @property
    def one_at_a_time(self) -> bool:
        """Whether two permutes between the same two devices cannot be in flight together (GPUs: NCCL may deadlock)."""
        return self._machine.chip.exclusive is Exclusive.SHARED_DEVICES

    def terms(self, site: Site, variant: Variant) -> GateTerms:
        """The gate's terms for `site` in the form `variant`, which must suit it."""
        match site:
            case GatherSite():
                return self._gather(site, variant, site.collectives)
            case ScatterSite():
                return self._scatter(site, variant)
            case AllReduceSite():
                return self._scatter(site.scatter, variant).then(self._gather(site.gather, variant, ()))
            case ChainSite():
                return self._chain(site, variant)

    def comm(self, collectives: Iterable[int]) -> int:
        """Time of collectives that stay whole."""
        return sum(self._collective_time(self._collectives[c]) for c in collectives)

    def comp(self, einsums: Iterable[int]) -> int:
        """Time of einsums that stay whole."""
        return sum(self._einsum(self._flow.instructions[e], _WHOLE) for e in einsums)

    def shard_bytes(self, site: Site) -> int:
        """What one position sends at a time."""
        match site:
            case GatherSite():
                return shapes.byte_count(self._flow.instructions[site.operand].shape)
            case ScatterSite():
                return shapes.byte_count(self._flow.instructions[site.collective].shape) // (
                    1 if self._is_scattered(site) else site.groups.size
                )
            case _:
                return self.shard_bytes(site.scatter)

    # --- inside --------------------------------------------------------------------------------------------------

    def _gather(self, site: GatherSite, variant: Variant, collectives: Sequence[int]) -> GateTerms:
        """`collectives` are those that the loop saves."""
        size = site.groups.size
        plan = variant.gather_plan(size)
        shard = self._shard(site)
        comp = self.comp(u.instruction for u in site.uses)
        extra = ends = sum(self._hops(site.groups, shard, abs(hops)) for hops in plan.entries if hops)
        for use in site.uses:
            extra += self._partials(use, plan, size, variant) + self._joined(use, plan, size, variant, gathers=True)
            if variant.form == "rolled":
                extra += self._lost_before(use, gathers=True) + self._lost_behind(use)
            if use.case is Case.CONTRACTING:
                output = shapes.byte_count(self._flow.instructions[use.instruction].shape)
                extra += (len(plan.steps) - 1) * self._memory(output)
        if variant.form == "rolled" and variant.unroll == 1:
            extra += (size - 1) * self._memory(2 * shard)
        if site.rebuild:
            extra += size * self._memory(2 * shard)
        ring = self._ring(site.groups, shard, plan, variant)
        beside = self._beside(collectives, ends + _exposed(comp, ring, variant))
        uses = [u.instruction for u in site.uses]
        return self._terms(uses, collectives, GateTerms(comp, self.comm(collectives), ring, extra, beside))

    def _scatter(self, site: ScatterSite, variant: Variant) -> GateTerms:
        size = site.groups.size
        plan = variant.scatter_plan(size)
        shard = self.shard_bytes(site)
        if variant.accumulate == "f32":
            element = self._flow.instructions[site.collective].shape.element_type
            shard = max(shard, shard * 32 // max(1, shapes.bits(element)))
        comp = self.comp((site.use.instruction,))
        extra = ends = max((self._hops(site.groups, shard, abs(hops)) for hops in plan.ends), default=0)
        extra += self._partials(site.use, plan, size, variant, self._halves(site) if variant.halved else (_WHOLE,))
        extra += self._joined(site.use, plan, size, variant, gathers=False)
        if variant.form == "rolled":
            extra += self._lost_before(site.use, gathers=False)
        if site.gathered:
            extra += self._gather_again(site)
        ring = self._ring(site.groups, shard, plan, variant)
        collectives, exposed = (site.collective,), ends + _exposed(comp, ring, variant)
        ways = []
        for added, waits in self._adding(site, shard, chains=len(plan.hops)):
            beside = self._beside(collectives, exposed + (waits if variant.form == "unrolled" else 0))
            ways.append(GateTerms(comp, self.comm(collectives), ring, extra + added, beside))
        best = max(ways, key=lambda terms: terms.gain)
        return self._terms((site.use.instruction,), collectives, best)

    def _terms(self, einsums: Iterable[int], collectives: Iterable[int], terms: GateTerms) -> GateTerms:
        """`terms` with the origins of the times of these."""
        if not self._given:
            return terms
        starts = [self._collectives[c] for c in collectives]
        return replace(
            terms,
            comp_from=_origins(self._given_to(e, self._modelled(self._flow.instructions[e], _WHOLE)) for e in einsums),
            comm_from=_origins(self._given_to(c.start, self._modelled_collective(c)) for c in starts),
        )

    def _given_to(self, id_: int, modelled: int) -> GivenTime | None:
        """What is given for an instruction instead of the modelled time; None where the model's stays."""
        found = self._given.get(id_)
        issued = self._flow.opcodes[id_].endswith("-start")
        # What issuing a start takes may be given without its transfer, which then is the model's.
        return None if found is not None and issued and found.time == modelled else found

    def _beside(self, collectives: Sequence[int], exposed: int) -> int:
        """What other work hides of so much `exposed` transfer, less what it hides of `collectives` as they are."""
        found = [self._surroundings.get(c, Beside()) for c in collectives]
        if not found:
            return 0
        together = Beside(sum(b.time for b in found), max(b.wanted for b in found))
        hidden = [
            b.hides(self.comm((c,)))
            for c, b in zip(collectives, found, strict=True)
            if self._may_wait(self._collectives[c])
        ]
        return together.hides(exposed) - sum(hidden)

    @cached_property
    def _surroundings(self) -> Mapping[int, Beside]:
        """By id of collectives that may be hidden: einsums, and collectives that block, run beside them."""
        collectives = [c for c in self._collectives.values() if c.fused_into is None]
        hidden = [c for c in collectives if self._may_wait(c) or self._kind(c) in _DECOMPOSABLE]
        work = {
            id_: self.comp((id_,))
            for computation in dict.fromkeys(c.computation for c in hidden)
            for id_ in (i.id for i in self._flow.module.computations[computation].instructions if i.opcode in _EINSUMS)
        }
        work |= {c.id: self._collective_time(c) for c in collectives if not self._may_wait(c)}
        ways = {c.id: device_groups(c.written, self._header) for c in collectives}
        return beside(self._flow, hidden, self._collective_time, work, ways)

    def _kind(self, collective: Collective) -> Kind:
        return KINDS[run_as(collective.written, self._scattered)]

    def _may_wait(self, collective: Collective) -> bool:
        """Whether it is asynchronous where it stays whole."""
        return collective.start != collective.id or self._kind(collective) in self._machine.chip.asynchronous

    def _gather_again(self, site: ScatterSite) -> int:
        """Time of the all-gather behind a scatter that stands for a whole all-reduce."""
        whole = shapes.byte_count(self._flow.instructions[site.collective].shape)
        return collective_time(self._machine, "all-gather", device_lists(site.groups, self._header), whole).time

    def _chain(self, site: ChainSite, variant: Variant) -> GateTerms:
        """Pipelined, shards and accumulators travel together, under all compute. In two phases, one after the other."""
        groups, size = site.scatter.groups, site.scatter.groups.size
        sent = (self._shard(site.gather), self.shard_bytes(site.scatter))
        firsts = [u.instruction for u in site.gather.uses]
        middle = sum(
            given.time
            if (given := self._given.get(m.instruction)) is not None
            else instruction_time(self._flow.module, self._flow.instructions[m.instruction], self._machine)
            for m in site.middle
        )
        before, after = self.comp(firsts) + middle, self.comp((site.scatter.use.instruction,))
        collectives = (*site.gather.collectives, site.scatter.collective)
        pieces = 2 if variant.pipelined_halves else 1
        extra = sum(self._taken(u, size * pieces, variant.shards) for u in site.gather.uses)
        extra += self._taken(site.scatter.use, size * pieces, variant.seconds)
        if variant.seconds > 1:
            taken = size * pieces // variant.seconds * variant.seconds
            extra += taken * self._apart(self._flow.instructions[site.scatter.use.instruction].shape, size * pieces)
        if variant.form == "rolled":
            extra += sum(self._lost_before(u, gathers=True) for u in site.gather.uses)
            extra += self._lost_before(site.scatter.use, gathers=True)
        adding = self._adding(site.scatter, sent[1], chains=1 if variant.seconds == 1 and not variant.both else 2)
        extra += min(added for added, _ in adding)
        if variant.both and not variant.pipelined_halves:
            rings = [self._ring(groups, n, variant.gather_plan(size), variant) for n in sent]
            hops = [self._hops(groups, n, 1) for n in sent]
            # The scatter's shards leave as the gather's come, in reverse.
            extra += as_they_come(before, hops[0], size, variant.shards)
            extra += as_they_come(after, hops[1], size, variant.seconds) - max(before + after, sum(rings))
        else:
            both = variant.both and not self.one_at_a_time
            lists, steps = device_lists(groups, self._header), (size - 1) * (pieces if variant.both and not both else 1)
            rings = [ring_time(self._machine, lists, n // pieces, steps, both).time for n in sent]
            extra += (variant.turns - 1) * self._hops(groups, sum(sent) // pieces, 1)
            extra += (size - 1) * self._memory(2 * sent[0]) if variant.form == "rolled" and variant.unroll == 1 else 0
        beside = self._beside(collectives, _exposed(before + after, sum(rings), variant))
        terms = GateTerms(before + after, self.comm(collectives), sum(rings), extra, beside)
        return self._terms((*firsts, site.scatter.use.instruction), collectives, terms)

    def _ring(self, groups: Groups, shard: int, plan: GatherPlan | ScatterPlan, variant: Variant) -> int:
        left, right = link_load(plan)
        lists = device_lists(groups, self._header)
        both = variant.both and not self.one_at_a_time
        steps = max(left, right) if both else left + right
        carried = shard // plan.lanes if isinstance(plan, ScatterPlan) else shard
        return ring_time(self._machine, lists, carried, steps, both).time

    def _hops(self, groups: Groups, shard: int, hops: int) -> int:
        return ring_time(self._machine, device_lists(groups, self._header), shard, hops, both=False).time

    def _partials(
        self,
        use: EinsumUse,
        plan: GatherPlan | ScatterPlan,
        size: int,
        variant: Variant,
        lanes: Sequence[Mapping[tuple[int, int], int]] = (_WHOLE,),
    ) -> int:
        """How much longer the partial einsums of a plan take than the whole one; 0 where they are faster.

        `lanes` are the sizes that the operands have besides in each part of the result shard.
        """
        counts: dict[int, int] = {}
        for slots in plan.steps[:: len(lanes)]:
            for taken in variant.together(slots):
                counts[len(taken)] = counts.get(len(taken), 0) + 1
        return self._longer(use, size, counts, lanes)

    def _joined(
        self, use: EinsumUse, plan: GatherPlan | ScatterPlan, size: int, variant: Variant, *, gathers: bool
    ) -> int:
        """What it takes that einsums over several blocks have them, and what comes of them, in memory.

        A block that is sliced off, and an addition or an update in place that a piece of the result is for, would be
        part of the fusion of an einsum over a single block. `gathers`: blocks of one operand come from elsewhere.
        """
        blocks = sum(len(t) for slots in plan.steps for t in variant.together(slots) if len(t) > 1)
        if not blocks:
            return 0
        lanes = plan.lanes if isinstance(plan, ScatterPlan) else 1
        written = self._flow.instructions[use.instruction]
        sliced = [1 - use.side] if use.other_dim is not None else []
        sliced += [] if gathers else [use.side]
        lost = sum(self._apart(self._flow.instructions[written.operand_ids[side]].shape, size) for side in sliced)
        if use.output_dim is not None:
            lost += self._apart(written.shape, size * lanes)
        return blocks * lost

    def _adding(self, site: ScatterSite, shard: int, chains: int) -> Sequence[tuple[int, int]]:
        """Ways to add up all partial results: what that takes, and how much of it is waiting for a transfer.

        As part of the einsums they read what was added up before. An einsum that is added to the only chain waits for
        what arrives, though, unless the addition is one by itself.
        """
        size = site.groups.size
        if chains > 1:
            return ((size * self._memory(shard), 0),)
        apart = self._apart(self._flow.instructions[site.use.instruction].shape, size, operands=2)
        hop = self._hops(site.groups, shard, 1)
        return (((size - 1) * apart, 0), ((size - 1) * (self._memory(shard) + hop), (size - 1) * hop))

    def _apart(self, shape: ShapeProto, parts: int, operands: int = 1) -> int:
        """Time of an instruction by itself whose operands and result are one of so many `parts` of such an array."""
        work = Work()
        work.move(shape, operands / parts)
        work.move(shape, 1 / parts, Role.WRITTEN)
        return work_time(work, self._machine.chip)

    def _halves(self, site: ScatterSite) -> tuple[Mapping[tuple[int, int], int], ...]:
        """Sizes of the operands' halved dimensions in the two halves of the result shard."""
        written = self._flow.instructions[site.use.instruction]
        lhs, rhs = (self._flow.instructions[o].shape for o in written.operand_ids[:2])
        index = halved_index(read_einsum(written, lhs, rhs), site)
        if index is None:
            return (_WHOLE,)
        middle = (index.size + 1) // 2
        dims = [(side, dim) for side in (0, 1) if (dim := index.operand(side)) is not None]
        return tuple(dict.fromkeys(dims, length) for length in (middle, index.size - middle))

    def _taken(self, use: EinsumUse, blocks: int, at_once: int) -> int:
        """How much longer an einsum over `blocks` blocks takes in parts of `at_once` blocks each."""
        return self._longer(use, blocks, {at_once: blocks // at_once, blocks % at_once: 1})

    def _longer(
        self,
        use: EinsumUse,
        blocks: int,
        counts: Mapping[int, int],
        lanes: Sequence[Mapping[tuple[int, int], int]] = (_WHOLE,),
    ) -> int:
        """How much longer an einsum takes in `counts` parts, by how many of its blocks each takes; 0 where in less."""
        written = self._flow.instructions[use.instruction]
        length = self._flow.instructions[written.operand_ids[use.side]].shape.dimensions[use.dim]
        block = -(-length // blocks)
        whole = self._einsum(written, _WHOLE)
        parts = sum(
            count * self._einsum(written, {**lane, (use.side, use.dim): min(length, taken * block)})
            for lane in lanes
            for taken, count in counts.items()
            if count and taken
        )
        return max(0, parts - whole)

    def _lost_before(self, use: EinsumUse, *, gathers: bool) -> int:
        """Time of what the whole einsum's fusion computed of its operands and a loop finds in memory.

        `gathers`: the blocks of one operand come from elsewhere; otherwise they are sliced off it.
        """
        key = (use.instruction, gathers)
        found = self._lost_times.get(key)
        if found is None:
            sliced = {1 - use.side: use.other_dim} if gathers else {use.side: use.dim, 1 - use.side: use.other_dim}
            works = list(written_out(self._flow, self._editor, use, sliced))
            kernels = sum(work_time(work, self._machine.chip) for _, work in works)
            found = self._lost_times[key] = max(0, kernels - self._inside(use, works)) if works else 0
        return found

    def _inside(self, use: EinsumUse, works: Iterable[tuple[int, Work]]) -> int:
        """Time that the whole einsum took longer for computing `works` on the way, from what they read."""
        further = dict.fromkeys((Role.LHS, Role.RHS), 0.0)
        for side, work in works:
            further[Role(side)] += work.in_hbm[Role.READ] - work.in_hbm[Role.WRITTEN]
        written = self._flow.instructions[use.instruction]
        fused = einsum_time(self._flow.module, written, self._machine, further=further)
        return fused - self._modelled(written, _WHOLE)

    def _lost_behind(self, use: EinsumUse) -> int:
        """Time of what followed the whole einsum in its fusion and follows the loop by itself."""
        work = put_behind(self._flow, self._editor, use)
        return 0 if work is None else work_time(work, self._machine.chip)

    def _einsum(self, written: HloInstructionProto, sizes: Mapping[tuple[int, int], int]) -> int:
        modelled = self._modelled(written, sizes)
        given = self._given.get(written.id)
        if given is None:
            return modelled
        if sizes is _WHOLE:
            return given.time
        whole = self._modelled(written, _WHOLE)
        return round(modelled * given.time / whole) if whole else modelled

    def _modelled(self, written: HloInstructionProto, sizes: Mapping[tuple[int, int], int]) -> int:
        lhs, rhs = (self._flow.instructions[o].shape for o in written.operand_ids[:2])
        key = (
            written.opcode,
            *((*s.dimensions, s.element_type) for s in (lhs, rhs, written.shape)),
            written.dot_dimension_numbers.SerializeToString(),
            written.window.SerializeToString(),
            written.convolution_dimension_numbers.SerializeToString(),
            tuple(sizes.items()),
        )
        found = self._einsum_times.get(key)
        if found is None:
            found = einsum_time(self._flow.module, written, self._machine, sizes)
            self._einsum_times[key] = found
        return found

    def _collective_time(self, collective: Collective) -> int:
        modelled = self._modelled_collective(collective)
        given = self._given.get(collective.start)
        return modelled if given is None else given.time

    def _modelled_collective(self, collective: Collective) -> int:
        found = self._collective_times.get(collective.id)
        if found is None:
            groups = device_groups(collective.written, self._header)
            operands = sum(
                shapes.byte_count(self._flow.instructions[o].shape) for o in self._flow.operands[collective.start]
            )
            whole = operands * len(groups[0]) if collective.opcode == "all-gather" else operands
            opcode = run_as(collective.written, self._scattered)
            found = collective_time(self._machine, opcode, groups, whole).time
            self._collective_times[collective.id] = found
        return found

    def _shard(self, site: GatherSite) -> int:
        """Bytes of the shard; the operand of a taken-apart all-reduce is the whole array."""
        whole = shapes.byte_count(self._flow.instructions[site.operand].shape)
        return whole // site.groups.size if site.operand in site.collectives else whole

    def _is_scattered(self, site: ScatterSite) -> bool:
        return self._collectives[site.collective].opcode == "reduce-scatter"

    def _memory(self, size: int) -> int:
        """Moving `size` bytes to or from memory as part of an instruction that runs anyway."""
        work = Work()
        work.in_hbm[Role.READ] = float(size)
        return max(0, work_time(work, self._machine.chip) - work_time(Work(), self._machine.chip))


def _origins(given: Iterable[GivenTime | None]) -> tuple[Origin, ...]:
    """Where times come from, each origin once, in ascending order; the model's where nothing is given."""
    found = {Origin.MODEL if one is None else one.origin for one in given}
    return tuple(sorted(found)) or (Origin.MODEL,)


def _exposed(comp: int, ring: int, variant: Variant) -> int:
    """What of a ring its own einsums leave, and others may hide: nothing runs beside the steps of a loop."""
    return max(0, ring - comp) if variant.form == "unrolled" else 0


def as_they_come(compute: int, hop: int, shards: int, together: int) -> int:
    """Time of `compute` in parts that take so many shards `together`, which come from both sides, a `hop` apart."""
    parts = -(-shards // together)
    last = [min(shards, (part + 1) * together) - 1 for part in range(parts)]
    return max((k + 1) // 2 * hop + compute * (parts - part) // parts for part, k in enumerate(last))


def device_lists(groups: Groups, header: Header) -> Lists:
    """The members of a ring as devices, once for every replica (or partition)."""
    partitions, replicas = header.num_partitions, header.replica_count
    if groups.mode is Mode.PARTITION:
        return tuple(tuple(r * partitions + m for m in group) for r in range(replicas) for group in groups.members)
    return tuple(tuple(m * partitions + p for m in group) for p in range(partitions) for group in groups.members)
