"""Verdicts in words, each with the numbers it rests on."""

from __future__ import annotations

from collections.abc import Sequence

from engine.cost.costs import Origin
from engine.passes.candidate import GateTerms
from engine.quantities import time_text

_ORIGINS = {
    Origin.MODEL: "the model",
    Origin.COMPILER: "the compiler",
    Origin.MEASURED: "a measurement",
    Origin.TABLE: "your table",
}


def saved(terms: GateTerms) -> str:
    """Why the gate says yes."""
    if terms.ring <= terms.comp:
        return (
            f"saves {time_text(terms.gain)} of {time_text(terms.comm)}: the transfer ({time_text(terms.ring)}) fits"
            f" under {time_text(terms.comp)} of einsums{_beside(terms)}{_given(terms)}"
        )
    return (
        f"saves {time_text(terms.gain)}: {time_text(terms.comp)} of einsums run under the transfer"
        f" ({time_text(terms.ring)}){_beside(terms)}{_given(terms)}"
    )


def _given(terms: GateTerms) -> str:
    """Where times come from that are not the model's alone."""
    terms_from = (("collective", terms.comm_from), ("einsums", terms.comp_from))
    said = [
        f"{what} by {' and '.join(_ORIGINS[o] for o in origins)}"
        for what, origins in terms_from
        if origins != (Origin.MODEL,)
    ]
    return f" ({', '.join(said)}, the rest by the model)" if said else ""


def _beside(terms: GateTerms) -> str:
    """What other work hides, on the side where it hides more."""
    if not terms.beside:
        return ""
    more, less = ("the ring", "the collective") if terms.beside > 0 else ("the collective", "the ring")
    return f", and other work hides {time_text(abs(terms.beside))} more of {more} than of {less}"


def weighed(terms: GateTerms) -> str:
    """Of something that is decomposed, whatever the gate says."""
    return saved(terms) if terms.gain >= 0 else f"decomposed although {lost(terms)}"


def lost(terms: GateTerms) -> str:
    """Why the gate says no."""
    parts = []
    if terms.ring > terms.comp:
        parts.append(f"exposed transfer {time_text(terms.ring - terms.comp)}")
    if terms.extra or not parts:
        parts.append(f"extra {time_text(terms.extra)}")
    if terms.beside < 0:
        parts.append(f"{time_text(-terms.beside)} that other work hides of the collective")
    hidden = f" + {time_text(terms.beside)} that other work hides of the ring" if terms.beside > 0 else ""
    return f"{' + '.join(parts)} > {time_text(terms.comm)} saved{hidden}{_given(terms)}"


def elsewhere(einsums: Sequence[str], winner: str, own: GateTerms, other: GateTerms) -> str:
    """Why the einsums overlap with another collective instead."""
    verb = "overlaps" if len(einsums) == 1 else "overlap"
    gains = f"gain {time_text(other.gain)} there, {time_text(own.gain)} here"
    return f"{listed(einsums)} {verb} with {winner} instead ({gains})"


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
