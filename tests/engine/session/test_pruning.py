"""Rows of sites that do not earn their place in the simulator are left whole, and the plan says so."""

from __future__ import annotations

from functools import cache

import pytest

from engine.chips.budget import Budget
from engine.hlo.reading import read_here
from engine.session import edits
from engine.session.evaluation import Evaluator
from engine.session.plan import BEST_PASSES, MachineSpec, Plan, plain_plan
from engine.session.pruning import EFFORT, default_variants, pruned
from engine.session.variant import Variant
from tests.places import COMPILED, SAMPLES

LOSING = "does not pay in the simulator; by the gate alone: "
CHAIN = "mlp_chain"
"""Its chain in one direction loses in the simulator, on TPU v4."""
SOME = (
    "mlp_fig2_train_16_large",
    "mlp_fig3",
    "mlp_fig3_train_2x4_bf16",
    "recommender_2_bf16",
)


@cache
def evaluator(sample: str, chip: str = "tpu-v4") -> Evaluator:
    return Evaluator(read_here((SAMPLES / f"{sample}.hlo").read_bytes()), MachineSpec(chip))


def without(at: Evaluator, plan: Plan, name: str = "", effort: int = EFFORT) -> Variant:
    return pruned(at, at.evaluate(plain_plan(at.module)), at.evaluate(plan, name), effort=effort)


@pytest.mark.parametrize("chip", ["tpu-v4", "h100"])
@pytest.mark.parametrize("sample", [CHAIN, *SOME])
def test_what_is_shown_by_default_is_never_slower_than_as_loaded(sample: str, chip: str) -> None:
    """But for the order of least memory, which the others begin from."""
    at = evaluator(sample, chip)
    base, *shown = default_variants(at)
    assert base.plan == plain_plan(at.module)
    assert {v.plan.scheduler for v in shown} == {"memory", "bottom-up", "top-down"}
    for variant in shown:
        assert variant.name.startswith("decomposed, ") == any(c.chosen for c in variant.candidates)
        if variant.plan.scheduler == "memory":
            continue
        assert variant.metrics.makespan <= base.metrics.makespan, variant.plan
        if "decomposed" in variant.name:
            gated = at.evaluate(Plan(BEST_PASSES, variant.plan.scheduler))
            assert variant.metrics.makespan <= gated.metrics.makespan


def test_what_is_left_whole_stands_in_the_plan_and_in_a_note() -> None:
    at = evaluator("mlp_fig3_train_4x2_f32")
    found = without(at, Plan(BEST_PASSES, "bottom-up"), "decomposed, bottom-up", 4 * EFFORT)
    left = (edits.options_of(found.plan, "decompose") or {}).get("losing", "").split(";")
    assert left != [""]
    assert found.name == "decomposed, bottom-up"
    told = {
        c.id: c for c in found.candidates if c.reason.startswith("does not pay in the simulator; by the gate alone: ")
    }
    assert told.keys() >= {name.rstrip("*") for name in left}
    assert not any("forbid" in c.reason for c in found.candidates)
    # The gate's numbers are those that it had before anything was tried.
    before = {c.id: c for c in at.evaluate(Plan(BEST_PASSES, "bottom-up")).candidates}
    assert all(c.gate == before[name].gate is not None and before[name].reason in c.reason for name, c in told.items())
    for name in left:
        assert sum(note.startswith(f"{name} is left whole: the plan is ") for note in found.notes) == 1
    assert any(c.chosen for c in found.candidates)
    again = Evaluator(at.module).evaluate(Plan(found.plan.passes, "bottom-up"))
    assert again.metrics == found.metrics


def test_a_chain_is_taken_apart() -> None:
    found = without(
        evaluator(CHAIN), Plan(BEST_PASSES.replace("decompose", "decompose{ring=one,chain=on}"), "top-down")
    )
    assert (edits.options_of(found.plan, "decompose") or {})["chain"] == "off"
    assert any(note.startswith("Chains are taken apart: the plan is ") for note in found.notes)


def test_what_the_user_forbade_stays_forbidden() -> None:
    plan = Plan(BEST_PASSES.replace("decompose", "decompose{forbid=all-gather}"), "bottom-up")
    found = without(evaluator(CHAIN), plan)
    assert "all-gather" in (edits.options_of(found.plan, "decompose") or {})["forbid"].split(";")


def test_without_a_trial_a_slower_plan_gives_way_to_one_that_decomposes_nothing() -> None:
    at = evaluator(CHAIN, "tpu-v5e")
    plan = Plan(BEST_PASSES, "top-down")
    assert at.evaluate(plan).metrics.makespan > at.evaluate(plain_plan(at.module)).metrics.makespan
    found = without(at, plan, effort=0)
    assert found.name == "whole, top-down"
    assert "decompose" not in found.plan.passes
    assert found.metrics.makespan <= at.evaluate(plain_plan(at.module)).metrics.makespan
    fine = Plan(BEST_PASSES, "bottom-up")
    assert without(evaluator("mlp_fig3"), fine, effort=0).plan == fine


@pytest.mark.parametrize("chip", ["tpu-v4", "tpu-v6e"])
@pytest.mark.parametrize(
    "name", ["a_v4-2x2x2_1d_1x8_d4096_L2_scan_default", "we_v4-4x4x4_2d_8x8_d8192_L2_scan_offasync"]
)
def test_what_a_compiler_scheduled_is_never_shown_slower_than_as_loaded(name: str, chip: str) -> None:
    """Its order has more in flight than the chip's default budget, its fusions are its own, and what it left waiting
    is no news."""
    at = Evaluator(read_here((COMPILED / f"{name}.hlo.gz").read_bytes()), MachineSpec(chip))
    base, *shown = default_variants(at)
    assert base.metrics.max_in_flight > (base.schedule.budget.total or 0)
    assert [v.plan.scheduler for v in shown] == ["memory", "bottom-up", "top-down"]
    assert not any("fuse" in v.plan.passes for v in shown)
    for variant in shown[1:]:
        assert variant.metrics.makespan <= base.metrics.makespan, variant.plan
    # A budget that the user chose is kept, whatever that costs.
    for variant in default_variants(at, Budget(2)):
        assert variant.plan.scheduler == "as-loaded" or variant.plan.budget == Budget(2)


def test_what_does_not_pay_can_be_left_to_the_gate_again() -> None:
    at = evaluator("mlp_fig3_train_2x4_bf16")
    found = without(at, Plan(BEST_PASSES, "top-down"), "decomposed, top-down", 4 * EFFORT)
    left = [c for c in found.candidates if c.reason.startswith("does not pay")]
    plan = edits.released(found.plan, [c.id for c in left], found.candidates)
    assert "losing" not in (edits.options_of(plan, "decompose") or {})
    one, *others = left
    partly = at.evaluate(edits.released(found.plan, [one.id], found.candidates)).candidates
    assert {c.id for c in partly if c.reason.startswith("does not pay")} == {c.id for c in others}
    forced = at.evaluate(edits.overridden(found.plan, [one.id], "force")).candidates
    assert next(c for c in forced if c.id == one.id).chosen
