"""Through what the Export tab reaches the application: what it asks for, and what has come of it so far."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from engine.session.plan import Plan
from engine.session.tuning import Trial


@dataclass(frozen=True, slots=True)
class Wish:
    """What a search for a bundle is to do."""

    path: str
    """Folder or .zip that the bundle goes to."""
    dimensions: frozenset[str]
    """What is searched; the rest stays as in the active variant."""
    seconds: float | None
    """When the search ends at the latest."""
    memory_cap: int | None
    check: bool
    """Whether the plan is run against the original before it is bundled."""
    target: str = ""
    """Whose compiler chooses among the best plans; empty for the model alone."""


class Stage(StrEnum):
    """What is being done."""

    IDLE = ""
    SEARCHING = "searching"
    JUDGING = "asking the compiler"
    BUNDLING = "verifying and bundling"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a search, or a bundle, ended."""

    good: bool
    said: str
    """What came of it, in sentences."""
    way_out: str = ""
    """What to do about it, where it is not good."""
    warnings: tuple[str, ...] = ()
    """What the target's compiler will undo, with the flags that stop it."""


@dataclass(frozen=True, slots=True)
class Progress:
    """The search for the active module's plan, and the making of its bundle."""

    stage: Stage = Stage.IDLE
    fraction: float = 0.0
    message: str = ""
    base: int | None = None
    """Makespan of the module as loaded, in picoseconds."""
    trials: tuple[Trial, ...] = ()
    best: Plan | None = None
    """The plan that the search settled on; None where nothing was faster, or it has not ended."""
    costs: str = ""
    """Whose costs the trials are by: ``the model``."""
    outcome: Outcome | None = None


@dataclass(frozen=True, slots=True)
class Known:
    """What the active module's file says of the job it belongs to."""

    said: str = ""
    able: bool = True
    """False where no bundle can be made of it; `said` is why."""
    order_only: bool = False
    """Whether only the order of its instructions can be another."""


@dataclass(frozen=True, slots=True)
class Writing:
    """The last file that was written, or is being written."""

    format: str = ""
    running: bool = False
    outcome: Outcome | None = field(default=None)


class Exporter(Protocol):
    """What the tab may ask for; everything runs in jobs."""

    @property
    def progress(self) -> Progress: ...

    @property
    def writing(self) -> Writing: ...

    @property
    def known(self) -> Known: ...

    @property
    def targets(self) -> tuple[str, ...]:
        """Targets whose compilers are installed, for the active module's devices: ``tpu:v4:2x2x2``."""
        ...

    def watch(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call `listener` whenever any of the above would be another. Returns what ends that."""
        ...

    def write(self, to: str, path: str) -> None:
        """Write the active variant in one of `engine.export.contents.FORMATS`."""
        ...

    def kept(self, path: str) -> bool:
        """Whether a file is open here: nothing is written over it."""
        ...

    def tune(self, wish: Wish) -> None:
        """Search, verify, bundle."""
        ...

    def bundle(self, wish: Wish, plan: Plan) -> None:
        """Verify and bundle a plan without a search."""
        ...

    def stop(self) -> None:
        """End what is being done; what was found stays, and an old bundle too."""
        ...

    def copy(self, text: str) -> None:
        """Put a command onto the clipboard."""
        ...

    def suggested(self, suffix: str) -> str:
        """A path beside the active module for something that ends in `suffix`."""
        ...
