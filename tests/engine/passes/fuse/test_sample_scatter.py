"""The reduce-scatter of a shipped training step: fusion exposes its permutes, one of two ways of overlap hides them.

The gradient of a weight in the large two-layer MLP of `samples`, bf16 over 16 chips: on TPU v4 a step's einsum takes
longer than the permute beside it, so a transfer that is not hidden is the fault of fusion or of the form.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from engine.hlo.reading import read_here
from engine.session.evaluation import Evaluator
from engine.session.plan import Plan
from engine.session.variant import Variant
from engine.timeline.timeline import Category
from tests.places import SAMPLES

SAMPLE = SAMPLES / "mlp_fig2_train_16_large.hlo"
SITE, OTHERS = "all-reduce", "all-gather;all-gather.1;all-reduce.1"
LOOP, LINE = "form=rolled,unroll=1,ring=one", "form=unrolled,unroll=1,ring=one"
TWO_IN_LOOP, TWO_IN_LINE = "form=rolled,unroll=2,ring=one", "form=unrolled,unroll=2,ring=one"


@cache
def evaluator() -> Evaluator:
    return Evaluator(read_here(SAMPLE.read_bytes()))


@cache
def evaluated(form: str, policy: str) -> Variant:
    """The one site in a form, under a policy of fusion; everything else stays whole."""
    site = f"force={SITE},forbid={OTHERS},chain=off,{form}"
    return evaluator().evaluate(Plan(f"decompose{{{site}}},async-permute,fuse{{policy={policy}}}", "bottom-up"))


def exposed(variant: Variant) -> int:
    """Picoseconds that compute waits for permutes."""
    timeline, module = variant.timeline, variant.program.module
    gaps = np.flatnonzero(timeline.category == Category.EXPOSED)
    waited = zip(timeline.waits_for[gaps].tolist(), timeline.duration[gaps].tolist(), strict=True)
    return sum(duration for id_, duration in waited if "permute" in module.instructions[id_].opcode)


def terms() -> tuple[int, int]:
    """Picoseconds of one partial einsum and of one permute."""
    (site,) = (c for c in evaluated(LOOP, "overlap").candidates if c.id == SITE)
    assert site.gate is not None
    return site.gate.comp // 16, site.gate.ring // 15


def test_the_site_computes_longer_than_it_sends() -> None:
    einsum, permute = terms()
    assert einsum > 1.4 * permute


@pytest.mark.parametrize("form", [LOOP, LINE])
def test_default_exposes_the_transfers_of_one_chain_and_overlap_hides_them(form: str) -> None:
    default, overlap = evaluated(form, "default"), evaluated(form, "overlap")
    _, permute = terms()
    assert exposed(default) > (14.9 if form == LOOP else 8) * permute  # of 15
    assert exposed(overlap) == 0
    assert overlap.metrics.makespan < default.metrics.makespan


@pytest.mark.parametrize("policy", ["default", "overlap"])
@pytest.mark.parametrize("form", [TWO_IN_LOOP, TWO_IN_LINE])
def test_two_chains_hide_them_under_either_policy(form: str, policy: str) -> None:
    variant = evaluated(form, policy)
    opcodes = [opcode for graph in variant.program.graphs.values() for opcode in graph.opcodes]
    assert opcodes.count("collective-permute-done") == (4 if form == TWO_IN_LOOP else 15)
    assert exposed(variant) == 0


def test_both_directions_in_one_loop_wait_for_both_arrivals_only_by_default() -> None:
    form = "form=rolled,unroll=1,ring=both,blocks=separate"
    default, overlap = evaluated(form, "default"), evaluated(form, "overlap")
    assert exposed(default) - exposed(overlap) > 6 * terms()[1]


@pytest.mark.parametrize("policy", ["default", "overlap"])
def test_two_chains_a_direction_hide_all_but_their_epilogue(policy: str) -> None:
    form = "form=rolled,unroll=2,ring=both"
    (site,) = (c for c in evaluated(form, policy).candidates if c.id == SITE)
    assert site.variant == "rolled, unroll=2, ring=both"
    assert exposed(evaluated(form, policy)) < 4 * terms()[1]
