"""What the time of a fusion counts for, in the lists of where the time of one variant went in another."""

from __future__ import annotations

from functools import cache

import pytest

from engine.export.contents import content_of
from engine.hlo.reading import read_here
from engine.ir.module import Module
from engine.session.correspondence import correspond
from engine.session.evaluation import Evaluator
from engine.session.matching import Match
from engine.session.plan import Plan, best_passes, plain_plan
from engine.session.variant import Variant
from engine.timeline.difference import Difference, differences
from tests.places import SAMPLES

US = 1_000_000
"""Picoseconds."""


@cache
def sample(name: str) -> Module:
    return read_here((SAMPLES / name).read_bytes(), name)


@cache
def pair(name: str) -> tuple[Variant, Variant]:
    """A sample as loaded, and decomposed."""
    module, evaluator = sample(name), Evaluator(sample(name))
    return evaluator.evaluate(plain_plan(module)), evaluator.evaluate(Plan(best_passes(module), "bottom-up"))


def rows_of(match: Match) -> tuple[Difference, ...]:
    return differences(match.base.timeline, match.base_times, match.other.timeline, match.other_times)


def test_a_piece_comes_from_its_own_einsum_alone() -> None:
    loaded, made = sample("mlp_fig3.hlo"), pair("mlp_fig3.hlo")[1].program.module
    pieces = [i for i in made.instructions.values() if i.opcode == "fusion" and i.name.startswith("dot.1.partial")]
    assert len(pieces) == 4
    assert {made.origins_of(piece.id) for piece in pieces} == {(loaded.by_name["dot.1"].id,)}


def test_each_einsum_has_the_time_of_its_own_pieces() -> None:
    base, other = pair("mlp_fig3.hlo")
    match, loaded = Match(base, other), sample("mlp_fig3.hlo")
    found = {loaded.instructions[row.key].name: row for row in rows_of(match)}
    first, second = found["dot"], found["dot.1"]
    assert (first.base.compute, first.other.compute) == pytest.approx((170 * US, 193 * US), rel=0.02)
    assert (second.base.compute, second.other.compute) == pytest.approx((161 * US, 193 * US), rel=0.02)
    assert first.stream == pytest.approx(23 * US, abs=US)
    assert second.stream == pytest.approx(32 * US, abs=US)
    assert not {"max.6", "max.7", "reshape.9", "dynamic-slice.9"} & found.keys()


@pytest.mark.parametrize("name", ["mlp_fig3.hlo", "mlp_chain_train_8_bf16.hlo", "decoder_fig2_scan_4_f32.hlo"])
def test_the_rows_add_up_to_what_the_makespans_differ_by(name: str) -> None:
    base, other = pair(name)
    rows = rows_of(Match(base, other))
    assert rows
    whole = other.metrics.makespan - base.metrics.makespan
    # Times of loop iterations that are not shown are means of those that are, in whole picoseconds.
    assert sum(row.stream for row in rows) == pytest.approx(whole, abs=len(rows))


@pytest.mark.parametrize("name", ["mlp_fig3.hlo", "mlp_chain_train_8_bf16.hlo", "decoder_fig2_scan_4_f32.hlo"])
def test_a_fusion_of_the_file_counts_as_the_one_that_the_pass_makes(name: str) -> None:
    loaded = sample(name)
    evaluator = Evaluator(loaded)
    base = evaluator.evaluate(plain_plan(loaded))
    assert any(i.opcode == "fusion" for i in base.program.module.instructions.values())
    file = read_here(content_of(base, "hlo", base, loaded), "fused.hlo")
    other = Evaluator(file).evaluate(plain_plan(file))
    assert other.metrics.makespan == base.metrics.makespan
    assert not rows_of(Match(base, other, correspond(loaded, file)))
