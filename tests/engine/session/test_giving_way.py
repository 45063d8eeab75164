"""What became of a default plan is said in a few words, with what it gains."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.session.giving_way import change_in_words
from engine.session.plan import BEST_PASSES, Plan
from engine.session.variant import Variant
from tests.views.synthetic import variant


def made(passes: str, makespan_us: int, scheduler: str = "bottom-up") -> Variant:
    found = variant(1)
    metrics = replace(found.metrics, makespan=makespan_us * 1_000_000)
    return replace(found, plan=Plan(passes, scheduler), metrics=metrics, candidates=())


LEFT = BEST_PASSES.replace("decompose", "decompose{losing=a;b}", 1)
ONE = BEST_PASSES.replace("decompose", "decompose{losing=a}", 1)


@pytest.mark.parametrize(
    ("before", "now", "said"),
    [
        (made(BEST_PASSES, 50), made(BEST_PASSES, 50), ""),
        (made(BEST_PASSES, 50), made(LEFT, 38), "2 rows dropped: no gain, without them 12.0 µs faster"),
        (made(BEST_PASSES, 50), made(ONE, 38), "1 row dropped: no gain, without it 12.0 µs faster"),
        (made(LEFT, 50), made(ONE, 38), "1 row decomposed after all: 12.0 µs faster"),
        (
            made(BEST_PASSES, 50),
            made(ONE.replace("losing=a", "losing=a,chain=off"), 38),
            "1 row dropped, chains taken apart: 12.0 µs faster",
        ),
        (made(BEST_PASSES, 50), made("fuse", 38), "no decomposition: 12.0 µs faster than decomposed"),
        (made("fuse", 50), made(BEST_PASSES, 38), "decomposed after all: 12.0 µs faster"),
        (made("fuse", 50), made("fuse", 38, "top-down"), "in top-down order: 12.0 µs faster than bottom-up"),
        (made("fuse", 50), made("fuse", 50, "top-down"), "in top-down order: as fast as bottom-up"),
        (made(BEST_PASSES, 50), made("fuse", 50), "no decomposition: as fast as decomposed"),
        (made(BEST_PASSES, 50), made(LEFT, 50), "2 rows dropped: no gain, without them as fast"),
        (made(BEST_PASSES, 38), made(LEFT, 50), "2 rows dropped: 12.0 µs slower"),
    ],
)
def test_the_change_and_what_it_gains(before: Variant, now: Variant, said: str) -> None:
    assert change_in_words(before, now) == said


def test_all_rows_are_counted_where_nothing_is_decomposed() -> None:
    before = replace(made(BEST_PASSES, 50), candidates=tuple(c for c in variant(1).candidates if c.chosen))
    said = change_in_words(before, made("fuse", 38))
    assert said.endswith(" dropped: 12.0 µs faster than decomposed")
