"""The worker's part of a verification: prepares three modules, runs them on the same inputs, and collects the worst."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np
import numpy.typing as npt

from engine.control import Control
from engine.errors import LapstrakeError
from engine.execute import widening
from engine.execute.as_job import JobExecutable
from engine.execute.comparing import FLOAT64, Difference, compare, is_finite, is_zero, tolerance
from engine.execute.effort import check_ends, duration_text, forecast, operations
from engine.execute.inputs import DRAWS, Draw, Inputs, draw_inputs, load_inputs, widened
from engine.execute.legalize import legalize
from engine.execute.running import Executable
from engine.execute.tracing import Uses, moves_only, types_behind, uses_of
from engine.execute.verifying import Output, Verification
from engine.hlo.hlo_pb2 import HloModuleProto, ShapeProto
from engine.ir import shapes
from engine.ir.groups import written_lists
from engine.ir.module import Header, Module

Pieces = list[npt.NDArray[Any]]
"""One result array, by device."""
Results = list[Pieces]


SMALL = 1 << 29
"""Operations of all einsums on all devices below which compiling takes longer than running."""


RUNS = 4
"""Executions for each seed: of both modules, in their own types and in float64."""


@dataclass(frozen=True, slots=True)
class _Leaf:
    """One result array of the entry."""

    path: tuple[int, ...]
    shape: ShapeProto
    tolerance: float
    """0 where it must equal the original's bit by bit."""
    chosen: bool
    """Integers that floating-point numbers choose (an argmax): rounding may turn one, in float64 none."""


def compare_in_worker(
    original: Module,
    transformed: Module,
    seeds: tuple[int, ...],
    platform: str,
    inputs: str | None,
    deadline: float,
    *,
    control: Control,
) -> Verification:
    """Run both and compare; see `engine.execute.verifying.verify`."""
    each = _forecast(original, platform, RUNS * len(seeds), deadline)
    control.step(0.0, f"compiling {original.name} as loaded")
    runnable, changed = legalize(original), legalize(transformed)
    compiler = _compiler(platform, original)
    before = compiler.once(runnable)
    control.step(0.1, "compiling the transformed module")
    after = compiler.compile(changed)
    control.step(0.2, "compiling the float64 reference")
    references, notes = _references(runnable, changed, compiler)
    sources = _Sources(original, runnable, inputs, before, references)
    worst: dict[tuple[str, tuple[int, ...]], Output] = {}
    leaves = list(_leaves(runnable))
    turned = [0] * len(leaves)
    for count, seed in enumerate(seeds):
        control.step(0.3 + 0.7 * count / len(seeds), f"running with seed {seed}{each}")
        results = sources.run(seed)
        found = after.run(results.inputs)
        for k, leaf in enumerate(leaves):
            if references is not None and leaf.chosen:
                turned[k] = max(turned[k], _unequal(found[k], results.own[k]))
            for output in _outputs(leaf, seed, found[k], *results.leaf(k)):
                key = output.precision, leaf.path
                if key not in worst or output.error > worst[key].error:
                    worst[key] = output
    notes += [_turned_note(leaf, count) for leaf, count in zip(leaves, turned, strict=True) if count]
    if original.elided:
        elided = len(original.elided)
        left = "1 constant was" if elided == 1 else f"{elided} constants were"
        notes.append(f"{left} left out of the text: both modules ran with made-up values, the same for both.")
    elif transformed.elided:
        notes.append(
            "Constants were left out of the transformed module's text: it ran with made-up values, and its results "
            "mean nothing. Print it with large constants."
        )
    return Verification(
        tuple(worst.values()),
        "original" if references is None else "float64",
        original.header.devices,
        platform,
        seeds,
        (*notes, *sources.notes),
    )


def _forecast(module: Module, platform: str, executions: int, deadline: float) -> str:
    """What to add to what is said of the progress. Raises UsageError where the executions cannot end in time."""
    one = forecast(module, module.header.devices, executions) if platform == "cpu" else None
    if one is None:
        return ""
    check_ends(module.name, one, executions, deadline, "fewer seeds, a later deadline")
    return f", at least {duration_text(one.seconds)} each of {RUNS} times"


@dataclass(frozen=True, slots=True)
class _References:
    """Both modules computed in float64."""

    original: Executable
    transformed: Executable


@dataclass(frozen=True, slots=True)
class _Results:
    """What came of one draw of inputs."""

    inputs: Inputs
    own: Results
    """Of the original, in its own types."""
    expected: Results | None
    """Of the original in float64."""
    wide: Results | None
    """Of the transformed module in float64."""

    def leaf(self, k: int) -> tuple[Pieces, Pieces | None, Pieces | None]:
        expected = None if self.expected is None else self.expected[k]
        return self.own[k], expected, None if self.wide is None else self.wide[k]


class _Compiler:
    """Compiles for one platform and number of devices, and keeps what it made of the last original: variants of one
    module are verified one after the other."""

    def __init__(self, platform: str, header: Header, quickly: bool) -> None:
        self.key = platform, header, quickly
        self._made: type[Executable] = Executable if platform == "cpu" else JobExecutable
        self._header, self._quickly = header, quickly
        self._kept: dict[bytes, Executable] = {}

    def compile(self, proto: HloModuleProto) -> Executable:
        return self._made(proto, self._header, quickly=self._quickly)

    def once(self, proto: HloModuleProto) -> Executable:
        """The same, kept for the next time."""
        key = sha256(proto.SerializeToString(deterministic=True)).digest()
        if key not in self._kept:
            kept = list(self._kept.items())[-1:]  # an original and its reference
            self._kept = {**dict(kept), key: self.compile(proto)}
        return self._kept[key]


_compilers: list[_Compiler] = []


def _compiler(platform: str, original: Module) -> _Compiler:
    """The one for this original: code of small modules is made quickly rather than fast."""
    made = _Compiler(platform, original.header, sum(operations(original).values()) * original.header.devices < SMALL)
    if not _compilers or _compilers[0].key != made.key:
        _compilers[:] = [made]
    return _compilers[0]


def _references(
    runnable: HloModuleProto, changed: HloModuleProto, compiler: _Compiler
) -> tuple[_References | None, list[str]]:
    reason = widening.obstacle(runnable) or widening.obstacle(changed)
    if reason is None:
        try:
            before, after = compiler.once(widening.widen(runnable)), compiler.compile(widening.widen(changed))
            return _References(before, after), []
        except LapstrakeError as error:
            reason = str(error)
    return None, [f"Compared with the original instead of float64, which cannot be computed: {reason}."]


class _Sources:
    """Draws inputs on which the original gives finite results that do not vanish, and runs it on them."""

    def __init__(
        self,
        original: Module,
        runnable: HloModuleProto,
        path: str | None,
        before: Executable,
        references: _References | None,
    ) -> None:
        self.notes: list[str] = []
        self._original = original
        self._before, self._references = before, references
        self._uses: Uses = uses_of(runnable, original.header.num_partitions)
        self._given = None if path is None else load_inputs(path, original.proto, original.header)
        self._draws: tuple[Draw, ...] = DRAWS

    def run(self, seed: int) -> _Results:
        """Inputs, and what the original and both float64 modules make of them."""
        if self._given is not None:
            return self._rest(self._given, self._before.run(self._given))
        first = None
        for draw in self._draws:
            inputs = draw_inputs(self._original.proto, self._original.header, self._uses, seed, draw)
            own = self._before.run(inputs)
            if is_finite(own) and not is_zero(own):
                self._draws = (draw, *(d for d in self._draws if d != draw))  # most likely good for the next seed too
                return self._rest(inputs, own)
            first = first or (inputs, own)
        assert first is not None
        self.notes.append(
            f"With seed {seed} no way of drawing inputs gave results that are finite and not all zero: infinities and "
            "NaN were compared by their place."
        )
        return self._rest(*first)

    def _rest(self, inputs: Inputs, own: Results) -> _Results:
        if self._references is None:
            return _Results(inputs, own, None, None)
        wide = widened(inputs)
        return _Results(inputs, own, self._references.original.run(wide), self._references.transformed.run(wide))


def _leaves(runnable: HloModuleProto) -> Iterator[_Leaf]:
    size = _largest_group(runnable)
    entry = next(c for c in runnable.computations if c.id == runnable.entry_computation_id)
    by_id = {i.id: i for i in entry.instructions}
    root = by_id[entry.root_id]
    for path, shape in shapes.leaves(root.shape):
        if not shapes.is_array(shape):
            continue
        element = root
        if root.opcode == "tuple" and path:
            element = by_id[root.operand_ids[path[0]]]
        moved = moves_only(entry, element.id)
        allowed = 0.0 if moved else _allowed(runnable, element.id, shape, size)
        chosen = not moved and not allowed and any(tolerance(t, size) for t in types_behind(runnable, element.id))
        yield _Leaf(path, shape, allowed, chosen)


def _allowed(runnable: HloModuleProto, element: int, shape: ShapeProto, size: int) -> float:
    """Tolerance of a result: an f32 loss of bf16 layers is no more precise than they are. 0 for integers."""
    own = tolerance(shape.element_type, size)
    return max(tolerance(t, size) for t in types_behind(runnable, element)) if own else 0.0


def _largest_group(proto: HloModuleProto) -> int:
    """Most devices of any collective: how many partial sums another order of additions moves around."""
    found = [len(group) for c in proto.computations for i in c.instructions for group in written_lists(i)]
    return max(found, default=1)


def _unequal(found: Pieces, own: Pieces) -> int:
    """Elements that differ, over all devices."""
    return sum(int(np.count_nonzero(a != b)) for a, b in zip(found, own, strict=True))


def _turned_note(leaf: _Leaf, count: int) -> str:
    what = "1 integer differs" if count == 1 else f"{count:,} integers differ"
    return (
        f"Result {'.'.join(map(str, leaf.path)) or '0'} {shapes.text(leaf.shape)}: {what} in the module's own types, "
        "where rounding decides what is chosen, as in an argmax; compared in float64."
    )


def _outputs(
    leaf: _Leaf, seed: int, found: Pieces, own: Pieces, expected: Pieces | None, wide: Pieces | None
) -> Iterator[Output]:
    """Compare one result array. Integers, and what is only moved, are compared with the original's own; integers that
    floating-point numbers choose are not where they differ, but in float64."""
    if expected is None or wide is None:
        yield _as_output(leaf, "own", seed, compare(found, own), None, leaf.tolerance)
        return
    if leaf.tolerance == 0.0:
        difference = compare(found, own)
        if not (leaf.chosen and difference.error):
            yield _as_output(leaf, "own", seed, difference, None, 0.0)
        yield _as_output(leaf, "float64", seed, compare(wide, expected), None, 0.0)
        return
    own_error = compare(own, expected).error
    # A deep program's own rounding may exceed what one sum explains: ours may be as far from the truth, and as much
    # again for being rounded differently.
    allowed = max(leaf.tolerance, 2 * own_error) if np.isfinite(own_error) else leaf.tolerance
    yield _as_output(leaf, "own", seed, compare(found, expected), own_error, allowed)
    yield _as_output(leaf, "float64", seed, compare(wide, expected), None, FLOAT64)


def _as_output(
    leaf: _Leaf, precision: str, seed: int, difference: Difference, own_error: float | None, allowed: float
) -> Output:
    return Output(
        precision=precision,
        path=".".join(map(str, leaf.path)),
        shape=shapes.text(leaf.shape),
        error=difference.error,
        original_error=own_error,
        tolerance=allowed,
        seed=seed,
        device=difference.device,
        index=difference.index,
        found=difference.found,
        expected=difference.expected,
    )
