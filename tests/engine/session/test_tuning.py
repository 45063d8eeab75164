"""The search for plans: never worse than where it began, honest about what it tried, and stoppable."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from engine.chips.budget import Budget
from engine.chips.library import load_chip
from engine.control import Cancelled, Control
from engine.errors import UsageError
from engine.hlo.reading import read_here
from engine.passes.rows import Row, rows_of
from engine.schedule.errors import Infeasible
from engine.session.choices import AXES, DIMENSIONS, Choices, is_allowed, parse_dimensions
from engine.session.evaluation import Evaluator
from engine.session.fairness import is_faster
from engine.session.plan import AS_LOADED, MachineSpec, Plan, best_passes, plain_plan, whole_plan
from engine.session.pruning import default_variants
from engine.session.tuning import POLISH, Trial, Tuning, fastest, tune, tune_order, without_decomposition
from tests.places import PARTITIONED, ROOT, SAMPLES

SCHEDULED = "tests/data/tpu-compiler/a_v4-2x2x2_1d_1x8_d4096_L2_scan_default.hlo.gz"
FIG3 = PARTITIONED / "mlp_fig3.hlo"


@pytest.fixture(scope="module")
def evaluator() -> Evaluator:
    return Evaluator(read_here(FIG3.read_bytes(), str(FIG3)))


def test_best_is_the_fastest_of_what_was_tried(evaluator: Evaluator) -> None:
    poor = Choices(kinds="permute")
    found = tune(evaluator, start=poor, rounds=1)
    times = [t.makespan for t in found.trials if t.makespan is not None]
    assert found.finished
    assert found.best.metrics.makespan == min(*times, found.base.metrics.makespan)
    assert found.best.metrics.makespan < evaluator.evaluate(poor.plan(None)).metrics.makespan
    assert len({t.plan for t in found.trials}) == len(found.trials)
    assert found.dimensions == DIMENSIONS


def test_every_dimension_is_searched_and_nothing_else_is(evaluator: Evaluator) -> None:
    """Along each axis every value occurs; one that is not searched stays as it was."""
    told: list[object] = []
    found = tune(evaluator, rounds=1, control=Control(hear=told.append))
    assert tuple(told) == found.trials
    points = [Choices.of(trial.plan) for trial in found.trials]
    assert {p.scheduler for p in points} == {"bottom-up", "top-down", "memory", POLISH}
    assert {p.fuse for p in points} == {"overlap", "default", "auto", "none"}
    assert {p.kinds for p in points} == {"permute", "supported"}
    assert {p.budget.total if p.budget else None for p in points} == {None, 1, 2, 4, 8}
    for option in ("chain", "ring", "unroll", "form"):
        values = {dict(p.decompose).get(option) for p in points}
        assert values == {dict(c.decompose).get(option) for c in AXES[option](Choices())}
    assert any(p.forbid for p in points)
    start = Choices(fuse="default", scheduler="memory")
    many = Evaluator(read_here((SAMPLES / "mlp_fig3_train_8x8_large.hlo").read_bytes()))
    some = [Choices.of(t.plan) for t in tune(many, rounds=1, start=start, dimensions=["ring", "sites"]).trials]
    assert {(p.fuse, p.scheduler, p.budget) for p in some} == {("default", "memory", None)}
    assert {name for p in some for name, _ in p.decompose} == {"ring"}
    assert any(p.forbid for p in some)


def test_a_time_limit_keeps_what_was_found(evaluator: Evaluator) -> None:
    """It ends the search inside an evaluation too."""
    with pytest.raises(Cancelled):
        tune(evaluator, control=Control().within(0.0))
    told: list[Trial] = []
    found = tune(evaluator, control=Control(stop=lambda: len(told) >= 3, hear=told.append))  # type: ignore[arg-type]  # only trials are told
    assert (found.finished, len(found.trials)) == (False, 3)
    assert found.best.metrics.makespan == min(t.makespan for t in found.trials if t.makespan is not None)


def test_what_a_plan_has_to_beat_is_among_what_was_tried(evaluator: Evaluator) -> None:
    found = tune(evaluator, rounds=1, dimensions=["sites", "ring"])
    whole = without_decomposition(found.trials)
    assert whole is not None
    assert "decompose" not in whole.plan.passes
    assert without_decomposition(t for t in found.trials if t is not whole) is None


def test_a_plan_is_a_point_and_back() -> None:
    text = "decompose{ring=one,force=a;b},async-permute{kinds=all},fuse{policy=auto,apart=dot.3}"
    plan = Plan(text, "memory", None, 7)
    assert Choices.of(plan).plan(7) == plan
    assert Choices.of(Plan("", "exact")).plan(None) == Plan("decompose,async-permute{kinds=supported}", "exact")


def test_dimensions_are_named() -> None:
    assert parse_dimensions(" ring, budget") == {"ring", "budget"}
    with pytest.raises(UsageError, match="'rings' came"):
        parse_dimensions("ring,rings")
    with pytest.raises(UsageError, match="nothing came"):
        parse_dimensions("")


def test_a_cancel_keeps_what_was_found(evaluator: Evaluator) -> None:
    steps = 0

    def stop() -> bool:
        nonlocal steps
        steps += 1
        return steps > 40

    found = tune(evaluator, control=Control(stop=stop))
    assert not found.finished
    assert found.best.metrics.makespan <= found.base.metrics.makespan


def test_a_cancel_before_anything_was_found_is_a_cancel(evaluator: Evaluator) -> None:
    with pytest.raises(Cancelled):
        tune(evaluator, control=Control(stop=lambda: True))


def test_plans_that_do_not_fit_are_listed_with_the_reason(evaluator: Evaluator) -> None:
    told: list[Trial] = []
    with pytest.raises(Infeasible):
        tune(evaluator, memory_cap=1 << 20, rounds=1, control=Control(hear=told.append))  # type: ignore[arg-type]  # only trials are told
    assert told
    assert all(t.makespan is None and "memory cap" in t.why_not for t in told)


def test_a_cap_is_kept_by_what_is_found(evaluator: Evaluator) -> None:
    cap = evaluator.evaluate(plain_plan(evaluator.module)).metrics.peak_memory
    found = tune(evaluator, memory_cap=cap, rounds=1)
    assert any(t.metrics is None for t in found.trials)
    assert found.best is not found.base
    assert found.best.metrics.peak_memory <= cap


def test_turning_a_verdict_twice_gives_it_back_to_the_gate(evaluator: Evaluator) -> None:
    start = Choices()
    rows = [r for r in _rows(evaluator, start) if r.candidates[0].gate is not None]
    for row in rows:
        once = start.turned(row)
        (again,) = (r for r in _rows(evaluator, once) if r.key == row.key)
        assert again.candidates[0].chosen != row.candidates[0].chosen
        assert once.turned(again) == start


def _rows(evaluator: Evaluator, choices: Choices) -> tuple[Row, ...]:
    return rows_of(evaluator.transform(choices.plan(None)).candidates)


def test_plan_text_of_choices() -> None:
    choices = Choices().with_option("ring", "both").with_option("unroll", "2").with_option("ring", "auto")
    assert choices.plan(5) == Plan(
        "decompose{unroll=2},async-permute{kinds=supported},fuse{policy=overlap}", "bottom-up", None, 5
    )


@pytest.mark.parametrize("search", [partial(tune, rounds=0), tune_order])
def test_nothing_fits_a_cap_that_is_too_small(evaluator: Evaluator, search: Callable[..., Tuning]) -> None:
    with pytest.raises(Infeasible, match=r"memory cap of 1\.00 KiB") as refusal:
        search(evaluator, memory_cap=1024)
    peak = evaluator.evaluate(plain_plan(evaluator.module)).metrics.peak_memory
    assert refusal.value.least_peak == pytest.approx(peak, rel=1e-3)


def test_a_cap_that_only_slower_plans_fit(evaluator: Evaluator) -> None:
    """Then the module as loaded is no way out, however fast."""
    base = evaluator.evaluate(AS_LOADED)
    slower = evaluator.evaluate(Choices(scheduler="memory").plan(None))
    cap = base.metrics.peak_memory
    assert fastest(base, [slower], cap, 1) is min(base, slower, key=lambda v: v.metrics.makespan)
    assert fastest(base, [slower], cap - 1, 1) is slower


@pytest.mark.parametrize("path", ["samples/mlp_fig3_train_2x4_bf16.hlo", SCHEDULED])
def test_a_search_is_no_worse_than_what_is_shown_without_one(path: str) -> None:
    at = Evaluator(read_here((ROOT / path).read_bytes()))
    shown = [variant.metrics.makespan for variant in default_variants(at)]
    assert tune(at, rounds=1).best.metrics.makespan <= min(shown)


@pytest.fixture(scope="module")
def gpu() -> Evaluator:
    return Evaluator(read_here((SAMPLES / "mlp_fig3.hlo").read_bytes()), MachineSpec("h100"))


def test_a_search_has_no_more_in_flight_than_the_chip(gpu: Evaluator) -> None:
    """A budget that nobody asked for is no gain of a plan: GPUs have one collective in flight."""
    found = tune(gpu, rounds=1, dimensions=["budget", "scheduler"])
    assert {t.plan.budget and t.plan.budget.total for t in found.trials} == {None, 1}
    assert found.best.schedule.budget.total == 1
    assert not any("NCCL" in note for note in found.best.notes)


def test_a_higher_budget_is_set_against_the_same(gpu: Evaluator) -> None:
    start = Choices.of(Plan(best_passes(gpu.module), budget=Budget(4)))
    found = tune(gpu, rounds=1, start=start, dimensions=["budget", "scheduler"])
    assert {t.plan.budget and t.plan.budget.total for t in found.trials} == {None, 1, 2, 4}
    assert found.best.schedule.budget.total in (2, 4)
    assert any("NCCL" in note for note in found.best.notes)
    whole = [gpu.evaluate(whole_plan(gpu.module, Budget(n))).metrics.makespan for n in (1, 2, 4)]
    assert min(whole) < whole[0], "a higher budget alone is faster here"
    assert found.against.metrics.makespan <= min(whole)
    assert found.gains == is_faster(found.best, found.against)


def test_what_budgets_are_tried() -> None:
    tpu, h100 = load_chip("tpu-v4"), load_chip("h100")
    assert is_allowed(None, h100, Budget(1))
    assert is_allowed(Budget(1), h100, None)
    assert not is_allowed(Budget(2), h100, None)
    assert is_allowed(Budget(2), h100, Budget(4))
    assert not is_allowed(Budget(8), h100, Budget(4))
    assert is_allowed(Budget(16), h100, Budget())
    assert is_allowed(Budget(8), tpu, Budget(2))
    assert not is_allowed(Budget(16), tpu, None)
