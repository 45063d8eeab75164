"""Candidates grouped into rows of alike sites."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from engine.passes.candidate import Candidate
from engine.session import edits
from engine.session.plan import Plan
from engine.session.session import Entry, Session


class Verdict(StrEnum):
    """How a row is marked; the sign says it without colour too."""

    CHOSEN = "●"
    LEFT = "○"
    MIXED = "◐"


@dataclass(frozen=True)
class CollectiveRow:
    """Alike sites: same shapes and groups, op_name equal up to its numbers."""

    key: str
    sites: tuple[Candidate, ...]

    @property
    def first(self) -> Candidate:
        return self.sites[0]

    @property
    def verdict(self) -> Verdict:
        chosen = sum(site.chosen for site in self.sites)
        if chosen == len(self.sites):
            return Verdict.CHOSEN
        return Verdict.MIXED if chosen else Verdict.LEFT

    @property
    def gain(self) -> int | None:
        """Picoseconds that decomposing all of them saves, in all their runs; negative where it costs."""
        gains = [site.gate.gain * site.trips for site in self.sites if site.gate is not None]
        return sum(gains) if gains else None

    @property
    def spread(self) -> tuple[int, int] | None:
        """Least and greatest gain of one execution of one site, where they differ."""
        gains = [site.gate.gain for site in self.sites if site.gate is not None]
        return (min(gains), max(gains)) if gains and min(gains) != max(gains) else None

    @property
    def runs(self) -> int:
        return sum(site.trips for site in self.sites)


def rows_of_sites(candidates: Sequence[Candidate]) -> tuple[CollectiveRow, ...]:
    """Rows by gain, largest first; where nothing was gained or lost, in the module's order."""
    groups: dict[str, list[Candidate]] = {}
    for candidate in candidates:
        groups.setdefault(candidate.row or candidate.id, []).append(candidate)
    rows = [CollectiveRow(key, tuple(sites)) for key, sites in groups.items()]
    return tuple(sorted(rows, key=lambda row: (row.gain is None, -(row.gain or 0))))


def judging(session: Session) -> Entry | None:
    """The entry whose verdicts are listed: the active one, or the first of its module whose plan judges collectives."""
    entries = session.beside(session.active)
    return next((e for e in entries if e.variant is not None and e.variant.candidates), None)


def override_of(plan: Plan, site: Candidate) -> str | None:
    """``force``, ``forbid``, or None where the gate decides."""
    given = edits.options_of(plan, "decompose") or {}
    for verdict in ("force", "forbid"):
        if site.id in given.get(verdict, "").split(";"):
            return verdict
    return None
