"""A bundle holds the very order that its search found, not one that was searched for again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from app.exporting import Found, write_bundle_of
from engine.chips.budget import Budget
from engine.control import QUIET
from engine.cost.program import Program
from engine.errors import LapstrakeError
from engine.export.bundle import bundle_files
from engine.hlo.reading import read_bytes, read_here
from engine.ir.module import Module
from engine.quantities import bytes_text, microseconds
from engine.schedule.problem import Schedule, Scheduler
from engine.schedule.programs import schedule_program
from engine.session import evaluation
from engine.session.evaluation import Evaluator
from engine.session.plan import MachineSpec, Plan, plain_plan
from engine.session.tuning import Trial, Tuning
from engine.session.variant import Variant
from tests.places import SAMPLES

SAMPLE = str(SAMPLES / "mlp_fig3_train_2x4_bf16.hlo")
PLAN = Plan("decompose{gate=off},async-permute,fuse{policy=auto}", "improve{seconds=0.05}")


@pytest.fixture(scope="module")
def evaluator() -> Evaluator:
    return Evaluator(read_here(read_bytes(SAMPLE), SAMPLE), MachineSpec("tpu-v4"))


@pytest.fixture(scope="module")
def found(evaluator: Evaluator) -> Tuning:
    base = evaluator.evaluate(plain_plan(evaluator.module), "as loaded")
    # As if the seconds had passed elsewhere: an order that the search would not find again.
    other = evaluator.evaluate(Plan(PLAN.passes, "memory"))
    best = evaluator.evaluate(PLAN, found=other.schedule)
    return Tuning(base, best, (Trial(PLAN, best.metrics),), finished=True)


def entry_order(module: Module) -> list[str]:
    return [i.name for i in module.computations[module.proto.entry_computation_id].instructions]


def order_of(variant: Variant) -> list[str]:
    entry = variant.program.module.proto.entry_computation_id
    graph, order = variant.program.graphs[entry], variant.schedule.orders[entry]
    return [graph.names[node] for node in order.nodes.tolist()]


def test_files_are_of_the_order_that_was_found(
    evaluator: Evaluator, found: Tuning, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluation, "schedule_program", _not_by_search)
    files = bundle_files(evaluator, found, None, "not asked for", None).files
    told = json.loads(files["manifest.json"])["predicted"]
    metrics = found.best.metrics
    assert told["tuned_us"] == microseconds(metrics.makespan)
    assert told["tuned_exposed_us"] == microseconds(metrics.exposed)
    assert told["tuned_peak_memory_bytes"] == metrics.peak_memory
    assert bytes_text(metrics.peak_memory) in files["report.html"].decode()
    tuned = read_here(files["tuned.hlo.pb"], "tuned.hlo.pb")
    entry = tuned.proto.entry_computation_id
    sequence = tuned.proto.schedule.sequences[entry].instruction_ids
    names = {i.id: i.name for i in tuned.computations[entry].instructions}
    assert [names[number] for number in sequence] == order_of(found.best)


def test_a_window_s_bundle_is_too(tmp_path: Path, evaluator: Evaluator, found: Tuning) -> None:
    best = found.best
    known = Found(PLAN, finished=True, dimensions=(), schedule=best.schedule)
    path = str(tmp_path / "bundle")
    write_bundle_of(evaluator.module, evaluator.spec, PLAN, found.trials, known, path, False, None, control=QUIET)
    told = json.loads((tmp_path / "bundle" / "manifest.json").read_text())["predicted"]
    assert told["tuned_us"] == microseconds(best.metrics.makespan)
    assert told["tuned_peak_memory_bytes"] == best.metrics.peak_memory


def test_an_order_of_other_instructions_is_refused(
    evaluator: Evaluator, found: Tuning, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = evaluator.program_of(Plan("decompose{gate=off},async-permute"))
    monkeypatch.setattr(Evaluator, "program_of", lambda *_: other)
    with pytest.raises(LapstrakeError, match="made other instructions for the bundle"):
        bundle_files(evaluator, found, None, "not asked for", None)


def _not_by_search(program: Program, scheduler: Scheduler, budget: Budget, **options: Any) -> Schedule:
    """Passes may try what they make, by a scheduler that takes no time."""
    assert scheduler.name != "improve", "an order was searched for again"
    return schedule_program(program, scheduler, budget, **options)
