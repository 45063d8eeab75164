"""Who reads a blocked array: the einsums that can take it block by block, and whoever needs all of it."""

from __future__ import annotations

from dataclasses import dataclass

from engine.hlo.hlo_pb2 import HloInstructionProto
from engine.ir.einsum import Role
from engine.ir.flow import Flow
from engine.passes.decompose.find.einsums import EINSUMS, Einsums
from engine.passes.decompose.find.tracing import LONGEST_PATH, is_blockwise, path_operand, through
from engine.passes.decompose.refusal import Refusal
from engine.passes.decompose.site import Case, EinsumUse, Step

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


def readers_of(flow: Flow, einsums: Einsums, value: int, dim: int, block: int, blocks: int) -> Readers:
    """Einsums and others that read `value`, which is `blocks` blocks of `block` elements along `dim`."""
    return _Search(flow, einsums).found(value, dim, block, blocks)


@dataclass(frozen=True, slots=True)
class _Blocked:
    """A value on the way from a gather, blocked along `dim`."""

    value: int
    dim: int
    block: int
    blocks: int
    valid: int | None
    steps: tuple[Step, ...]


class _Search:
    """Follows one array, and collects its `Readers`."""

    def __init__(self, flow: Flow, einsums: Einsums) -> None:
        self._flow = flow
        self._einsums = einsums
        self._uses: list[EinsumUse] = []
        self._others: list[str] = []
        self._other_ids: list[int] = []
        self._refused: list[str] = []

    def found(self, value: int, dim: int, block: int, blocks: int) -> Readers:
        """Einsums and others that read `value`, which is `blocks` blocks of `block` elements along `dim`."""
        self._follow(_Blocked(value, dim, block, blocks, None, ()))
        seen: dict[int, EinsumUse | None] = {}
        for use in self._uses:
            seen[use.instruction] = None if use.instruction in seen else use
        uses = [use for use in seen.values() if use is not None]
        for einsum in (i for i, use in seen.items() if use is None):
            self._refused.append(f"both operands of {self._flow.name(einsum)} come from it")
            self._leave(self._flow.instructions[einsum])
        uses.sort(key=lambda use: self._flow.order[use.instruction])
        others, refused = tuple(dict.fromkeys(self._others)), tuple(dict.fromkeys(self._refused))
        return Readers(tuple(uses), others, tuple(dict.fromkeys(self._other_ids)), refused)

    def _follow(self, at: _Blocked) -> None:
        flow = self._flow
        if at.value in flow.roots:
            self._others.append(f"the result of {flow.module.computations[flow.computation(at.value)].name}")
        for user in flow.users(at.value):
            written = flow.instructions[user]
            if written.opcode in EINSUMS:
                self._use(at, written)
                continue
            try:
                self._follow(self._stepped(at, written))
            except Refusal as reason:
                self._leave(written)
                if is_blockwise(written):
                    self._refused.append(str(reason))

    def _use(self, at: _Blocked, written: HloInstructionProto) -> None:
        for side in (k for k, o in enumerate(written.operand_ids[:2]) if o == at.value):
            try:
                index = self._einsums.read(written.id).at_operand(side, at.dim)
            except Refusal as reason:
                self._refused.append(str(reason))
                self._leave(written)
                continue
            if index is None:
                self._refused.append(f"{written.name} does not run over the gathered dimension")
                self._leave(written)
                continue
            case = _CASES[index.role]
            other = index.operand(1 - side) if case is not Case.NON_CONTRACTING else None
            self._uses.append(EinsumUse(written.id, case, side, at.dim, other, index.out, at.steps, at.valid))

    def _stepped(self, at: _Blocked, written: HloInstructionProto) -> _Blocked:
        """One instruction further. Raises Refusal."""
        flow = self._flow
        if len(at.steps) == LONGEST_PATH:
            raise Refusal(f"more than {LONGEST_PATH} instructions lie between it and an einsum")
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

    def _leave(self, written: HloInstructionProto) -> None:
        """Note a reader that needs the whole array."""
        self._others.append(written.name)
        self._other_ids.append(written.id)


def _cut_end(written: HloInstructionProto, sizes: list[int], dim: int) -> int:
    """What a slice leaves along `dim`, when all it takes away is the end of that dimension. Raises Refusal."""
    for d, (part, size) in enumerate(zip(written.slice_dimensions, sizes, strict=True)):
        if part.start or part.stride > 1 or (d != dim and part.limit != size):
            raise Refusal(f"{written.name} (slice) takes the blocks apart")
    return written.slice_dimensions[dim].limit
