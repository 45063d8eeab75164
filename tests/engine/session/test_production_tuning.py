"""The search with a compiler as the judge. The compiler here answers with what it once predicted for mlp_mega."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from engine.control import Control
from engine.errors import UnsupportedError, WorkerError
from engine.execute.compiling import ASYNCHRONOUS_GATHERS, Compiled
from engine.execute.targets import Target
from engine.hlo.reading import read_here
from engine.ir.module import Module
from engine.schedule.directions import most_each_way, ways
from engine.session import production_tuning
from engine.session.finished import finished
from engine.session.plan import Plan
from engine.session.production import PIN_BUDGET, Production
from engine.session.production_tuning import QUICK, THOROUGH, CompilersJudge, tune_production
from engine.session.tuning import Choices

DATA = Path(__file__).parents[2] / "data"
MEGA = DATA / "partitioned" / "mlp_mega.hlo"


def answer(target: Target, text: str = "") -> Compiled:
    schedule = gzip.decompress((DATA / "production" / "mlp_mega.schedule.txt.gz").read_bytes()).decode()
    return Compiled(target, text, schedule, 0.1, {})


@pytest.fixture
def production() -> Production:
    return Production(read_here(MEGA.read_bytes(), str(MEGA)), Target.parse("tpu:v4:2x2x2"))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Module]:
    """Modules that the compiler was given. It refuses those that still have a reduce-scatter."""
    modules: list[Module] = []

    def compile_(program: Module, target: Target, **more: object) -> Compiled:
        assert more["scheduled_only"]
        assert more["options"] == ASYNCHRONOUS_GATHERS
        modules.append(program)
        if any(i.opcode == "all-reduce" for i in program.instructions.values()):
            raise WorkerError("the compiler aborted")
        return answer(target)

    monkeypatch.setattr("engine.session.production.compile_module", compile_)
    monkeypatch.setattr(production_tuning, "THOROUGH", "bottom-up")
    return modules


def test_a_judgement_is_of_an_order_with_one_permute_each_way(production: Production, asked: list[Module]) -> None:
    plan, makespan = CompilersJudge(production).judge(Plan("decompose{chain=off}", "memory", PIN_BUDGET))
    assert plan.passes == "decompose{chain=off}"
    assert plan.scheduler in QUICK
    loose = production.judged(answer(production.target), "mega")
    ordered = production.ordered(loose, plan)
    assert ordered.variant.metrics.makespan == makespan
    program = ordered.variant.program
    for id_, order in ordered.variant.schedule.orders.items():
        graph = program.graphs[id_]
        assert most_each_way(graph, order.nodes, ways(program.module, graph)) <= 1
    assert len(asked) == 1


def test_modules_that_are_equal_are_compiled_once(production: Production, asked: list[Module]) -> None:
    judge = CompilersJudge(production)
    first = judge.judge(Plan("decompose{chain=off}", "bottom-up", PIN_BUDGET))
    # What makes permutes asynchronous and fuses is left to the compiler: both plans give it the same module.
    again = judge.judge(Plan("decompose{chain=off},async-permute,fuse", "top-down", PIN_BUDGET))
    assert first[1] == again[1]
    assert len(asked) == 1


def test_what_the_compiler_refuses_is_not_asked_again(production: Production, asked: list[Module]) -> None:
    judge = CompilersJudge(production)
    for passes in ("", "flatten"):
        with pytest.raises(UnsupportedError, match="the compiler aborted"):
            judge.judge(Plan(passes, "bottom-up", PIN_BUDGET))
    assert len(asked) == 1


def test_a_search_lists_what_was_not_possible(
    production: Production, asked: list[Module], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(production_tuning, "AXES", production_tuning.AXES[:1])
    monkeypatch.setattr(production_tuning, "STARTS", production_tuning.STARTS[:1])
    found = tune_production(production, rounds=1)
    assert found.finished
    assert found.best is not None
    assert found.best.makespan == min(t.makespan for t in found.trials if t.makespan is not None)
    assert {t.why_not for t in found.trials if t.makespan is None} == {"the compiler aborted"}
    assert len(asked) < len(found.trials)
    stopped = tune_production(production, control=Control(stop=lambda: True))
    assert not stopped.finished
    assert stopped.best is None


def test_thorough_is_a_scheduler_beside_the_quick_ones() -> None:
    assert THOROUGH not in QUICK
    assert Choices(flatten="all").plan(None).passes.startswith("flatten{indices=all},decompose")


def test_final_estimates_replace_what_was_predicted_of_compute(production: Production) -> None:
    text = gzip.decompress((DATA / "production" / "mlp_mega.hlo.gz").read_bytes()).decode()
    predicted = production.judged(answer(production.target), "without code")
    assert finished(predicted) is None
    found = finished(production.judged(answer(production.target, text), "with code"))
    assert found is not None
    assert found.covered > 0.9
    assert found.cycles < predicted.cycles
