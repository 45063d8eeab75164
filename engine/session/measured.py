"""A profile as a variant beside the prediction: its timeline, and instruction by instruction how far off we were."""

from __future__ import annotations

from dataclasses import dataclass

from engine.control import QUIET, Control
from engine.profile.profile import Profile
from engine.session.variant import Variant


@dataclass(frozen=True, slots=True)
class Observation:
    """One instruction, predicted and measured. Times in picoseconds of all its executions in one step."""

    instruction: int
    """Id."""
    name: str
    transfer: bool
    """Whether the times are those of a transfer from start to done, or of a blocking collective."""
    executions: int
    """Measured, in one step on one device."""
    predicted: int
    measured: int
    """Mean over devices and the profile's steps."""

    @property
    def error(self) -> float | None:
        """(predicted - measured) / measured; None where nothing was measured."""
        return (self.predicted - self.measured) / self.measured if self.measured else None


@dataclass(frozen=True, slots=True)
class Unmatched:
    """A name of the profile that no instruction of the module has."""

    name: str
    count: int
    """Events, on all devices."""
    time: int
    """Picoseconds of all of them."""


@dataclass(frozen=True, eq=False)
class Measured:
    """What a profile says of a variant's module."""

    variant: Variant
    """`source` is MEASURED: the timeline is one execution on one device, the metrics are its. It shares the program,
    plan and schedule of `predicted`."""
    predicted: Variant
    observations: tuple[Observation, ...]
    """Every instruction that has a measured or a predicted time, longest measured first."""
    unmatched: tuple[Unmatched, ...]
    """Longest first; empty where every event belongs to an instruction."""
    events: int
    """Of the profile."""
    matched: int
    """Of those, how many belong to an instruction of the module."""
    executions: int
    """Steps in the profile, on the device that ran most."""
    notes: tuple[str, ...] = ()

    @property
    def overlaps(self) -> bool:
        """Whether transfers could run beside compute: not on CPU devices, where starts and dones are synchronous."""
        raise NotImplementedError


def measured_variant(
    predicted: Variant,
    profile: Profile,
    *,
    device: int = 0,
    execution: int | None = None,
    name: str = "measured",
    control: Control = QUIET,
) -> Measured:
    """`profile` as a variant beside `predicted`, whose module was run.

    The timeline shows one `execution` (None: the one of median length) on one `device` (number among the profile's).
    Raises InputError where no event of the profile belongs to the module, UsageError for a device or an execution that
    it does not have.
    """
    raise NotImplementedError
