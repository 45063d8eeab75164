"""Finds what one collective could overlap with: the einsums that read a gather, the einsum that a reduction sums up.

Searches start at the collective and go as far as its blocks stay blocks; whatever ends a search ends it with a reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.hlo.hlo_pb2 import HloInstructionProto
from engine.ir.flow import Flow
from engine.ir.groups import Groups, GroupsError, ring_groups
from engine.ir.scalars import Scalars
from engine.passes.decompose.find.collectives import Collective
from engine.passes.decompose.find.einsums import Einsums
from engine.passes.decompose.find.positions import kept_blocks, sliced_dim
from engine.passes.decompose.find.producers import backwards, producer, sliced
from engine.passes.decompose.find.readers import Readers, readers_of
from engine.passes.decompose.find.tracing import is_blockwise, path_operand
from engine.passes.decompose.refusal import Refusal
from engine.passes.decompose.site import AllReduceSite, GatherSite, ScatterSite
from engine.passes.decompose.verdicts import listed


@dataclass(frozen=True, slots=True)
class Reduction:
    """What a reduction sums up, and how its result is cut."""

    einsum: int | None
    """The einsum whose result it reduces; None where it reduces something else."""
    site: ScatterSite | None
    reason: str
    """Why there is no site; empty where there is one."""
    is_sliced: bool = False
    """Whether one dynamic-slice is all that reads the result."""


class Finder:
    """Searches one module; what it learns about einsums and indices is kept."""

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self._scalars = Scalars(flow)
        self._einsums = Einsums(flow)

    def groups(self, collective: Collective) -> Groups:
        """The collective's groups as rings. Raises Refusal where none can run, or where there is nothing to move."""
        try:
            groups = ring_groups(collective.written, self.flow.module.header)
        except GroupsError as error:
            raise Refusal(str(error)) from None
        if groups.size == 1:
            raise Refusal("group of 1")
        return groups

    def readers(self, value: int, dim: int, block: int, blocks: int) -> Readers:
        """Einsums and others that read `value`, which is `blocks` blocks of `block` elements along `dim`."""
        return readers_of(self.flow, self._einsums, value, dim, block, blocks)

    def reduction(self, collective: Collective) -> Reduction:
        """The einsum behind a reduce-scatter or an all-reduce, and the site if it can be decomposed."""
        einsum: int | None = None
        try:
            path, einsum = producer(self.flow, collective)
            groups = self._summed(collective)
            site = self._scatter(collective, path, einsum, groups)
        except Refusal as reason:
            return Reduction(einsum, None, str(reason), self._is_sliced(collective))
        return Reduction(einsum, site, "", is_sliced=True)

    def all_reduce(self, collective: Collective) -> tuple[AllReduceSite, Readers]:
        """A whole all-reduce between einsums, taken apart along the dimension with the most readers.

        Raises Refusal.
        """
        path, einsum = producer(self.flow, collective)
        groups = self._summed(collective)
        sizes = list(self.flow.instructions[collective.id].shape.dimensions)
        best: tuple[AllReduceSite, Readers] | None = None
        for dim, size in enumerate(sizes):
            if size % groups.size:
                continue
            try:
                use = sliced(self.flow, self._einsums, path, einsum, dim, groups.size)
            except Refusal:
                continue
            readers = self.readers(collective.id, dim, size // groups.size, groups.size)
            if readers.uses and (best is None or len(readers.uses) > len(best[1].uses)):
                id_, home = collective.id, collective.computation
                positions = tuple(range(groups.size))
                scatter = ScatterSite(home, id_, id_, groups, positions, dim, use)
                gather = GatherSite(home, (id_,), id_, dim, groups, readers.uses, bool(readers.others))
                best = AllReduceSite(home, scatter, gather), readers
        if best is None:
            raise Refusal(self._no_reader(collective.id))
        return best

    def gathered_again(self, collective: Collective) -> tuple[ScatterSite, ...]:
        """A whole all-reduce of an einsum as a scatter and an all-gather, once along each dimension that allows it.

        Raises Refusal where there is none.
        """
        path, einsum = producer(self.flow, collective)
        groups = self._summed(collective)
        id_, home, positions = collective.id, collective.computation, tuple(range(groups.size))
        sites: list[ScatterSite] = []
        refused = f"no dimension of it is divisible by {groups.size}"
        for dim, size in enumerate(self.flow.instructions[id_].shape.dimensions):
            if size % groups.size:
                continue
            try:
                use = sliced(self.flow, self._einsums, path, einsum, dim, groups.size)
            except Refusal as reason:
                refused = str(reason)
                continue
            sites.append(ScatterSite(home, id_, id_, groups, positions, dim, use, gathered=True))
        if not sites:
            raise Refusal(f"its result is used whole; {refused}")
        return tuple(sites)

    def _summed(self, collective: Collective) -> Groups:
        reducer = self.flow.module.computations[collective.written.called_computation_ids[0]]
        opcode = self.flow.opcodes[reducer.root_id]
        if opcode != "add":
            raise Refusal(f"reduces by {opcode}, not by a sum")
        root = next(i for i in reducer.instructions if i.id == reducer.root_id)
        added = {self.flow.opcodes[o] for o in root.operand_ids}
        if added != {"parameter"} or len(set(root.operand_ids)) != 2:
            raise Refusal(f"reduces by more than the sum of two values ({reducer.name})")
        return self.groups(collective)

    def _scatter(
        self, collective: Collective, path: Sequence[HloInstructionProto], einsum: int, groups: Groups
    ) -> ScatterSite:
        home, id_ = collective.computation, collective.id
        if collective.opcode == "reduce-scatter":
            dim = collective.written.dimensions[0]
            whole, part = (
                self.flow.instructions[i].shape.dimensions[dim] for i in (self.flow.operands[collective.start][0], id_)
            )
            if part * groups.size != whole:
                raise Refusal(f"scatters {whole} elements as {part} in groups of {groups.size}")
            use = sliced(self.flow, self._einsums, path, einsum, dim, groups.size)
            return ScatterSite(home, id_, id_, groups, tuple(range(groups.size)), dim, use)
        tail, cut = self._cut(collective)
        before = self.flow.instructions[tail[-1].id if tail else id_].shape
        at = sliced_dim(cut, tuple(before.dimensions))
        whole = before.dimensions[at]
        groups, positions = kept_blocks(cut, at, whole, groups, self.flow.module.header, self._scalars)
        dim, steps = backwards(self.flow, tail, at, groups.size)
        use = sliced(self.flow, self._einsums, path, einsum, dim, groups.size)
        return ScatterSite(home, id_, cut.id, groups, positions, dim, use, steps)

    def _cut(self, collective: Collective) -> tuple[list[HloInstructionProto], HloInstructionProto]:
        """The instructions between an all-reduce and the dynamic-slice that is its only reader, and the slice."""
        flow, value = self.flow, collective.id
        tail: list[HloInstructionProto] = []
        while True:
            reader = flow.only_reader(value)
            if reader is None:
                raise Refusal(self._not_sliced(value))
            written = flow.instructions[reader]
            if written.opcode == "dynamic-slice" and written.operand_ids[0] == value:
                return tail, written
            if not is_blockwise(written) or path_operand(flow, written) != list(written.operand_ids).index(value):
                raise Refusal(f"its result is not sliced by position: read by {written.name} ({written.opcode})")
            tail.append(written)
            value = reader

    def _is_sliced(self, collective: Collective) -> bool:
        try:
            self._cut(collective)
        except Refusal:
            return False
        return True

    def _not_sliced(self, value: int) -> str:
        flow = self.flow
        names = [f"{flow.name(u)} ({flow.opcodes[u]})" for u in flow.users(value)]
        slices = [u for u in flow.users(value) if flow.opcodes[u] == "dynamic-slice"]
        if value in flow.roots:
            names.append(f"the caller of {flow.module.computations[flow.computation(value)].name}")
        if slices and len(names) > 1:
            others = [n for n in names if not n.startswith(f"{flow.name(slices[0])} ")]
            return f"result also read by {listed(others)}"
        return f"its result is not sliced by position: read by {listed(names)}"

    def _no_reader(self, value: int) -> str:
        return f"{self._not_sliced(value)}; taking it apart would need an einsum that reads it"
