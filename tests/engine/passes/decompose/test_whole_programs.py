"""Whole training steps give the same parameters after decomposition: decoders, a pipeline, a two-way inference step."""

from __future__ import annotations

from itertools import product

import pytest

from engine.chips.inference import machine_for
from engine.chips.library import load_chip
from engine.execute.verifying import verify
from engine.hlo.reading import read_here
from engine.ir.module import Module
from engine.passes.passes import Context, Result
from engine.passes.pipeline import Pipeline
from tests.places import SAMPLES

PLANS = (
    "decompose{gate=off}",
    "decompose{gate=off,form=rolled,unroll=2}",
    "decompose{gate=off,form=rolled,unroll=1}",
    "decompose{gate=off,unroll=2,ring=one}",
    "decompose{gate=off,ring=both,chain=on},async-permute",
    "decompose{gate=off,accumulate=f32},async-permute{form=generic,kinds=all}",
    "decompose{gate=off,ring=both,chain=off,blocks=stacked}",
    "decompose{gate=off,ring=both,chain=off,blocks=separate}",
)
QUICK = (
    ("mlp_fig3_train_2x2_f32", PLANS[1]),
    ("mlp_chain_forward_4_f32", PLANS[4]),
    ("recommender_2_bf16", PLANS[5]),
    ("pipeline_train_4x2_f32", PLANS[0]),
    ("decoder_fig2_scan_4_f32", PLANS[1]),
    ("mlp_chain_train_8_bf16", PLANS[6]),
    ("mlp_fig2_train_4_f32", PLANS[7]),
)
PROGRAMS = (
    "mlp_fig2_train_4_f32",
    "mlp_fig2_train_8_bf16",
    "mlp_fig3_train_2x2_f32",
    "mlp_fig3_train_4x2_f32",
    "mlp_chain_forward_4_f32",
    "mlp_chain_train_8_bf16",
    "decoder_fig2_scan_4_f32",
    "decoder_fig2_unrolled_4_f32",
    "decoder_fig3_scan_2x2_f32",
    "decoder_fig3_unrolled_2x4_bf16",
    "recommender_2_bf16",
    "pipeline_train_4x2_f32",
    "pipeline_forward_4_f32",
)
FULL = tuple(pair for pair in product(PROGRAMS, PLANS) if pair not in QUICK)


def decomposed(name: str, plan: str) -> tuple[Module, Result]:
    path = SAMPLES / f"{name}.hlo"
    module = read_here(path.read_bytes(), str(path))
    machine = machine_for(module, load_chip("tpu-v4"))
    return module, Pipeline.parse(plan).run(module, Context(machine))


@pytest.mark.parametrize(("name", "plan"), QUICK)
def test_results_stay(name: str, plan: str) -> None:
    module, result = decomposed(name, plan)
    assert any(candidate.chosen for candidate in result.candidates)
    assert verify(module, result.module).equal


@pytest.mark.full
@pytest.mark.parametrize(("name", "plan"), FULL)
def test_results_stay_under_every_plan(name: str, plan: str) -> None:
    module, result = decomposed(name, plan)
    assert verify(module, result.module).equal


def test_permutes_between_stages_stay_as_they_are() -> None:
    module, result = decomposed("pipeline_train_4x2_f32", PLANS[0])
    own = [i for i in module.instructions.values() if i.opcode == "collective-permute"]
    assert own
    for permute in own:
        after = result.module.instructions[permute.id]
        assert after.opcode == "collective-permute"
        assert after.source_target_pairs == permute.source_target_pairs
        assert after.channel_id == permute.channel_id
    verdicts = {c.collective: c for c in result.candidates}
    assert all(not verdicts[p.id].chosen for p in own)
