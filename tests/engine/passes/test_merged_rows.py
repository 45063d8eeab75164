"""Rows of which a report says the same are one, and none is lost."""

from __future__ import annotations

from dataclasses import replace

from engine.passes.candidate import GateTerms
from engine.passes.rows import merged, rows_of
from tests.views.synthetic import variant


def test_rows_that_differ_in_their_names_alone_are_together() -> None:
    first = next(c for c in variant(1).candidates if c.gate is not None)
    again, other = replace(first, id="again", row="again"), replace(first, id="other", row="other", reason="not so")
    rows = rows_of([first, again, other])
    found = merged(rows)
    assert [[row.candidates[0].id for row in alike] for alike in found] == [[first.id, "again"], ["other"]]
    assert sorted(row.key for alike in found for row in alike) == sorted(row.key for row in rows)


def test_sites_of_a_row_of_which_different_things_are_said_are_apart() -> None:
    """The terms and the sentence beside a sum are those of every site in it."""
    site = next(c for c in variant(1).candidates if c.gate is not None)
    site = replace(site, row="layer", reason="saves", gate=GateTerms(2_000_000, 3_000_000, 1_000_000, 0))
    loses = replace(site, id="loses", reason="loses", gate=GateTerms(2_000_000, 3_000_000, 1_000_000, 9_000_000))
    nearly = replace(site, id="nearly", gate=GateTerms(2_000_001, 3_000_000, 1_000_000, 0))
    turns = replace(site, id="turns", trips=6)
    found = merged(rows_of([site, loses, nearly, turns]))
    assert [[c.id for row in alike for c in row.candidates] for alike in found] == [
        ["turns"], [site.id, "nearly"], ["loses"]
    ]  # fmt: skip
    assert {row.key for alike in found for row in alike} == {"layer"}
