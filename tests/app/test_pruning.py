"""A default plan gives way to what a report shows for it, and is called what it is; a chosen one does not change."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.explorer import Explorer
from engine.hlo.reading import read_bytes, read_here
from engine.session import edits
from engine.session.evaluation import Evaluator
from engine.session.plan import BEST_PASSES, WHOLE, MachineSpec, Plan
from engine.session.pruning import default_variants
from engine.session.session import Entry
from tests.app.waiting import LONG
from tests.places import SAMPLES

SAMPLE = SAMPLES / "mlp_fig3_train_4x2_f32.hlo"
"""Of its gathers some gain by the gate and lose in the simulator, on TPU v4."""


def makespan(entry: Entry | None) -> int:
    assert entry is not None
    assert entry.variant is not None
    return entry.variant.metrics.makespan


def test_only_a_plan_that_nobody_chose_gives_way(qtbot: QtBot, explorer: Explorer) -> None:
    explorer.open(str(SAMPLE))
    store = explorer.store

    def shown() -> Entry | None:
        return store.state.entry("B")

    def better() -> bool:
        entry = shown()
        return entry is not None and not entry.pending and entry.plan.passes != BEST_PASSES

    qtbot.waitUntil(better, timeout=LONG)
    entry = shown()
    assert entry is not None
    assert entry.plan.passes.startswith("decompose{")
    assert entry.plan.scheduler == "bottom-up"
    assert entry.name == "decomposed, bottom-up"
    assert makespan(entry) < makespan(store.state.entry("A"))
    assert " dropped: " in entry.remark
    assert entry.remark.endswith(" faster")
    assert store.undo_label is None
    store.become("Plan", edits.planned(store.state, "B", Plan(BEST_PASSES, "bottom-up")))
    qtbot.waitUntil(lambda: not any(e.pending for e in store.state.entries), timeout=LONG)
    qtbot.wait(50)
    chosen = shown()
    assert chosen is not None
    assert chosen.plan.passes == BEST_PASSES
    assert chosen.remark == ""
    assert makespan(chosen) > makespan(entry)
    assert not [job for job in explorer.jobs() if job.state == "running"]


def reported(path: Path, chip: str) -> tuple[str, Plan, int]:
    """Name, plan and makespan of the default plan under bottom-up, as a report has them."""
    found = default_variants(Evaluator(read_here(read_bytes(str(path)), str(path)), MachineSpec(chip)))
    return next((v.name, v.plan, v.metrics.makespan) for v in found if v.plan.scheduler == "bottom-up")


def is_shown(explorer: Explorer, wanted: tuple[str, Plan, int]) -> bool:
    entry = explorer.store.state.entry("B")
    if entry is None or entry.pending or entry.variant is None:
        return False
    return (entry.title, entry.plan, entry.variant.metrics.makespan) == wanted


@pytest.mark.parametrize("name", ["mlp_fig3_train_4x2_f32", "mlp_fig2_train_8_bf16"])
def test_the_window_ends_with_what_a_report_shows(qtbot: QtBot, explorer: Explorer, name: str) -> None:
    """The first has rows that do not pay although the plan is faster than as loaded; of the second nothing is
    decomposed, and it is not called so. On another chip both are found out anew."""
    path, store = SAMPLES / f"{name}.hlo", explorer.store
    explorer.open(str(path))
    for chip in ("tpu-v4", "tpu-v5e"):
        wanted = reported(path, chip)
        qtbot.waitUntil(partial(is_shown, explorer, wanted), timeout=LONG)
        if chip == "tpu-v4":
            entry = store.state.entry("B")
            assert entry is not None
            assert entry.variant is not None
            assert any("is left whole" in note for note in entry.variant.notes) == (entry.plan.passes != BEST_PASSES)
            assert store.undo_label is None
            store.become("Machine", edits.on_machine(store.state, MachineSpec("tpu-v5e")))


def whole_of(path: Path, chip: str) -> tuple[Plan, int]:
    """Plan and makespan of what decomposes nothing, as a report has them."""
    found = default_variants(Evaluator(read_here(read_bytes(str(path)), str(path)), MachineSpec(chip)))
    return next((v.plan, v.metrics.makespan) for v in found if v.name == WHOLE)


def test_what_decomposes_nothing_is_in_the_order_that_gains_are_measured_against(
    qtbot: QtBot, explorer: Explorer
) -> None:
    """Top-down is faster than bottom-up on the first chip, not on the second."""
    path, store = SAMPLES / "mlp_fig3_train_2x4_bf16.hlo", explorer.store
    explorer.open(str(path))
    orders = []
    qtbot.waitUntil(lambda: len(store.state.entries) == 3, timeout=LONG)
    for chip in ("tpu-v5e", "tpu-v6e"):
        store.become("Machine", edits.on_machine(store.state, MachineSpec(chip)))
        plan, makespan = whole_of(path, chip)

        def is_there(plan: Plan = plan, makespan: int = makespan) -> bool:
            entry = store.state.entry("C")
            if entry is None or entry.pending or entry.variant is None:
                return False
            return (entry.name, entry.plan, entry.variant.metrics.makespan) == (WHOLE, plan, makespan)

        qtbot.waitUntil(is_there, timeout=LONG)
        orders.append(plan.scheduler)
    assert orders[0] != "bottom-up"
    # Once chosen, an order stays.
    chosen = replace(plan, scheduler="memory")
    store.become("Plan", edits.planned(store.state, "C", chosen))
    qtbot.waitUntil(lambda: not any(job.state == "running" for job in explorer.jobs()), timeout=LONG)
    qtbot.wait(50)
    entry = store.state.entry("C")
    assert entry is not None
    assert entry.plan == chosen
