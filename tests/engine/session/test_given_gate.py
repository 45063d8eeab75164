"""The gate weighs a site by the times that the simulator takes for it, whoever gave them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from app.cli.main import main
from engine.chips.budget import Kind
from engine.cost.costs import Origin
from engine.cost.imports import ImportedCosts
from engine.cost.programs import prepare
from engine.execute.targets import Target
from engine.hlo.reading import read_here
from engine.ir.module import Module
from engine.passes.candidate import Candidate
from engine.session.evaluation import Evaluator
from engine.session.plan import BEST_PASSES, Plan, plain_plan
from engine.session.production import Production
from engine.session.variant import Variant
from tests.places import SAMPLES

BEST = Plan(BEST_PASSES, "bottom-up")
MODEL = (Origin.MODEL,)
TABLE = (Origin.TABLE,)


def sample(name: str = "mlp_fig3") -> Module:
    return read_here((SAMPLES / f"{name}.hlo").read_bytes())


def given(origin: Origin = Origin.TABLE, **times: int) -> ImportedCosts:
    return ImportedCosts("c.csv", origin, {name.replace("_", "-"): time for name, time in times.items()})


def decided(module: Module, *costs: ImportedCosts, plan: Plan = BEST) -> Variant:
    return Evaluator(module, imports=costs).evaluate(plan)


def of(variant: Variant, name: str) -> Candidate:
    return next(c for c in variant.candidates if c.id == name)


@pytest.mark.parametrize("name", ["mlp_fig3", "mlp_fig3_train_2x4_bf16", "decoder_fig3_scan_2x2_f32"])
def test_times_that_the_model_would_say_anyway_change_no_decision(name: str) -> None:
    module = sample(name)
    program = prepare(module, Evaluator(module).machine)
    times = {
        n: int(costs.compute[k] or costs.transfer[k])
        for key, graph in program.graphs.items()
        for costs in (program.costs[key],)
        for k, n in enumerate(graph.names)
        if costs.kind[k] != Kind.COMPUTE or graph.opcodes[k] == "dot"
    }
    plain, same = decided(module), decided(module, ImportedCosts("c.csv", Origin.TABLE, times))
    assert any(c.chosen for c in plain.candidates)
    for before, after in zip(plain.candidates, same.candidates, strict=True):
        assert (after.id, after.chosen, after.variant) == (before.id, before.chosen, before.variant)
        if before.gate is not None and after.gate is not None:
            assert before.gate.comp_from == before.gate.comm_from == MODEL
            assert after.gate.comp_from == after.gate.comm_from == TABLE
            assert replace(after.gate, comp_from=MODEL, comm_from=MODEL) == before.gate


@pytest.mark.parametrize("origin", [Origin.COMPILER, Origin.MEASURED, Origin.TABLE])
def test_a_collective_counts_with_the_time_that_the_simulator_takes(origin: Origin) -> None:
    time = 5_000_000_000
    module = sample()
    costs = given(origin, all_gather=time)
    base, best = decided(module, costs, plan=plain_plan(module)), decided(module, costs)
    gathered, plain = of(best, "all-gather").gate, of(decided(module), "all-gather").gate
    assert gathered is not None
    assert plain is not None
    assert base.metrics.makespan > time
    assert gathered.comm == time
    assert (gathered.comm_from, gathered.comp_from) == ((origin,), MODEL)
    assert (gathered.comp, gathered.ring) == (plain.comp, plain.ring)  # a ring has none of it, as in the simulator
    assert of(best, "all-gather").chosen
    assert abs(base.metrics.makespan - best.metrics.makespan - gathered.gain) < 0.1 * gathered.gain


def test_a_collective_that_is_given_as_free_stays_whole() -> None:
    assert of(decided(sample()), "all-gather").chosen
    left = of(decided(sample(), given(all_gather=1)), "all-gather")
    assert not left.chosen
    assert left.gate is not None
    assert left.gate.comm == 1
    assert "collective by your table, the rest by the model" in left.reason


def test_an_einsum_counts_with_the_time_that_is_given() -> None:
    plain = of(decided(sample()), "all-gather.2")
    assert plain.gate is not None
    found = of(
        decided(sample(), ImportedCosts("c.csv", Origin.TABLE, {"dot.1": 7 * plain.gate.comp})), "all-gather.2"
    ).gate
    assert found is not None
    assert (found.comp, found.comm) == (7 * plain.gate.comp, plain.gate.comm)
    assert (found.comp_from, found.comm_from) == (TABLE, MODEL)


def test_the_higher_origin_is_weighed_and_other_costs_decide_anew() -> None:
    module = sample()
    measured, table = given(Origin.MEASURED, all_gather=1), given(all_gather=5_000_000_000)
    for costs in ((measured, table), (table, measured)):
        found = of(decided(module, *costs), "all-gather")
        assert found.chosen
        assert found.gate is not None
        assert found.gate.comm_from == TABLE
    assert not of(decided(module, measured), "all-gather").chosen


def test_what_a_compiler_is_given_is_decided_by_the_same_times() -> None:
    module, costs = sample(), given(all_gather=1)
    target = Target.parse("tpu:v4:2x2x2")
    decisions = []
    for imports in ((), (costs,)):
        production = Production(module, target, imports=imports)
        made = production.transformed(BEST)
        wanted = Evaluator(module, production.spec, imports).transform(BEST)
        assert made.candidates == wanted.candidates
        decisions.append(next(c.chosen for c in made.candidates if c.id == "all-gather"))
    assert decisions == [True, False]


def test_a_report_says_where_the_terms_come_from(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "t.csv"
    table.write_text("all-gather,5000\n")
    asked = ["report", str(SAMPLES / "mlp_fig3.hlo"), "--costs", str(table)]
    assert main([*asked, "--json"]) == 0
    found = {c["id"]: c for c in json.loads(capsys.readouterr().out)["candidates"]}
    gathered, other = found["all-gather"], found["all-gather.2"]
    assert (gathered["comm_us"], gathered["comm_from"], gathered["comp_from"]) == (5000, ["table"], ["model"])
    assert other["comm_from"] == ["model"]
    assert main(asked) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "5.00 ms" in said
    assert "(collective by your table, the rest by the model)" in said
