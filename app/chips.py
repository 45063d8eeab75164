"""For which chip a module is opened or added, and what is said where the chip of what is open cannot be used."""

from __future__ import annotations

from engine.chips.library import load_chip
from engine.errors import LapstrakeError
from engine.session.plan import MachineSpec
from engine.session.session import Entry, Session


def same_chip(entry: Entry | None) -> tuple[MachineSpec, str]:
    """The chip of what is open, for what takes its place, and a sentence where that chip cannot be used."""
    if entry is None:
        return MachineSpec(), ""
    trouble = _trouble(entry.machine.chip)
    if not trouble:
        return MachineSpec(entry.machine.chip), ""
    found = MachineSpec()
    return found, f"Opened for {found.chip}, since the chip of what was open before cannot be used: {trouble}"


def beside(session: Session, name: str) -> str:
    """What to say of a module called `name` that is added where the chip, which all variants share, cannot be used;
    empty where it can."""
    entry = session.active_entry
    trouble = _trouble(entry.machine.chip) if entry is not None else ""
    if not trouble:
        return ""
    return (
        f"{name} was added for the chip of what is open, which cannot be used: {trouble}\nChoose one in the plan line."
    )


def _trouble(chip: str) -> str:
    try:
        load_chip(chip)
    except LapstrakeError as error:
        return str(error)
    return ""
