"""Whether what a file holds belongs to a module: refused by name where it cannot, doubted where it hardly does."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from engine.cost.imports import ImportedCosts
from engine.errors import InputError
from engine.ir.module import Module
from engine.session.measured import Measured

LEAST = 0.25
"""The part of what takes time that is found again in the right module, at least: compilers rename what they fuse."""
_NUMBER = re.compile(r"[._]\d+$")
_NAMED = 3


def check_devices(devices: int, module: Module, path: str, what: str) -> None:
    """Raises InputError where collectives in a file name another number of devices than `module` runs on."""
    own = module.header.devices
    if devices > 1 and own > 1 and devices != own:
        raise InputError(
            f"{path}: {what} of {module.name} on {own} devices was expected, but this one is of {devices} devices: "
            "open the module that it was made of, or add that beside this one (File → Add a module)"
        )


def schedule_doubts(name: str, module: Module, path: str, found: int, timed: int) -> tuple[str, ...]:
    """What speaks against a compiler's module called `name` being made of `module`, of which `found` of `timed`
    instructions that take time come."""
    doubts = _other_name(name, module.name, path)
    if timed and found < LEAST * timed:
        doubts += (
            f"Only {found:,} of the {timed:,} instructions that take time in {path} are in {module.name}: it may be a "
            "schedule of another module.",
        )
    return doubts


def profile_doubts(measured: Measured, devices: int, module: Module, path: str) -> tuple[str, ...]:
    """What speaks against a profile of so many devices being one of `module`."""
    doubts: tuple[str, ...] = ()
    own = module.header.devices
    if devices > own:
        doubts += (f"{path} is of {devices} devices, but {module.name} runs on {own}.",)
    if measured.events and measured.matched < LEAST * measured.events:
        doubts += (
            f"Only {measured.matched:,} of {measured.events:,} events in {path} belong to an instruction of "
            f"{module.name}: it may be a profile of another module, or of another plan.",
        )
    return doubts


def cost_doubts(
    costs: ImportedCosts, devices: int, names: Sequence[Collection[str]], module: Module, path: str
) -> tuple[str, ...]:
    """What speaks against times of so many devices (0: unknown) being of `module`, whose variants have those `names`.

    Raises InputError where none of the names is there, or the schedule that they come from is for other devices.
    """
    check_devices(devices, module, path, "costs")
    given = {*costs.times, *costs.branches}
    known = max((sum(name in own for name in given) for own in (module.by_name, *names)), default=0)
    if not known:
        some = ", ".join(sorted(given)[:_NAMED])
        raise InputError(
            f"{path}: times of instructions of {module.name} were expected, but none of its {len(given):,} names is "
            f"there ({some}{' …' if len(given) > _NAMED else ''}): give the costs of this module, or open the module "
            "that these are of"
        )
    if known < LEAST * len(given):
        return (
            f"Only {known:,} of the {len(given):,} names in {path} are instructions of {module.name}: its costs may be "
            "of another module. “costs” in the plan line says what is not used, and removes it.",
        )
    return ()


def _other_name(one: str, two: str, path: str) -> tuple[str, ...]:
    bare = {_NUMBER.sub("", name) for name in (one, two)}
    if len(bare) < 2 or not all(bare):
        return ()
    return (f"{path} is of a module called {one}, but the one that is open is called {two}.",)
