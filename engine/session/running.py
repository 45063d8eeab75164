"""Runs variants on devices, against each other, and puts what was measured beside what was predicted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.control import QUIET, Control
from engine.execute.timing import DEFAULT, Entrant, RunOptions, Timing, measure
from engine.session.measured import Measured
from engine.session.variant import Variant


@dataclass(frozen=True, eq=False)
class Ran:
    """One variant's run."""

    variant: Variant
    """As predicted."""
    timing: Timing
    measured: Measured | None = None
    """Its profile, read back; None where none was asked for."""


@dataclass(frozen=True, eq=False)
class Run:
    """Variants of one module that were run in turn."""

    ran: tuple[Ran, ...]
    platform: str
    devices: int
    kind: str
    """What the runtime calls a device."""
    alone: bool
    """Whether one device computed alone; see `RunOptions.alone`."""
    notes: tuple[str, ...] = ()


def run_variants(variants: Sequence[Variant], options: RunOptions = DEFAULT, control: Control = QUIET) -> Run:
    """Run the modules of `variants`, all made from the same one, on the devices of a platform, each in its order.

    Raises UsageError for variants of different modules and wrong options, UnsupportedError for what cannot run there
    (by name; too large, with the bytes; too few devices, with what can be done instead), InputError for inputs that
    cannot be read or are all zero, WorkerError for a crash, a deadlock, no memory, or no end within the deadline,
    Cancelled.
    """
    entrants = [Entrant(v.name, v.program.module) for v in variants]
    found = measure(entrants, options, control)
    ran = tuple(Ran(variant, timing) for variant, timing in zip(variants, found.timings, strict=True))
    return Run(ran, found.platform, found.devices, found.kind, found.alone, found.notes)
