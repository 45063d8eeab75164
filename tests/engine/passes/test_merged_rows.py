"""Rows of which a report says the same are one, and none is lost."""

from __future__ import annotations

from dataclasses import replace

from engine.passes.rows import merged, rows_of
from tests.views.synthetic import variant


def test_rows_that_differ_in_their_names_alone_are_together() -> None:
    first = next(c for c in variant(1).candidates if c.gate is not None)
    again, other = replace(first, id="again", row="again"), replace(first, id="other", row="other", reason="not so")
    rows = rows_of([first, again, other])
    found = merged(rows)
    assert [[row.candidates[0].id for row in alike] for alike in found] == [[first.id, "again"], ["other"]]
    assert sorted(row.key for alike in found for row in alike) == sorted(row.key for row in rows)
