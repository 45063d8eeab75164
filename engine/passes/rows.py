"""Alike candidates as one row: hundreds of sites of the same layer are read, and overridden, together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.passes.candidate import Candidate


@dataclass(frozen=True, slots=True)
class Row:
    """Candidates with the same `row` key and verdict, in the module's order."""

    key: str
    candidates: tuple[Candidate, ...]

    @property
    def gain(self) -> int:
        """Sum of the gains of all executions, in picoseconds; 0 where the gate was not asked."""
        return sum(c.gate.gain * c.trips for c in self.candidates if c.gate)


def rows_of(candidates: Sequence[Candidate]) -> tuple[Row, ...]:
    """Rows by descending gain of what was decomposed, then of what was not; a key whose verdicts differ is split."""
    groups: dict[tuple[str, bool], list[Candidate]] = {}
    for candidate in candidates:
        groups.setdefault((candidate.row or candidate.id, candidate.chosen), []).append(candidate)
    rows = [Row(key, tuple(members)) for (key, _), members in groups.items()]
    return tuple(sorted(rows, key=lambda row: (not row.candidates[0].chosen, -row.gain)))


def merged(rows: Sequence[Row]) -> tuple[tuple[Row, ...], ...]:
    """Rows of which all that a report says is the same, together, in the order of the first of each."""
    groups: dict[object, list[Row]] = {}
    for row in rows:
        first = row.candidates[0]
        said = (first.chosen, first.kind, first.case, first.group_size, first.gate, first.reason, row.gain)
        groups.setdefault(said, []).append(row)
    return tuple(map(tuple, groups.values()))
