"""The `fuse` pass: policies over the same decisions, so that what fusion does to overlap can be seen and changed."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, Literal

from engine.cost.program import Program
from engine.cost.programs import prepare
from engine.errors import UsageError
from engine.hlo.hlo_pb2 import HloInstructionProto
from engine.ir import shapes
from engine.ir.edit import Editor
from engine.ir.graphs import executed
from engine.ir.module import Module
from engine.passes.fuse.body import Body
from engine.passes.fuse.deciding import Choices, Decided, decide
from engine.passes.fuse.describing import describe
from engine.passes.fuse.emitting import Emitted, emit
from engine.passes.fuse.inlining import inline
from engine.passes.fuse.rewriting import rewrite
from engine.passes.fuse.unfusing import unfuse
from engine.passes.fusion import Fusion
from engine.passes.passes import Context, Result

MOST_TRIES = 16
"""Rows of contested einsums that `auto` tries, those with most at stake first."""

_NUMBERS = re.compile(r"\d+")

Stay = Callable[[str, int], bool]
"""(row of a contested einsum, picoseconds that staying apart is expected to save): whether it stays apart."""


@dataclass(frozen=True)
class Fuse:
    """Gather instructions into fusions. `overlap` keeps einsums out of fusions that wait for transfers they could
    hide, unless the simulator finds that slower as a whole; `default` does not think of it, `auto` tries both for each
    row of alike einsums and keeps what the simulator finds faster; `none` leaves all as it is."""

    name: ClassVar[str] = "fuse"
    policy: Literal["default", "overlap", "none", "auto"] = "overlap"
    together: tuple[str, ...] = field(default=(), metadata={"key": "with"})
    """READER:EINSUM: the einsum joins the fusion of that reader, whatever the policy says."""
    apart: tuple[str, ...] = ()
    """Instructions that begin a fusion of their own."""
    unfuse: tuple[str, ...] = ()
    """Fusions of the loaded module to take apart first."""
    rewrites: bool = True
    """Whether calls are inlined and idle copies go, as in compilers, concatenations become maxima of pads and reshapes
    move, where that lets more fuse."""

    @property
    def tries(self) -> bool:
        """Whether the result is one for a certain scheduler; `overlap` is content with any that overlaps."""
        return self.policy == "auto"

    def apply(self, module: Module, context: Context) -> Result:
        """Fuse every computation that runs. UsageError for names the module does not have."""
        context.control.step(0.0, "fusing")
        opened = unfuse(module, self.unfuse) if self.unfuse else module
        if self.policy == "none":
            return Result(opened)
        if self.rewrites:
            opened = rewrite(inline(opened))
        work = _Work(opened, context, self._choices(opened))
        if self.policy == "default":
            return work.made(lambda row, saving: False).result()
        context.control.step(0.1, "fusing with transfers in mind")
        overlap = work.made(lambda row, saving: saving > 0)
        if context.trial is None or not work.rows:
            return overlap.result()
        context.control.step(0.3, "fusing without")
        default = work.made(lambda row, saving: False)
        attempts = [(context.trial(overlap.module), overlap), (context.trial(default.module), default)]
        best = min(attempts, key=lambda pair: pair[0])
        chosen = best[1] if self.policy == "overlap" else work.tried(best, best[1] is overlap)
        return chosen.result()

    def _choices(self, module: Module) -> Choices:
        together = dict(_pair(text) for text in self.together)
        for name in (*together, *together.values(), *self.apart):
            if name not in module.by_name:
                raise UsageError(f"fuse: the module has no instruction '{name}'")
        return Choices(together, frozenset(self.apart))


def _pair(text: str) -> tuple[str, str]:
    reader, colon, einsum = text.partition(":")
    if not colon or not reader or not einsum:
        raise UsageError(f"fuse{{with}} takes READER:EINSUM, but '{text}' came")
    return reader, einsum


@dataclass(frozen=True, eq=False)
class _Attempt:
    """A module fused in one way. What was decided is put into words only for the one that is kept."""

    module: Module
    fusions: Callable[[], tuple[Fusion, ...]]

    def result(self) -> Result:
        return Result(self.module, fusions=self.fusions())


class _Work:
    """One module under several policies: what they share is computed once."""

    def __init__(self, module: Module, context: Context, choices: Choices) -> None:
        self._module = module
        self._context = context
        self._choices = choices
        self._bodies = {c: Body(module.computations[c]) for c in executed(module)}
        self.rows: dict[str, int] = {}
        """Row → picoseconds at stake, of the einsums that some policy might keep apart."""

    @cached_property
    def _program(self) -> Program:
        """Priced only where an einsum is contested."""
        return prepare(self._module, self._context.machine)

    def made(self, stay: Stay) -> _Attempt:
        """The module fused, contested einsums staying apart where `stay` says so."""
        editor = Editor(self._module)
        made: list[tuple[Body, Decided, tuple[Emitted, ...]]] = []
        for computation, body in self._bodies.items():
            decided = decide(body, self._judge(computation, body, stay), self._choices)
            made.append((body, decided, emit(editor, body, decided.clusters)))
        return _Attempt(editor.finish(), lambda: tuple(f for parts in made for f in describe(editor, *parts)))

    def tried(self, best: tuple[int, _Attempt], apart: bool) -> _Attempt:
        """Turn the decision of one row after the other and keep what is faster."""
        turned: set[str] = set()
        rows = sorted(self.rows, key=lambda row: -abs(self.rows[row]))[:MOST_TRIES]
        assert self._context.trial is not None
        for number, row in enumerate(rows):
            self._context.control.step(0.5 + 0.5 * number / len(rows), f"trying {row}")
            attempt = turned | {row}

            def stay(row: str, saving: int, attempt: set[str] = attempt) -> bool:
                return (apart and saving > 0) != (row in attempt)

            result = self.made(stay)
            time = self._context.trial(result.module)
            if time < best[0]:
                best, turned = (time, result), attempt
        return best[1]

    def _judge(self, computation: int, body: Body, stay: Stay) -> Callable[[int, tuple[int, ...]], bool]:
        def judge(einsum: int, dones: tuple[int, ...]) -> bool:
            costs = self._program.costs[computation]
            instruction = body.instructions[einsum]
            transfers = sum(self._transfer(computation, body, d) for d in dones)
            # Apart, the partial result goes to memory and comes back.
            traffic = round(2e12 * shapes.byte_count(instruction.shape) / self._context.machine.copy_bandwidth)
            saving = min(int(costs.compute[einsum]), transfers) - traffic
            row = row_of(instruction)
            self.rows[row] = self.rows.get(row, 0) + saving
            return stay(row, saving)

        return judge

    def _transfer(self, computation: int, body: Body, done: int) -> int:
        start = int(self._program.graphs[computation].partner[done])
        return int(self._program.costs[computation].transfer[start]) if start >= 0 else 0


def row_of(instruction: HloInstructionProto) -> str:
    """Key of alike einsums: same shape, op_name equal up to its numbers."""
    name = instruction.metadata.op_name or instruction.name
    return f"{_NUMBERS.sub('#', name)} {shapes.text(instruction.shape)}"
