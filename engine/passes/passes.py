"""A pass is a frozen dataclass with a name and one method; its fields are its options."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

from engine.chips.machine import Machine
from engine.control import QUIET, Control
from engine.cost.program import Program
from engine.ir.module import Module
from engine.passes.candidate import Candidate
from engine.passes.fusion import Fusion


@dataclass(frozen=True, eq=False)
class Context:
    """What passes may ask about the world."""

    machine: Machine
    control: Control = QUIET
    trial: Callable[[Module], int] | None = None
    """How long a module takes under the plan's scheduler and budget, in picoseconds; None where nobody can say.
    For passes that try several ways. It costs about as much as evaluating a plan."""
    priced: Callable[[Module], Program] | None = None
    """The module as the simulator prices it, where times are given that replace the model's; None where none are."""


@dataclass(frozen=True, eq=False)
class Result:
    """What a pass gives back."""

    module: Module
    candidates: tuple[Candidate, ...] = ()
    fusions: tuple[Fusion, ...] = ()
    notes: tuple[str, ...] = ()

    def then(self, later: Result) -> Result:
        """The module of `later`, which was made from this one's, and what both say."""
        return Result(
            later.module,
            (*self.candidates, *later.candidates),
            (*self.fusions, *later.fusions),
            (*self.notes, *later.notes),
        )


@runtime_checkable
class Pass(Protocol):
    """Fields with defaults; values are str, int, bool or tuple[str, ...]."""

    name: ClassVar[str]

    def apply(self, module: Module, context: Context) -> Result:
        """A new module, or the same one when there is nothing to do."""
        ...
