"""Shipped samples, decomposed in every form, compute what they did before."""

from __future__ import annotations

import pytest

from engine.execute.verifying import verify
from engine.hlo.reading import read_here
from engine.passes.passes import Context
from engine.passes.pipeline import Pipeline
from engine.session.evaluation import Evaluator
from engine.session.plan import MachineSpec
from tests.places import SAMPLES

QUICK = ("mlp_fig2_train_4_f32", "mlp_fig3_train_2x2_f32", "pipeline_forward_4_f32")
SMALL = sorted(path.stem for path in SAMPLES.glob("*_*_*.hlo") if "large" not in path.stem)
FORMS = (
    "decompose{gate=off}",
    "decompose{form=rolled, gate=off}",
    "decompose{form=rolled, gate=off, ring=both, unroll=2}",
    "decompose{form=unrolled, gate=off, ring=one, unroll=1}, async-permute",
    "decompose{form=unrolled, gate=off, ring=both}, async-permute{form=generic}",
    "decompose{accumulate=f32, gate=off, chain=off}, async-permute",
)


@pytest.mark.parametrize("sample", QUICK)
def test_decomposed_samples_are_equal(sample: str) -> None:
    check(sample, FORMS[0] + ", async-permute")


@pytest.mark.full
@pytest.mark.parametrize("passes", FORMS)
@pytest.mark.parametrize("sample", SMALL)
def test_every_sample_in_every_form(sample: str, passes: str) -> None:
    check(sample, passes)


def check(sample: str, passes: str) -> None:
    module = read_here((SAMPLES / f"{sample}.hlo").read_bytes(), sample)
    machine = Evaluator(module, MachineSpec()).machine
    result = Pipeline.parse(passes).run(module, Context(machine))
    found = verify(module, result.module, seeds=2, deadline=300.0)
    assert found.equal, str(found)
    assert found.reference == "float64"
