"""The search with a compiler as the judge. The compiler here answers with what it once predicted for mlp_mega."""

from __future__ import annotations

import gzip

import pytest

from engine.control import Control
from engine.errors import UnsupportedError, WorkerError
from engine.execute.compiling import ASYNCHRONOUS_WHOLE, DECOMPOSED_LATE, NO_OPTIONS, Compiled
from engine.execute.targets import Target
from engine.hlo.reading import read, read_here
from engine.ir.module import Module
from engine.schedule.directions import most_each_way, ways
from engine.session import production_tuning
from engine.session.choices import Choices
from engine.session.finished import finished
from engine.session.plan import Plan
from engine.session.production import PIN_BUDGET, Production
from engine.session.production_tuning import FEW, QUICK, THOROUGH, CompilersJudge, first_plan, tune_production
from tests.extras import needs_libtpu
from tests.places import DATA, PARTITIONED, SAMPLES

MEGA = PARTITIONED / "mlp_mega.hlo"


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
        assert more["options"] in (ASYNCHRONOUS_WHOLE, NO_OPTIONS)
        modules.append(program)
        if any(i.opcode == "all-reduce" for i in program.instructions.values()):
            raise WorkerError("the compiler aborted")
        return answer(target)

    monkeypatch.setattr("engine.session.production.compile_module", compile_)
    monkeypatch.setattr(production_tuning, "THOROUGH", "bottom-up")
    return modules


def test_a_judgement_is_of_an_order_with_one_permute_each_way(production: Production, asked: list[Module]) -> None:
    plan, metrics = CompilersJudge(production).judge(Plan("decompose{chain=off,gate=off}", "memory", PIN_BUDGET))
    assert plan.passes == "decompose{chain=off,gate=off}"
    assert plan.scheduler in QUICK
    loose = production.judged(answer(production.target), "mega")
    ordered = production.ordered(loose, plan)
    assert ordered.variant.metrics == metrics
    program = ordered.variant.program
    for id_, order in ordered.variant.schedule.orders.items():
        graph = program.graphs[id_]
        assert most_each_way(graph, order.nodes, ways(program.module, graph)) <= 1
    assert len(asked) == 1


def test_modules_that_are_equal_are_compiled_once(production: Production, asked: list[Module]) -> None:
    judge = CompilersJudge(production)
    first = judge.judge(Plan("decompose{chain=off,gate=off}", "bottom-up", PIN_BUDGET))
    # What makes permutes asynchronous and fuses is left to the compiler: both plans give it the same module.
    plan = Plan("decompose{chain=off,gate=off},async-permute{kinds=supported},fuse", "top-down", PIN_BUDGET)
    again = judge.judge(plan)
    assert first[1] == again[1]
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("passes", "options"),
    [
        ("flatten,decompose", ASYNCHRONOUS_WHOLE),
        ("decompose,async-permute{kinds=supported},fuse", ASYNCHRONOUS_WHOLE),
        ("decompose,async-permute", NO_OPTIONS),
    ],
)
def test_gathers_block_where_the_plan_makes_permutes_alone_asynchronous(
    production: Production, passes: str, options: object
) -> None:
    assert production.options(Plan(passes)) == options


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
    monkeypatch.setattr(production_tuning, "POLISH", "improve{seconds=0.1}")
    found = tune_production(production, rounds=1)
    assert found.finished
    assert found.best is not None
    assert found.trials[-1].plan.scheduler == "improve{seconds=0.1}"
    assert found.best.makespan == min(t.makespan for t in found.trials if t.makespan is not None)
    assert {t.why_not for t in found.trials if t.makespan is None} == {"the compiler aborted"}
    assert len(asked) < len(found.trials)
    stopped = tune_production(production, control=Control(stop=lambda: True))
    assert not stopped.finished
    assert stopped.best is None


def test_of_a_few_plans_the_fastest_is_first(production: Production, asked: list[Module]) -> None:
    found = first_plan(production)
    assert found.finished
    assert [trial.plan.passes for trial in found.trials] == list(FEW)
    assert found.best is not None
    assert found.best.plan.budget == PIN_BUDGET
    assert found.best.makespan == min(t.makespan for t in found.trials if t.makespan is not None)
    assert found.trials[-1].why_not == "the compiler aborted"
    stopped = first_plan(production, control=Control(stop=lambda: True))
    assert not stopped.finished
    assert stopped.best is None


def test_most_of_the_few_plans_do_not_hang_on_the_gate() -> None:
    decided = [passes for passes in FEW if "decompose" in passes and "gate=off" not in passes]
    assert len(decided) <= len(FEW) / 3
    assert {"", "async-permute"} <= set(FEW)
    assert len(FEW) == len(set(FEW)) <= 10


def test_thorough_is_a_scheduler_beside_the_quick_ones() -> None:
    assert THOROUGH not in QUICK
    choices = Choices(flatten="all", kinds="permute")
    assert choices.plan(None).passes.startswith("flatten{indices=all},decompose")
    assert Choices.of(choices.plan(None)) == choices


def test_final_estimates_replace_what_was_predicted_of_compute(production: Production) -> None:
    text = gzip.decompress((DATA / "production" / "mlp_mega.hlo.gz").read_bytes()).decode()
    predicted = production.judged(answer(production.target), "without code")
    assert finished(predicted) is None
    found = finished(production.judged(answer(production.target, text), "with code"))
    assert found is not None
    assert found.covered > 0.9
    assert found.cycles < predicted.cycles


@needs_libtpu
@pytest.mark.full
@pytest.mark.parametrize(
    ("name", "target", "default"),
    [
        # What the compiler is predicted to take of the JAX programs, by benchmarks.production.
        ("mlp_fig3", "tpu:v4:2x2x2", 1_250_306),
        ("mlp_chain", "tpu:v4:2x2x2", 1_276_323),
        ("mlp_fig3_train_8x8_large", "tpu:v4:4x4x4", 21_989_795),
        ("pipeline_forward_4_f32", "tpu:v4:2x2x1", 10_243),
    ],
)
def test_the_first_plan_is_no_slower_than_the_compilers_default(name: str, target: str, default: int) -> None:
    found = first_plan(Production(read(str(SAMPLES / f"{name}.hlo")), Target.parse(target)))
    assert found.best is not None
    assert (found.best.makespan or 0) * found.clock / 1e6 <= default


@needs_libtpu
@pytest.mark.full
def test_what_is_found_beats_the_compilers_own_decomposition() -> None:
    production = _production("mlp_fig2.hlo", "tpu:v4:2x2x2")
    theirs = production.compiled("theirs", production.module, DECOMPOSED_LATE, scheduled_only=True)
    found = tune_production(production, rounds=1).best
    assert found is not None
    made = production.transformed(found.plan).module
    loose = production.compiled("ours", made, ASYNCHRONOUS_WHOLE, scheduled_only=True)
    pinned = production.pinned("pinned", made, production.ordered(loose, found.plan), scheduled_only=True)
    assert pinned.counts
    assert pinned.cycles <= 0.8 * theirs.cycles
    whole = production.pinned("whole", made, production.ordered(loose, found.plan))
    assert whole.cycles == pytest.approx(pinned.cycles, rel=0.05)
    assert "collective-permute-start" in whole.compiled.text
    assert not pinned.compiled.text


@needs_libtpu
@pytest.mark.full
def test_forms_that_need_stacked_or_joined_blocks_are_found_where_a_chain_is_good() -> None:
    """The chain of mlp_mega is predicted to take 3,835,030 cycles, a loop and a scatter of single blocks 3,397,900."""
    searched = tune_production(_production("mlp_mega.hlo", "tpu:v4:2x2x2"), rounds=1)
    assert searched.best is not None
    assert (searched.best.makespan or 0) * searched.clock / 1e6 < 3_500_000


@needs_libtpu
@pytest.mark.full
def test_a_training_step_is_pinned() -> None:
    """Its loops carry hundreds of arrays: the compiler takes some get-tuple-elements away after it has scheduled."""
    production = _production("we_v4-4x4x4_2d_8x8_d8192_L2_scan.hlo.gz", "tpu:v4:4x4x4")
    plan = Plan("flatten,decompose", "bottom-up", PIN_BUDGET)
    made = production.transformed(plan).module
    loose = production.compiled("ours", made, ASYNCHRONOUS_WHOLE, scheduled_only=True)
    ordered = production.ordered(loose, plan)
    pinned = production.pinned("pinned", made, ordered, scheduled_only=True)
    assert pinned.counts
    assert pinned.cycles == pytest.approx(ordered.cycles, rel=1e-3)
    assert pinned.cycles < 340_000_000


def _production(file: str, target: str) -> Production:
    return Production(read(str(PARTITIONED / file)), Target.parse(target))
