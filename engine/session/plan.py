"""What the user chooses: passes, scheduler, budget, memory cap, and the machine to plan for."""

from __future__ import annotations

from dataclasses import dataclass, replace

from engine.chips.budget import Budget
from engine.ir.module import Module
from engine.ir.opcodes import COLLECTIVES
from engine.session.given import GivenFile

BEST_PASSES = "decompose,async-permute{kinds=supported},fuse"
"""The pipeline tried when the user names none: every choice in it is made by predicted gain. See `best_passes`."""

BEST_PASSES_FUSED = "decompose,async-permute{kinds=supported}"
"""The same for a module that was loaded after fusion, whose fusions are its compiler's choice."""

PLAIN_PASSES = "fuse{policy=default}"
"""What is done to a module that was loaded before fusion, to compare others with: as a compiler would run it, so that
fusion's gain is not taken for overlap's."""

WHOLE_PASSES = "async-permute{kinds=supported}"
"""What compilers do about waiting without decomposition: what a decomposed plan has to beat."""

WHOLE = "whole, asynchronous"
"""What the variant of `whole_plan` is called."""

DEFAULT_SCHEDULERS = ("memory", "bottom-up", "top-down")
"""Shown when the user names no scheduler."""


@dataclass(frozen=True, slots=True)
class MachineSpec:
    """A machine as the user names it; what is missing is inferred from the module."""

    chip: str = "tpu-v4"
    """Name of a shipped chip, or the path of a TOML file."""
    topology: str | None = None
    """``4x4x4``, with wrap marks as `engine.chips` reads them."""
    mesh: str | None = None
    """``x=8,y=8``."""
    costs: tuple[GivenFile, ...] = ()
    """Files whose times replace modelled ones, as `engine.cost.imports` reads them; among equals the later wins."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How a variant is made from a module. Text fields are in the forms that `Pipeline` and schedulers parse."""

    passes: str = ""
    scheduler: str = "bottom-up"
    budget: Budget | None = None
    """None is the chip's default."""
    memory_cap: int | None = None
    """Bytes; None is no cap."""


def plan_text(plan: Plan) -> str:
    """Passes and scheduler: ``decompose,async-permute | bottom-up``; without passes ``no passes | memory``."""
    return f"{plan.passes or 'no passes'} | {plan.scheduler}"


AS_LOADED = Plan(passes="", scheduler="as-loaded")
"""The module and its order untouched."""


def plain_plan(module: Module) -> Plan:
    """The plan of variant 0: the module as loaded, fused where it was loaded before fusion and carries no order: to
    fuse would lose that order, and with it what overlaps."""
    return AS_LOADED if _is_fused(module) or module.is_scheduled else replace(AS_LOADED, passes=PLAIN_PASSES)


def best_passes(module: Module) -> str:
    """The pipeline tried for `module` when the user names none."""
    return BEST_PASSES_FUSED if _is_fused(module) else BEST_PASSES


def waits_as_compiled(module: Module) -> bool:
    """Whether a compiler has scheduled the module and made collectives asynchronous: as loaded, it is what a compiler
    gets without our decomposition, and `whole_plan` would only undo its order."""
    return module.is_scheduled and any(f"{opcode}-start" in module.by_opcode for opcode in COLLECTIVES)


def whole_plan(module: Module, budget: Budget | None = None, memory_cap: int | None = None) -> Plan:
    """The plan that decomposes nothing: collectives asynchronous where the chip's compiler makes them so, in a good
    order, fused as variant 0 is."""
    passes = WHOLE_PASSES if _is_fused(module) else f"{WHOLE_PASSES},{PLAIN_PASSES}"
    return Plan(passes, "bottom-up", budget, memory_cap)


def _is_fused(module: Module) -> bool:
    return "fusion" in module.by_opcode
