"""Plans that begin with the same passes share what these made, and get the same as when nothing is shared."""

from __future__ import annotations

import pytest

from engine.control import QUIET
from engine.hlo.reading import read_here
from engine.ir.module import Module
from engine.passes.decompose.decompose import Decompose
from engine.passes.passes import Context, Result
from engine.session.evaluation import Evaluator
from engine.session.plan import Plan
from tests.places import PARTITIONED

PATH = PARTITIONED / "mlp_fig2.hlo"
PLANS = tuple(
    Plan(f"decompose{{gate=off}},async-permute,fuse{{policy={policy}}}") for policy in ("default", "overlap", "none")
)


def test_a_pass_runs_once_for_plans_that_differ_in_a_later_one(monkeypatch: pytest.MonkeyPatch) -> None:
    module = read_here(PATH.read_bytes(), PATH.name, QUIET)
    alone = [Evaluator(module).evaluate(plan) for plan in PLANS]
    seen: list[str] = []
    apply = Decompose.apply

    def counted(self: Decompose, given: Module, context: Context) -> Result:
        seen.append(given.name)
        return apply(self, given, context)

    monkeypatch.setattr(Decompose, "apply", counted)
    evaluator = Evaluator(module)
    shared = [evaluator.evaluate(plan) for plan in PLANS]
    assert len(seen) == 1
    for one, other in zip(alone, shared, strict=True):
        assert one.metrics == other.metrics
        assert one.fusions == other.fusions
        assert one.candidates == other.candidates
        assert one.notes == other.notes
        assert one.program.module.proto == other.program.module.proto
