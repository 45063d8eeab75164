"""Runs the original and the transformed module on devices and compares their numbers.

`verify` is what callers use: it checks what can be checked without XLA, and has the rest done by `verify_in_worker` in
a process of its own, where a crash, a deadlock or an endless loop hurts nobody.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from engine import worker
from engine.control import QUIET, Control
from engine.errors import OutOfMemory, UsageError
from engine.execute.endings import explain
from engine.execute.environment import PLATFORMS, environment
from engine.execute.legalize import refuse
from engine.execute.memory import check_fits, least_bytes
from engine.hlo.verifying import verify as verify_proto
from engine.ir import shapes
from engine.ir.module import Module

DEADLINE = 1800.0
"""Seconds that a verification may take."""

RENDEZVOUS = 300.0
"""Seconds that a collective may wait for other devices before it counts as a deadlock."""


TELLING = 0.5
"""Tolerance, of the largest value, from which on a comparison tells nothing."""


@dataclass(frozen=True, slots=True)
class Output:
    """One result array: how far the transformed module is from the reference, on all devices and seeds."""

    precision: str
    """``own``: computed in the program's types, against what rounding explains. ``float64``: both modules computed in
    float64, where they must agree nearly exactly. The second finds what the first cannot see: a wrong gradient that
    is added to a weight a million times as large."""
    path: str
    """Index into the result tuple: ``0``, ``2.1``; empty for a result that is no tuple."""
    shape: str
    error: float
    """Largest |found - expected| over the largest |expected|; whether the elements differ (1 or 0) for integers."""
    original_error: float | None
    """The same for the original module; None where it is itself the reference."""
    tolerance: float
    seed: int
    device: int
    index: tuple[int, ...]
    found: str
    expected: str

    @property
    def equal(self) -> bool:
        return self.error <= self.tolerance

    @property
    def tells(self) -> bool:
        """Whether its tolerance is small enough for a wrong number to show: where the program amplifies rounding, the
        original in its own types is as far from the truth as anything else would be."""
        return self.tolerance < TELLING

    @property
    def place(self) -> str:
        at = ",".join(map(str, self.index))
        wide = ", computed in float64" if self.precision == "float64" else ""
        return f"result {self.path or '0'} {self.shape}, device {self.device}, element [{at}], seed {self.seed}{wide}"


@dataclass(frozen=True, slots=True)
class Verification:
    """What came of comparing two modules."""

    outputs: tuple[Output, ...]
    reference: str
    """``float64``, or ``original`` where the program cannot be computed in float64."""
    devices: int
    platform: str
    seeds: tuple[int, ...]
    notes: tuple[str, ...] = ()

    @property
    def equal(self) -> bool:
        return all(output.equal for output in self.outputs)

    @property
    def worst(self) -> Output | None:
        """The output that is furthest over, or closest to, its tolerance; None without outputs."""
        return max(self.outputs, key=_excess, default=None)

    def __str__(self) -> str:
        verdict = "equal" if self.equal else "NOT EQUAL"
        seeds = f"seed {self.seeds[0]}" if len(self.seeds) == 1 else f"seeds {self.seeds[0]} to {self.seeds[-1]}"
        where = f"on {self.devices} {self.platform} device{'s' if self.devices != 1 else ''}, {seeds}"
        vague = [output for output in self.outputs if not output.tells]
        told = [output for output in self.outputs if output.tells]
        worst = max(told, key=_excess) if told and self.equal else self.worst
        if worst is None:
            return f"{verdict} {where}: the module has no results"
        against = "float64" if self.reference == "float64" else "the original"
        own = "" if worst.original_error is None else f"; the original's own is {worst.original_error:.2g}"
        values = f"{worst.found}, expected {worst.expected}" if worst.error else "exactly as expected"
        unsaid = f". {_vague_text(vague)}" if vague and self.equal else ""
        return (
            f"{verdict} {where}: worst error {worst.error:.2g} of the largest value against {against} "
            f"(tolerance {worst.tolerance:.2g}{own}), at {worst.place}: {values}{unsaid}"
        )

    def as_json(self) -> dict[str, Any]:
        worst = self.worst
        return {
            "equal": self.equal,
            "reference": self.reference,
            "platform": self.platform,
            "devices": self.devices,
            "seeds": list(self.seeds),
            "worst": None if worst is None else _output_json(worst),
            "outputs": [_output_json(output) for output in self.outputs],
            "notes": list(self.notes),
        }


def verify(
    original: Module,
    transformed: Module,
    *,
    devices: int | None = None,
    seed: int = 0,
    seeds: int = 1,
    platform: str = "cpu",
    inputs: str | None = None,
    deadline: float = DEADLINE,
    rendezvous: float | None = None,
    control: Control = QUIET,
) -> Verification:
    """Run both modules on the same inputs (random for `seeds` seeds from `seed` on, or an .npz file) and compare.

    `devices`: how many must take part: what the module needs, if given. `rendezvous`: seconds after which a collective
    that waits for other devices is a deadlock; 300, or half of the deadline, by default.

    Raises UsageError for modules with different parameters or results and for wrong counts, UnsupportedError for what
    cannot run here (by name; too large, with the bytes), WorkerError for a crash, a deadlock, no memory, or no end
    within `deadline` seconds, InputError for invalid HLO and for a bad `inputs` file, Cancelled.
    """
    if seeds < 1:
        raise UsageError(f"at least one seed is needed, but {seeds} came")
    needed = original.header.devices
    if devices is not None and devices != needed:
        raise UsageError(
            f"the module is partitioned for {needed} devices and runs on exactly as many; {devices} were asked for. "
            "Partition the program for another mesh to run it on another number"
        )
    check_runnable(original, transformed, platform)
    stuck = min(RENDEZVOUS, deadline / 2) if rendezvous is None else rendezvous
    try:
        found = worker.call(
            "engine.execute.comparison:compare_in_worker",
            original,
            transformed,
            tuple(range(seed, seed + seeds)),
            platform,
            inputs,
            deadline,
            environment=environment(needed, platform, stuck),
            deadline=deadline,
            control=control,
        )
    except (worker.Died, worker.TimedOut, OutOfMemory) as error:
        raise explain(error, original.name, needed, platform, deadline) from None
    assert isinstance(found, Verification)
    return found


def check_runnable(original: Module, transformed: Module, platform: str, *, alone: bool = False) -> None:
    """What can be told without XLA: two valid modules, alike from outside, of operations that can run, not too large.

    `alone`: on one device, without the others.

    Raises UsageError, InputError, UnsupportedError.
    """
    if platform not in PLATFORMS:
        raise UsageError(f"the platform is one of {', '.join(PLATFORMS)}, but '{platform}' came")
    verify_proto(original.proto, "the original module")
    verify_proto(transformed.proto, "the transformed module")
    _check_alike(original, transformed)
    if platform == "cpu":
        refuse(original)
        refuse(transformed)
        largest = max(least_bytes(original), least_bytes(transformed))
        devices = original.header.devices
        check_fits(original.name, largest // devices if alone else largest, 1 if alone else devices)


def _check_alike(original: Module, transformed: Module) -> None:
    if original.header.devices != transformed.header.devices:
        raise UsageError(
            f"the modules run on {original.header.devices} and {transformed.header.devices} devices; they cannot be "
            "compared"
        )
    before, after = original.proto.host_program_shape, transformed.proto.host_program_shape
    for what, a, b in (
        ("parameters", shapes.tuple_of(before.parameters), shapes.tuple_of(after.parameters)),
        ("results", before.result, after.result),
    ):
        if not shapes.same(a, b):
            raise UsageError(f"the modules differ in their {what}: {shapes.text(a)} and {shapes.text(b)}")


def _excess(output: Output) -> tuple[bool, float]:
    return (not output.equal, output.error / output.tolerance if output.tolerance else output.error)


def _vague_text(vague: Sequence[Output]) -> str:
    """That comparisons in the program's own types tell nothing, and how far rounding alone takes them."""
    most = max(output.original_error or 0.0 for output in vague)
    results = "1 result" if len(vague) == 1 else f"{len(vague)} results"
    return (
        f"In the program's own types {results} cannot be compared: rounding is amplified, and the original itself is "
        f"up to {most:.2g} of the largest value from float64"
    )


def _output_json(output: Output) -> dict[str, Any]:
    return {**asdict(output), "index": list(output.index), "equal": output.equal}
