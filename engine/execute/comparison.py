"""The worker's part of a verification: prepares three modules, runs them on the same inputs, and collects the worst."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from engine.control import Control
from engine.errors import LapstrakeError
from engine.execute import widening
from engine.execute.comparing import Difference, compare, is_finite, is_zero, tolerance
from engine.execute.inputs import DRAWS, Draw, Inputs, draw_inputs, load_inputs, widened
from engine.execute.legalize import legalize
from engine.execute.running import Executable
from engine.execute.tracing import Uses, moves_only, uses_of
from engine.execute.verifying import Output, Verification
from engine.hlo.hlo_pb2 import HloModuleProto, ShapeProto
from engine.ir import shapes
from engine.ir.groups import written_lists
from engine.ir.module import Module

Results = list[list[npt.NDArray[Any]]]


@dataclass(frozen=True, slots=True)
class _Leaf:
    """One result array of the entry."""

    path: tuple[int, ...]
    shape: ShapeProto
    tolerance: float
    exact: bool
    """Whether it must equal the original's bit by bit."""


def compare_in_worker(
    original: Module,
    transformed: Module,
    seeds: tuple[int, ...],
    platform: str,
    inputs: str | None,
    *,
    control: Control,
) -> Verification:
    """Run both and compare; see `engine.execute.verifying.verify`."""
    control.step(0.0, f"compiling {original.name} as loaded")
    runnable = legalize(original)
    before = Executable(runnable, original.header)
    control.step(0.1, "compiling the transformed module")
    after = Executable(legalize(transformed), transformed.header)
    control.step(0.2, "compiling the float64 reference")
    reference, notes = _reference(runnable, original)
    sources = _Sources(original, runnable, inputs, (before, reference))
    leaves = list(_leaves(runnable))
    worst: list[Output | None] = [None] * len(leaves)
    for count, seed in enumerate(seeds):
        control.step(0.3 + 0.7 * count / len(seeds), f"running with seed {seed}")
        given, expected, own = sources.run(seed)
        found = after.run(given)
        for k, leaf in enumerate(leaves):
            output = _output(leaf, seed, found[k], own[k], None if expected is None else expected[k])
            last = worst[k]
            if last is None or output.error > last.error:
                worst[k] = output
    if original.elided:
        notes.append(
            f"{len(original.elided)} constants were left out of the text: both modules ran with the same made-up ones."
        )
    outputs = tuple(output for output in worst if output is not None)
    return Verification(
        outputs,
        "original" if reference is None else "float64",
        original.header.devices,
        platform,
        seeds,
        (*notes, *sources.notes),
    )


def _reference(runnable: HloModuleProto, original: Module) -> tuple[Executable | None, list[str]]:
    reason = widening.obstacle(runnable)
    if reason is None:
        try:
            return Executable(widening.widen(runnable), original.header), []
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
        executables: tuple[Executable, Executable | None],
    ) -> None:
        self.notes: list[str] = []
        self._original = original
        self._before, self._reference = executables
        self._uses: Uses = uses_of(runnable, original.header.num_partitions)
        self._given = None if path is None else load_inputs(path, original.proto, original.header)
        self._draws: tuple[Draw, ...] = DRAWS

    def run(self, seed: int) -> tuple[Inputs, Results | None, Results]:
        """Inputs, results of the reference (if there is one) and of the original."""
        if self._given is not None:
            return self._run(self._given)
        attempts = []
        for draw in self._draws:
            inputs = draw_inputs(self._original.proto, self._original.header, self._uses, seed, draw)
            attempt = self._run(inputs)
            own = attempt[2]
            if is_finite(own) and not is_zero(own):
                self._draws = (draw, *(d for d in self._draws if d != draw))  # most likely good for the next seed too
                return attempt
            attempts.append(attempt)
        self.notes.append(
            f"With seed {seed} no way of drawing inputs gave results that are finite and not all zero: infinities and "
            "NaN were compared by their place."
        )
        return attempts[0]

    def _run(self, inputs: Inputs) -> tuple[Inputs, Results | None, Results]:
        own = self._before.run(inputs)
        return inputs, None if self._reference is None else self._reference.run(widened(inputs)), own


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
        exact = moves_only(entry, element.id)
        yield _Leaf(path, shape, 0.0 if exact else tolerance(shape.element_type, size), exact)


def _largest_group(proto: HloModuleProto) -> int:
    """Most devices of any collective: how many partial sums another order of additions moves around."""
    found = [len(group) for c in proto.computations for i in c.instructions for group in written_lists(i)]
    return max(found, default=1)


def _output(
    leaf: _Leaf,
    seed: int,
    found: list[npt.NDArray[Any]],
    own: list[npt.NDArray[Any]],
    expected: list[npt.NDArray[Any]] | None,
) -> Output:
    """Compare one result array. Integers, and what is only moved, are compared with the original's own."""
    exact = leaf.exact or leaf.tolerance == 0.0
    if expected is None or exact:
        difference, own_error = compare(found, own), None
    else:
        difference, own_error = compare(found, expected), compare(own, expected).error
    # A deep program's own rounding may exceed what one sum explains: ours may be as far from the truth, and as much
    # again for being rounded differently.
    allowed = leaf.tolerance if own_error is None or not np.isfinite(own_error) else max(leaf.tolerance, 2 * own_error)
    return _as_output(leaf, seed, difference, own_error, allowed)


def _as_output(leaf: _Leaf, seed: int, difference: Difference, own_error: float | None, allowed: float) -> Output:
    return Output(
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
