"""No gain is counted over what is not priced alike: by tune, by --require-gain, or in a bundle's words."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from app.cli.main import main
from engine.cost.costs import Origin
from engine.cost.imports import ImportedCosts
from engine.hlo.reading import read_here
from engine.session.evaluation import Evaluator
from engine.session.fairness import fair_base, is_faster
from engine.session.plan import BEST_PASSES, WHOLE, Plan, plain_plan
from engine.session.pruning import best_default, default_variants
from engine.session.tuning import tune, without_decomposition
from engine.session.variant import UNLIKE, best_of, gain_in_words
from tests.places import SAMPLES

SAMPLE = SAMPLES / "mlp_fig3.hlo"
DEAR = 500_000_000
"""Picoseconds, five times what the model gives a collective: its ring, which the model prices, looks like a gain."""


@cache
def dear(*names: str) -> Evaluator:
    table = ImportedCosts("c.csv", Origin.TABLE, dict.fromkeys(names, DEAR))
    return Evaluator(read_here(SAMPLE.read_bytes()), imports=(table,) if names else ())


def test_what_is_not_priced_alike_is_not_faster() -> None:
    for at, counts in ((dear("all-gather"), False), (dear(), True)):
        base, best = at.evaluate(plain_plan(at.module)), at.evaluate(Plan(BEST_PASSES))
        assert best.metrics.makespan < base.metrics.makespan
        assert is_faster(best, base) is counts
        assert (UNLIKE in gain_in_words(base, best)) is not counts
        assert not fair_base(at, base).priced_unlike(base)


def test_where_no_plan_is_named_none_is_taken_that_is_not_priced_alike() -> None:
    """It looks fastest, since what it replaces was given a long time; the best is what can be compared."""
    at = dear("all-gather", "all-reduce")
    shown = default_variants(at)
    base = shown[0]
    fastest = min(shown, key=lambda variant: variant.metrics.makespan)
    assert fastest.priced_unlike(base)
    best, other = best_default(at)
    assert best.name == WHOLE
    assert best.metrics.makespan <= base.metrics.makespan
    assert other is not None
    assert other.priced_unlike(base)
    assert best_of(shown).name == WHOLE
    assert best_of([fastest], base) is fastest  # where there is nothing else


def test_a_search_leaves_what_it_cannot_compare() -> None:
    at = dear("all-gather")
    found = tune(at)
    assert not found.best.priced_unlike(found.base)
    assert not found.best.priced_unlike(found.against)
    unlike = [t for t in found.trials if t.unlike]
    assert unlike
    assert min(t.makespan or 0 for t in unlike) < found.best.metrics.makespan  # tempting, and left
    # The other collective, which the model prices in both, is decomposed all the same.
    chosen = {at.module.instructions[c.collective].name for c in found.best.candidates if c.chosen}
    assert chosen == {"all-reduce"}
    assert found.gains


def test_where_nothing_can_be_compared_nothing_gains() -> None:
    found = tune(dear("all-gather", "all-reduce"))
    assert not found.gains
    whole = without_decomposition(found.trials)
    assert whole is not None
    assert not whole.unlike


def costs_of(tmp_path: Path, *names: str) -> str:
    table = tmp_path / "c.csv"
    table.write_text("".join(f"{name},{DEAR / 1e6}\n" for name in names))
    return str(table)


def test_a_report_requires_a_gain_that_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = [
        "report",
        str(SAMPLE),
        "--passes",
        "decompose{forbid=all-reduce;all-gather.2},async-permute,fuse{policy=overlap}",
        "--require-gain",
    ]
    assert main([*asked, "--quiet"]) == 0
    capsys.readouterr()
    assert main([*asked, "--costs", costs_of(tmp_path, "all-gather")]) == 1
    assert "no variant is faster than the module as loaded; what is marked ≠" in capsys.readouterr().err


@pytest.mark.parametrize("anyway", [False, True])
def test_tune_bundles_no_gain_that_does_not_count(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], anyway: bool
) -> None:
    out, costs = tmp_path / "b.zip", costs_of(tmp_path, "all-gather", "all-reduce")
    asked = ["tune", str(SAMPLE), "--costs", costs, "-o", str(out), "--no-verify", "--require-gain", "--quiet"]
    assert main([*asked, *(["--bundle-anyway"] if anyway else [])]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "as no gain" in said
    assert "not priced alike: given times of all-gather, all-reduce" in said
    assert "nothing found is faster than the module" in said
    assert out.exists() is anyway
