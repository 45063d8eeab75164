"""A default plan that is slower than its module as loaded gives way to a better one; a chosen one does not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication, QEvent
from pytestqt.qtbot import QtBot

from app.explorer import Explorer
from app.settings import Settings
from engine.session import edits
from engine.session.plan import BEST_PASSES, Plan
from engine.session.session import Entry
from tests.app.waiting import LONG
from tests.places import SAMPLES

SAMPLE = SAMPLES / "mlp_chain.hlo"
"""Its chain gains by the gate and loses in the simulator, on TPU v4."""


@pytest.fixture
def explorer(qtbot: QtBot, tmp_path: Path) -> Iterator[Explorer]:
    made = Explorer(Settings(tmp_path / "window.ini"))
    made.show()
    qtbot.waitExposed(made.window)
    yield made
    made.window.close()
    made.window.deleteLater()
    made.deleteLater()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)


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
    assert store.undo_label is None
    store.become("Plan", edits.planned(store.state, "B", Plan(BEST_PASSES, "bottom-up")))
    qtbot.waitUntil(lambda: not any(e.pending for e in store.state.entries), timeout=LONG)
    qtbot.wait(50)
    chosen = shown()
    assert chosen is not None
    assert chosen.plan.passes == BEST_PASSES
    assert makespan(chosen) > makespan(store.state.entry("A"))
    assert not [job for job in explorer.jobs() if job.state == "running"]
