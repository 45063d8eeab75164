"""Finds what one collective could overlap with: the einsums that read a gather, the einsum that a reduction sums up.

Searches start at the collective and go as far as its blocks stay blocks; whatever ends a search ends it with a reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from engine.hlo.hlo_pb2 import HloInstructionProto
from engine.ir.einsum import Einsum, NotAnEinsumError, Role, read_einsum
from engine.ir.groups import Groups, GroupsError, ring_groups
from engine.ir.literals import literal_array
from engine.passes.decompose.find.collectives import Collective, check_shapes
from engine.passes.decompose.find.flow import Flow
from engine.passes.decompose.find.positions import kept_blocks, sliced_dim
from engine.passes.decompose.find.scalars import Scalars
from engine.passes.decompose.find.tracing import back, is_blockwise, path_operand, through
from engine.passes.decompose.refusal import Refusal
from engine.passes.decompose.site import AllReduceSite, Case, EinsumUse, GatherSite, ScatterSite, Step
from engine.passes.decompose.verdicts import listed

_EINSUMS = frozenset({"dot", "convolution"})
_LONGEST_PATH = 100
"""Instructions that are followed between a collective and an einsum."""
_CASES = {
    Role.LHS: Case.NON_CONTRACTING,
    Role.RHS: Case.NON_CONTRACTING,
    Role.CONTRACTING: Case.CONTRACTING,
    Role.BATCH: Case.BATCH,
}


@dataclass(frozen=True, slots=True)
class Readers:
    """Who reads a blocked array, directly or through instructions that keep its blocks."""

    uses: tuple[EinsumUse, ...]
    """In the module's order."""
    others: tuple[str, ...]
    """Names of readers that need the whole array."""
    other_ids: tuple[int, ...]
    """Their ids, but for a computation's caller."""
    refused: tuple[str, ...]
    """Why einsums that read it cannot be done block by block."""

    def without(self, einsum: int, name: str, reason: str) -> Readers:
        """The same where an einsum among `uses`, called `name`, needs the whole array for a `reason`."""
        uses = tuple(u for u in self.uses if u.instruction != einsum)
        return Readers(uses, (*self.others, name), (*self.other_ids, einsum), (*self.refused, reason))


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


@dataclass(slots=True)
class _Search:
    """Collects `Readers`."""

    uses: list[EinsumUse] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    other_ids: list[int] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    def leave(self, written: HloInstructionProto) -> None:
        """Note a reader that needs the whole array."""
        self.others.append(written.name)
        self.other_ids.append(written.id)


@dataclass(frozen=True, slots=True)
class _Blocked:
    """A value on the way from a gather, blocked along `dim`."""

    value: int
    dim: int
    block: int
    blocks: int
    valid: int | None
    steps: tuple[Step, ...]


class Finder:
    """Searches one module; what it learns about einsums and indices is kept."""

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self._scalars = Scalars(flow)
        self._einsums: dict[int, Einsum | str] = {}

    def groups(self, collective: Collective) -> Groups:
        """The collective's groups as rings. Raises Refusal where none can run, or where there is nothing to move."""
        try:
            groups = ring_groups(collective.written, self.flow.module.header)
        except GroupsError as error:
            raise Refusal(str(error)) from None
        if groups.size == 1:
            raise Refusal("group of 1")
        return groups

    def einsum(self, instruction: int) -> Einsum:
        """The einsum that a dot or convolution computes. Raises Refusal for a true convolution."""
        known = self._einsums.get(instruction)
        if known is None:
            written = self.flow.instructions[instruction]
            lhs, rhs = (self.flow.instructions[o].shape for o in written.operand_ids[:2])
            try:
                known = read_einsum(written, lhs, rhs)
            except NotAnEinsumError as error:
                known = f"{written.name} is a {error}"
            self._einsums[instruction] = known
        if isinstance(known, str):
            raise Refusal(known)
        return known

    # --- AllGather → Einsum --------------------------------------------------------------------------------------

    def readers(self, value: int, dim: int, block: int, blocks: int) -> Readers:
        """Einsums and others that read `value`, which is `blocks` blocks of `block` elements along `dim`."""
        search = _Search()
        self._follow(_Blocked(value, dim, block, blocks, None, ()), search)
        seen: dict[int, EinsumUse | None] = {}
        for use in search.uses:
            seen[use.instruction] = None if use.instruction in seen else use
        uses = [use for use in seen.values() if use is not None]
        for einsum in (i for i, use in seen.items() if use is None):
            search.refused.append(f"both operands of {self.flow.name(einsum)} come from it")
            search.leave(self.flow.instructions[einsum])
        uses.sort(key=lambda use: self.flow.order[use.instruction])
        others, refused = tuple(dict.fromkeys(search.others)), tuple(dict.fromkeys(search.refused))
        return Readers(tuple(uses), others, tuple(dict.fromkeys(search.other_ids)), refused)

    def _follow(self, at: _Blocked, search: _Search) -> None:
        flow = self.flow
        if at.value in flow.roots:
            search.others.append(f"the result of {flow.module.computations[flow.computation(at.value)].name}")
        for user in flow.users(at.value):
            written = flow.instructions[user]
            if written.opcode in _EINSUMS:
                self._use(at, written, search)
                continue
            try:
                self._follow(self._stepped(at, written), search)
            except Refusal as reason:
                search.leave(written)
                if is_blockwise(written):
                    search.refused.append(str(reason))

    def _use(self, at: _Blocked, written: HloInstructionProto, search: _Search) -> None:
        for side in (k for k, o in enumerate(written.operand_ids[:2]) if o == at.value):
            try:
                index = self.einsum(written.id).at_operand(side, at.dim)
            except Refusal as reason:
                search.refused.append(str(reason))
                search.leave(written)
                continue
            if index is None:
                search.refused.append(f"{written.name} does not run over the gathered dimension")
                search.leave(written)
                continue
            case = _CASES[index.role]
            other = index.operand(1 - side) if case is not Case.NON_CONTRACTING else None
            search.uses.append(EinsumUse(written.id, case, side, at.dim, other, index.out, at.steps, at.valid))

    def _stepped(self, at: _Blocked, written: HloInstructionProto) -> _Blocked:
        """One instruction further. Raises Refusal."""
        flow = self.flow
        if len(at.steps) == _LONGEST_PATH:
            raise Refusal(f"more than {_LONGEST_PATH} instructions lie between it and an einsum")
        shape = flow.instructions[at.value].shape
        if written.opcode == "slice":
            valid = _cut_end(written, list(shape.dimensions), at.dim)
            step = Step(written.id, 0, at.dim, at.block)
            return _Blocked(written.id, at.dim, at.block, at.blocks, valid, (*at.steps, step))
        if not is_blockwise(written):
            raise Refusal(f"{written.name} ({written.opcode}) needs the whole array")
        operand = path_operand(flow, written)
        if written.operand_ids[operand] != at.value:
            raise Refusal(f"{written.name} ({written.opcode}) takes several arrays")
        if at.valid is not None and written.opcode in ("reshape", "bitcast"):
            raise Refusal(f"{written.name} reshapes blocks of which the last is partly padding")
        dim = through(written, shape, at.dim, at.blocks)
        block = at.block if at.valid is not None else written.shape.dimensions[dim] // at.blocks
        step = Step(written.id, operand, dim, block)
        return _Blocked(written.id, dim, block, at.blocks, at.valid, (*at.steps, step))

    # --- Einsum → ReduceScatter ----------------------------------------------------------------------------------

    def reduction(self, collective: Collective) -> Reduction:
        """The einsum behind a reduce-scatter or an all-reduce, and the site if it can be decomposed."""
        einsum: int | None = None
        try:
            path, einsum = self._producer(collective)
            groups = self._summed(collective)
            site = self._scatter(collective, path, einsum, groups)
        except Refusal as reason:
            return Reduction(einsum, None, str(reason), self._is_sliced(collective))
        return Reduction(einsum, site, "", is_sliced=True)

    def all_reduce(self, collective: Collective) -> tuple[AllReduceSite, Readers]:
        """A whole all-reduce between einsums, taken apart along the dimension with the most readers.

        Raises Refusal.
        """
        path, einsum = self._producer(collective)
        groups = self._summed(collective)
        sizes = list(self.flow.instructions[collective.id].shape.dimensions)
        best: tuple[AllReduceSite, Readers] | None = None
        for dim, size in enumerate(sizes):
            if size % groups.size:
                continue
            try:
                use = self._sliced(path, einsum, dim, groups.size)
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
        path, einsum = self._producer(collective)
        groups = self._summed(collective)
        id_, home, positions = collective.id, collective.computation, tuple(range(groups.size))
        sites: list[ScatterSite] = []
        refused = f"no dimension of it is divisible by {groups.size}"
        for dim, size in enumerate(self.flow.instructions[id_].shape.dimensions):
            if size % groups.size:
                continue
            try:
                use = self._sliced(path, einsum, dim, groups.size)
            except Refusal as reason:
                refused = str(reason)
                continue
            sites.append(ScatterSite(home, id_, id_, groups, positions, dim, use, gathered=True))
        if not sites:
            raise Refusal(f"its result is used whole; {refused}")
        return tuple(sites)

    def _producer(self, collective: Collective) -> tuple[tuple[HloInstructionProto, ...], int]:
        """The instructions between the einsum and the reduction, in order of data flow, and the einsum."""
        flow = self.flow
        check_shapes(flow, collective)
        operands = flow.operands[collective.start]
        path: list[HloInstructionProto] = []
        value = operands[0]
        while flow.opcodes[value] not in _EINSUMS:
            written = flow.instructions[value]
            if written.opcode == "pad":
                at = 0
            elif is_blockwise(written):
                at = path_operand(flow, written)
            else:
                raise Refusal(f"reduces {written.name} ({written.opcode}), not an einsum")
            if len(path) == _LONGEST_PATH:
                raise Refusal(f"more than {_LONGEST_PATH} instructions lie between it and an einsum")
            path.append(written)
            value = written.operand_ids[at]
        return tuple(reversed(path)), value

    def _summed(self, collective: Collective) -> Groups:
        reducer = self.flow.module.computations[collective.written.called_computation_ids[0]]
        opcode = self.flow.opcodes[reducer.root_id]
        if opcode != "add":
            raise Refusal(f"reduces by {opcode}, not by a sum")
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
            use = self._sliced(path, einsum, dim, groups.size)
            return ScatterSite(home, id_, id_, groups, tuple(range(groups.size)), dim, use)
        tail, cut = self._cut(collective)
        before = self.flow.instructions[tail[-1].id if tail else id_].shape
        at = sliced_dim(cut, tuple(before.dimensions))
        whole = before.dimensions[at]
        groups, positions = kept_blocks(cut, at, whole, groups, self.flow.module.header, self._scalars)
        dim, steps = self._backwards(tail, at, groups.size)
        use = self._sliced(path, einsum, dim, groups.size)
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

    def _sliced(self, path: Sequence[HloInstructionProto], einsum: int, dim: int, blocks: int) -> EinsumUse:
        """The einsum as the source of a scatter along `dim` of what the path ends in. Raises Refusal."""
        flow = self.flow
        for value in (einsum, *(p.id for p in path)):
            self._check_single(value)
        at, steps = self._backwards(path, dim, blocks)
        index = self.einsum(einsum).at_output(at)
        if index is None:
            raise Refusal(f"{flow.name(einsum)} does not run over the scattered dimension")
        valid = self._valid(path)
        if valid is None and index.size % blocks:
            raise Refusal(f"{index.size} elements do not divide into {blocks} blocks")
        side = 1 if index.role is Role.RHS else 0
        source = index.operand(side)
        assert source is not None
        other = index.rhs if index.role is Role.BATCH else None
        return EinsumUse(einsum, Case.SCATTER, side, source, other, at, steps, valid)

    def _check_single(self, value: int) -> None:
        flow = self.flow
        users = flow.users(value)
        if value in flow.roots:
            raise Refusal(f"{flow.name(value)} is also the result of its computation")
        if len(users) > 1:
            raise Refusal(f"{flow.name(value)} is read by {listed([flow.name(u) for u in users])}")

    def _backwards(self, path: Sequence[HloInstructionProto], dim: int, blocks: int) -> tuple[int, tuple[Step, ...]]:
        """The blocked dimension before `path`, whose result is blocked along `dim`, and the path as steps."""
        steps: list[Step] = []
        padded = False
        for written in reversed(path):
            block = -(-written.shape.dimensions[dim] // blocks)
            if written.opcode == "pad":
                _check_padding(self.flow, written, dim)
                steps.append(Step(written.id, 0, dim, block))
                padded = True
                continue
            if padded and written.opcode in ("reshape", "bitcast"):
                raise Refusal(f"{written.name} reshapes blocks of which the last is partly padding")
            operand = path_operand(self.flow, written)
            steps.append(Step(written.id, operand, dim, block))
            dim = back(written, self.flow.instructions[written.operand_ids[operand]].shape, dim, blocks)
        return dim, tuple(reversed(steps))

    def _valid(self, path: Sequence[HloInstructionProto]) -> int | None:
        for written in path:
            if written.opcode == "pad":
                before = self.flow.instructions[written.operand_ids[0]].shape.dimensions
                changed = [a for a, b in zip(before, written.shape.dimensions, strict=True) if a != b]
                return changed[0] if changed else None
        return None


def _cut_end(written: HloInstructionProto, sizes: list[int], dim: int) -> int:
    """What a slice leaves along `dim`, when all it takes away is the end of that dimension. Raises Refusal."""
    for d, (part, size) in enumerate(zip(written.slice_dimensions, sizes, strict=True)):
        if part.start or part.stride > 1 or (d != dim and part.limit != size):
            raise Refusal(f"{written.name} (slice) takes the blocks apart")
    return written.slice_dimensions[dim].limit


def _check_padding(flow: Flow, written: HloInstructionProto, dim: int) -> None:
    for d, part in enumerate(written.padding_config.dimensions):
        clean = not part.edge_padding_low and not part.interior_padding
        if not clean or part.edge_padding_high < 0 or (d != dim and part.edge_padding_high):
            raise Refusal(f"{written.name} pads more than the end of the scattered dimension")
    value = flow.instructions[written.operand_ids[1]]
    if value.opcode != "constant" or np.any(literal_array(value.literal)):
        raise Refusal(f"{written.name} pads with something else than zero")
