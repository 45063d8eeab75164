"""Verdicts in words, each with the numbers it rests on."""

from __future__ import annotations

from collections.abc import Sequence

from engine.passes.candidate import GateTerms


def duration(picoseconds: int) -> str:
    """``850 ns``, ``3.1 µs``, ``120 µs``, ``14.2 ms``."""
    for unit, size in (("s", 10**12), ("ms", 10**9), ("µs", 10**6), ("ns", 10**3)):
        value = picoseconds / size
        if abs(value) >= 1:
            return f"{value:.0f} {unit}" if abs(value) >= 100 else f"{value:.1f} {unit}"
    return f"{picoseconds} ps"


def saved(terms: GateTerms) -> str:
    """Why the gate says yes."""
    if terms.ring <= terms.comp:
        return (
            f"saves {duration(terms.gain)} of {duration(terms.comm)}: the transfer ({duration(terms.ring)}) fits under"
            f" {duration(terms.comp)} of einsums"
        )
    return (
        f"saves {duration(terms.gain)}: {duration(terms.comp)} of einsums run under the transfer"
        f" ({duration(terms.ring)})"
    )


def weighed(terms: GateTerms) -> str:
    """Of something that is decomposed, whatever the gate says."""
    return saved(terms) if terms.gain >= 0 else f"decomposed although {lost(terms)}"


def lost(terms: GateTerms) -> str:
    """Why the gate says no."""
    parts = []
    if terms.ring > terms.comp:
        parts.append(f"exposed transfer {duration(terms.ring - terms.comp)}")
    if terms.extra or not parts:
        parts.append(f"extra {duration(terms.extra)}")
    return f"{' + '.join(parts)} > {duration(terms.comm)} saved"


def elsewhere(einsums: Sequence[str], winner: str, own: GateTerms, other: GateTerms) -> str:
    """Why the einsums overlap with another collective instead."""
    verb = "overlaps" if len(einsums) == 1 else "overlap"
    return (
        f"{listed(einsums)} {verb} with {winner} instead (gain {duration(other.gain)} there, {duration(own.gain)} here)"
    )


def read_by_none(others: Sequence[str], refused: Sequence[str]) -> str:
    """Why a gather has no einsum."""
    if refused:
        return f"read by no einsum that can work on shards: {'; '.join(refused)}"
    if not others:
        return "read by nobody"
    return f"read by no einsum: only by {listed(others)}"


def listed(names: Sequence[str]) -> str:
    """``a``, ``a and b``, ``a, b and 3 more``."""
    if len(names) <= 2:
        return " and ".join(names)
    return f"{names[0]}, {names[1]} and {len(names) - 2} more"
