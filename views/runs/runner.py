"""Through what the pane Runs reaches what runs, verifies, profiles and compiles; and what it is shown of that."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from engine.execute.devices import Platform
from engine.execute.timing import RunOptions, Timing
from engine.execute.verifying import Verification
from engine.session.variant import Variant


class Task(StrEnum):
    """What can be done with variants on devices; the words of the buttons."""

    RUN = "Run"
    VERIFY = "Verify"
    PROFILE = "Profile"


class Stage(StrEnum):
    """How far the last task is."""

    IDLE = "idle"
    RUNNING = "running"
    DONE = "done"
    CANCELLED = "cancelled"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Wish:
    """How to run: what the pane's controls say."""

    platform: str = "cpu"
    repeats: int = 10
    seed: int = 0
    seeds: int = 1
    """Sets of inputs that are verified with."""
    inputs: str = ""
    """An .npz file; empty for random inputs."""
    alone: bool = False
    """Whether one device computes its part alone."""
    as_job: bool = False
    """Whether CPU devices run what jit makes of the module inside a job."""

    def options(self, *, profile: bool = False) -> RunOptions:
        """The same for the engine."""
        return RunOptions(
            platform=self.platform,
            repeats=self.repeats,
            seed=self.seed,
            inputs=self.inputs or None,
            profile=profile,
            alone=self.alone,
            as_job=self.as_job,
        )


@dataclass(frozen=True, slots=True)
class Progress:
    """The last task, as it is shown."""

    stage: Stage = Stage.IDLE
    title: str = ""
    """What is or was done: ``timing A, B on 8 CPU devices``."""
    job: int = 0
    """Number of the job while it runs."""
    text: str = ""
    """Why it failed."""
    task: Task | None = None
    """What Try again would do; None for what is tried again otherwise."""
    notes: tuple[str, ...] = ()
    """What to know about the results, each one sentence."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What is known of one variant from running it."""

    timing: Timing | None = None
    run: int = 0
    """Number of the run that it was timed in: only times of one run are compared."""
    origin: str = ""
    """Where it was timed: ``8 CPU devices``."""
    verification: Verification | None = None
    trouble: str = ""
    """Why it could not be verified."""


@dataclass(frozen=True, slots=True)
class CompiledRow:
    """What a production compiler made of one module. Its cycles are no measured time."""

    key: str
    """Of the entry that shows its schedule."""
    name: str
    cycles: int
    waiting: int
    predicted: int
    """Picoseconds, by the compiler's own costs."""
    model: int
    """Picoseconds, by our model of the same instructions in the same order."""
    counts: bool
    """Whether the compiler's figure may be compared: one permute each way at a time."""
    link_load: float
    seconds: float
    """That compiling took."""


class Runner(Protocol):
    """What the pane may ask for. Everything is answered later, and told to those who watch."""

    @property
    def platforms(self) -> tuple[Platform, ...]:
        """Platforms that were looked for; empty before."""
        ...

    @property
    def looking(self) -> bool:
        """Whether devices are being looked for right now."""
        ...

    @property
    def progress(self) -> Progress: ...

    @property
    def compiling(self) -> Progress: ...

    @property
    def compiled(self) -> tuple[CompiledRow, ...]:
        """Of the last compilation; the first is what the others are compared with."""
        ...

    def outcome(self, variant: Variant) -> Outcome | None:
        """What running `variant` gave; None where it was not run."""
        ...

    def look(self) -> None:
        """Look for devices (again)."""
        ...

    def start(self, task: Task, keys: Sequence[str], wish: Wish) -> None:
        """Do something with the variants of entries."""
        ...

    def compile(self, target: str) -> None:
        """Compile the active module, and the active plan of it, for a target."""
        ...

    def watch(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call `listener` whenever something here would answer differently. Returns what ends that."""
        ...
