"""Plans are set against what a compiler does by itself, fused alike."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from engine.chips.budget import Budget
from engine.hlo.reading import read_here
from engine.session.evaluation import Evaluator
from engine.session.fairness import LEAST_GAIN, fair_base, is_faster, with_fusion
from engine.session.plan import DEFAULT_SCHEDULERS, WHOLE, MachineSpec, Plan, plain_plan, whole_plan
from engine.session.pruning import default_variants
from engine.session.tuning import tune
from tests.places import COMPILED, SAMPLES

SAMPLE = SAMPLES / "mlp_fig3.hlo"
SCHEDULED = COMPILED / "a_v4-2x2x2_1d_1x8_d4096_L2_scan_default.hlo.gz"


@cache
def evaluator(path: Path) -> Evaluator:
    return Evaluator(read_here(path.read_bytes(), str(path)))


def test_what_has_to_be_beaten_is_asynchronous() -> None:
    at = evaluator(SAMPLE)
    base = at.evaluate(plain_plan(at.module), "as loaded")
    fair = fair_base(at, base)
    assert fair.name == WHOLE
    assert fair.metrics.makespan < base.metrics.makespan
    # Where it does not fit the cap, the module as loaded is all there is.
    assert fair_base(at, base, memory_cap=1) is base


def test_another_list_scheduler_alone_is_no_gain() -> None:
    """Top-down is faster here than bottom-up, with nothing decomposed: what has to be beaten is the best of them."""
    module = read_here((SAMPLES / "mlp_fig3_train_2x4_bf16.hlo").read_bytes())
    at = Evaluator(module, MachineSpec("tpu-v5e"))
    base = at.evaluate(plain_plan(module), "as loaded")
    fair = fair_base(at, base)
    orders = {name: at.evaluate(replace(whole_plan(module), scheduler=name)) for name in DEFAULT_SCHEDULERS}
    assert fair.metrics.makespan == min(v.metrics.makespan for v in orders.values())
    assert fair.metrics.makespan < orders["bottom-up"].metrics.makespan
    (shown,) = [variant for variant in default_variants(at) if variant.name == WHOLE]
    assert shown.plan == fair.plan


def test_the_best_of_the_budgets_has_to_be_beaten() -> None:
    at = Evaluator(evaluator(SAMPLE).module, MachineSpec("h100"))
    base = at.evaluate(plain_plan(at.module), "as loaded")
    one, four = (fair_base(at, base, [Budget(n)]) for n in (1, 4))
    assert four.metrics.makespan < one.metrics.makespan
    assert fair_base(at, base, [None, Budget(4)]).metrics == four.metrics
    assert fair_base(at, base, [Budget(1)]).metrics == fair_base(at, base).metrics


def test_what_a_compiler_scheduled_is_what_it_gets() -> None:
    at = evaluator(SCHEDULED)
    base = at.evaluate(plain_plan(at.module), "as loaded")
    assert fair_base(at, base) is base


def test_a_gain_is_more_than_rounding() -> None:
    at = evaluator(SAMPLE)
    base = at.evaluate(plain_plan(at.module), "as loaded")
    assert not is_faster(base, base)
    assert is_faster(fair_base(at, base), base)
    assert LEAST_GAIN < 0.001


@pytest.mark.parametrize(
    ("passes", "added"),
    [("async-permute", True), ("", True), ("decompose,fuse", False), ("fuse{policy=none}", False)],
)
def test_a_plan_without_fusion_is_predicted_fused(passes: str, added: bool) -> None:
    """One that decomposes nothing would seem slow for what its compiler does anyway."""
    at = evaluator(SAMPLE)
    plan, said = with_fusion(Plan(passes), at.module)
    assert bool(said) == added
    assert (plan.passes != passes) == added
    if added:
        assert at.evaluate(plan).metrics.makespan < at.evaluate(Plan(passes)).metrics.makespan


def test_fusions_of_a_compiler_stay() -> None:
    module = evaluator(SCHEDULED).module
    assert with_fusion(Plan("decompose"), module) == (Plan("decompose"), "")


def test_a_search_says_whether_it_found_anything() -> None:
    at = evaluator(SAMPLE)
    found = tune(at, rounds=0, dimensions=["sites"])
    assert found.against.name == WHOLE
    assert found.gains == (found.best.metrics.makespan < (1 - LEAST_GAIN) * found.against.metrics.makespan)
