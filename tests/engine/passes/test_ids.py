"""Whatever passes remove and make, an id of the module as loaded stands for that instruction alone."""

from __future__ import annotations

import pytest

from engine.hlo.reading import read_here
from engine.session.evaluation import Evaluator
from engine.session.plan import Plan
from tests.places import SAMPLES

PLANS = (
    "fuse",
    "flatten,decompose{gate=off,form=rolled,unroll=2},async-permute,fuse",
    "decompose{gate=off,form=unrolled},async-permute{form=generic,kinds=all},fuse{policy=overlap}",
)


@pytest.mark.parametrize("name", ["mlp_fig3", "mlp_chain", "decoder_fig3_scan_2x2_f32", "mlp_fig3_train_2x4_bf16"])
def test_loaded_ids_are_not_given_again(name: str) -> None:
    module = read_here((SAMPLES / f"{name}.hlo").read_bytes())
    evaluator = Evaluator(module)
    for passes in PLANS:
        made = evaluator.transform(Plan(passes)).module
        again = {i for i in made.origins if i in module.instructions}
        assert not again, passes
        fresh = made.computations.keys() - module.computations.keys()
        assert all(made.computations[c].instructions[0].id in made.origins for c in fresh)
