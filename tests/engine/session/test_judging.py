"""A compiler's word on plans: asked about each program once, and never trusted where its figure is too good."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from app.cli.main import main
from engine.control import QUIET, Control
from engine.errors import UnsupportedError
from engine.execute.compiling import Unpredicted
from engine.execute.targets import Target
from engine.hlo.reading import read
from engine.ir.module import Module
from engine.session.evaluation import Evaluator
from engine.session.judging import contenders, judge, judge_loaded, searches_itself, tune_by_compiler
from engine.session.plan import Plan
from engine.session.production import Production
from engine.session.production_tuning import Searched
from engine.session.tuning import Trial, Tuning
from tests.extras import needs_libtpu
from tests.places import PARTITIONED

MODULE = PARTITIONED / "a_v4-2x2x2_1d_1x8_d4096_L2_scan.hlo.gz"
PLANS = (
    "decompose{ring=one}",
    "decompose{ring=one},async-permute",
    "decompose{ring=both}",
    "decompose{ring=one,unroll=2}",
)


@pytest.fixture(scope="module")
def production() -> Production:
    return Production(read(MODULE), Target.parse("tpu:v4:2x2x2"))


@pytest.fixture(scope="module")
def found(production: Production) -> tuple[Evaluator, Tuning]:
    evaluator = Evaluator(production.module, production.spec)
    base = evaluator.evaluate(Plan("fuse{policy=default}", "as-loaded"))
    variants = [evaluator.evaluate(Plan(passes, "bottom-up")) for passes in PLANS]
    best = min(variants, key=lambda v: v.metrics.makespan)
    return evaluator, Tuning(base, best, tuple(Trial(v.plan, v.metrics) for v in variants), finished=True)


def compiler(answers: Mapping[str, tuple[int, bool]], asked: list[str]) -> object:
    """Stands in for `Production.compiled`: cycles, and whether they count, by the name of what is compiled."""

    def compiled(
        _: Production, name: str, module: Module, options: object, scheduled_only: bool, control: Control = QUIET
    ) -> object:
        assert scheduled_only
        asked.append(name)
        if name not in answers:
            raise Unpredicted("nothing in the module is asynchronous")
        cycles, counts = answers[name]
        metrics = SimpleNamespace(makespan=cycles * 1000)
        made = SimpleNamespace(versions={"libtpu": "0.0.51"})
        return SimpleNamespace(cycles=cycles, counts=counts, variant=SimpleNamespace(metrics=metrics), compiled=made)

    return compiled


@pytest.fixture(autouse=True)
def _installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.session.judging.check_installed", lambda target: None)


def test_programs_are_told_apart_by_what_they_are(production: Production, found: tuple[Evaluator, Tuning]) -> None:
    names = [plan.passes for plan, _ in contenders(production, found[1].trials, 9)]
    assert not {PLANS[0], PLANS[1]} <= set(names)
    assert len(names) == len(set(names)) < len(PLANS)
    assert len(contenders(production, found[1].trials, 1)) == 1


def test_the_fastest_that_counts_is_taken(
    production: Production, found: tuple[Evaluator, Tuning], monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluator, tuning = found
    first, *rest = (plan.passes for plan, _ in contenders(production, tuning.trials, 4))
    asked: list[str] = []
    answers = {"as loaded, decomposed by the compiler": (900, True), first: (100, False), rest[0]: (500, True)}
    monkeypatch.setattr(Production, "compiled", compiler(answers, asked))
    judged, judgement = judge(production, evaluator, tuning)
    assert judged.best.plan.passes == rest[0]
    assert judgement.base.cycles == 900
    assert judgement.rulings[0].why_not == "nothing in the module is asynchronous"
    assert len(asked) == len(set(asked))
    said = judgement.as_json()
    assert said["target"] == "tpu:v4:2x2x2"
    assert [r["counts"] for r in said["rulings"] if r["name"] == first] == [False]


def test_the_compiler_s_own_way_may_win(
    production: Production, found: tuple[Evaluator, Tuning], monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluator, tuning = found
    names = {plan.passes: (500, True) for plan, _ in contenders(production, tuning.trials, 4)}
    answers = {"as loaded, asynchronous": (400, True), **names}
    monkeypatch.setattr(Production, "compiled", compiler(answers, []))
    judged, judgement = judge(production, evaluator, tuning)
    assert judged.best is judged.base
    assert judgement.best is judgement.base


@pytest.mark.parametrize(("cycles", "wins"), [(700, True), (900, False)])
def test_the_compiler_s_search_brings_its_plan(
    cycles: int,
    wins: bool,
    production: Production,
    found: tuple[Evaluator, Tuning],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A plan that is fastest by the compiler is the best, and what is compared is of the compiler on both sides."""
    evaluator, tuning = found
    metrics = tuning.best.metrics
    plans = (Plan("flatten{indices=all},decompose{ring=one}", "bottom-up"), Plan(PLANS[2], "top-down"), Plan("x", "y"))
    trials = (
        Trial(plans[1], replace(metrics, makespan=950_000)),
        Trial(plans[2], None, "refused"),
        Trial(plans[0], replace(metrics, makespan=cycles * 1000)),
    )

    def search(_: Production, *, memory_cap: int | None, control: Control) -> Searched:
        assert memory_cap == 1 << 40
        return Searched(trials, finished=False, clock=1000.0)

    monkeypatch.setattr("engine.session.judging.tune_production", search)
    monkeypatch.setattr(Production, "compiled", compiler({"as loaded, decomposed by the compiler": (800, True)}, []))
    loaded = judge_loaded(production)
    tuned, judgement = tune_by_compiler(production, evaluator, loaded, memory_cap=1 << 40)
    assert not tuned.finished
    assert [r.cycles for r in judgement.rulings] == [None, 800, cycles, 950, None]
    assert judgement.rulings[-1].why_not == "refused"
    assert (tuned.best.plan == plans[0]) is wins
    assert (tuned.best is tuned.base) is not wins
    assert [trial.metrics for trial in tuned.trials] == ([tuned.best.metrics] if wins else [])


def test_whose_compiler_searches() -> None:
    assert searches_itself(Target.parse("tpu:v4:2x2x2"))
    assert not searches_itself(Target.parse("tpu:v4:2x2x2"), ("ring",))
    assert not searches_itself(Target.parse("cuda:h100:1x1x8"))


def test_a_compiler_that_is_not_there_is_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    if importlib.util.find_spec("jax_plugins") is not None:
        pytest.skip("the CUDA plugin is installed")
    command = ["tune", str(MODULE), "--target", "cuda:h100:1x1x8", "-o", str(tmp_path / "b"), "--quiet"]
    assert main(command) == 2
    assert "pip install 'lapstrake[cuda]'" in capsys.readouterr().err
    assert issubclass(Unpredicted, UnsupportedError)


@pytest.mark.full
@needs_libtpu
def test_the_tpu_compiler_chooses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = ["--passes", "decompose{ring=one}", "--scheduler", "bottom-up", "--search", "ring"]
    command = ["tune", str(MODULE), "--target", "tpu:v4:2x2x2", *plan, "--no-verify", "--quiet"]
    assert main([*command, "-o", str(tmp_path / "b")]) == 0
    out = capsys.readouterr().out
    assert "by the compiler for tpu:v4:2x2x2, not measured" in out
    assert "as loaded, decomposed by the compiler" in out


@pytest.mark.full
@needs_libtpu
def test_the_tpu_compiler_searches(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mega = str(MODULE.with_name("mlp_mega.hlo"))
    command = ["tune", mega, "--target", "tpu:v4:2x2x2", "--time-limit", "60", "--no-verify", "--quiet"]
    assert main([*command, "-o", str(tmp_path / "b")]) == 0
    out = capsys.readouterr().out
    manifest = json.loads((tmp_path / "b" / "manifest.json").read_text())
    rulings = [ruling for ruling in manifest["judged"]["rulings"] if ruling["passes"] is not None]
    assert len(rulings) > 4
    assert any("flatten" in ruling["passes"] for ruling in rulings)
    assert f"{len(rulings)} plans tried" in out


def test_the_order_that_was_found_is_kept_where_the_compiler_agrees(
    production: Production, found: tuple[Evaluator, Tuning], monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluator, tuning = found
    answers = {"as loaded, decomposed by the compiler": (900, True), tuning.best.plan.passes: (100, True)}
    monkeypatch.setattr(Production, "compiled", compiler(answers, []))
    judged, _ = judge(production, evaluator, tuning)
    assert judged.best is tuning.best
