"""Alike candidates as one row: hundreds of sites of the same layer are read, and overridden, together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.passes.candidate import Candidate
from engine.quantities import time_text


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
    """Rows of which all that a report says is the same, together; sites of one row of which it says different things
    (their gate's terms as shown, the sentence, the trips of their loops) apart. By descending gain, as `rows_of`."""
    groups: dict[object, dict[str, list[Candidate]]] = {}
    for row in rows:
        for candidate in row.candidates:
            groups.setdefault(_said(candidate), {}).setdefault(row.key, []).append(candidate)
    found = [tuple(Row(key, tuple(members)) for key, members in alike.items()) for alike in groups.values()]
    return tuple(sorted(found, key=lambda alike: (not alike[0].candidates[0].chosen, -sum(row.gain for row in alike))))


def _said(candidate: Candidate) -> tuple[object, ...]:
    """What a report says of one site, but for its name."""
    gate = candidate.gate
    terms = (gate.comp, gate.comm, gate.beside, gate.ring, gate.extra, gate.gain) if gate else ()
    what = (candidate.chosen, candidate.kind, candidate.case, candidate.group_size, candidate.trips)
    return *what, tuple(map(time_text, terms)), candidate.reason
