"""What a job says of a place is what would be said at once."""

from __future__ import annotations

import numpy as np
import pytest
from pytestqt.qtbot import QtBot

from app.explorer import Explorer
from engine.session import edits
from tests.app.waiting import LONG
from tests.places import SAMPLES
from views.inspector import inspector
from views.inspector.facts import decisions


def test_a_place_is_explained_by_a_job(qtbot: QtBot, explorer: Explorer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inspector, "AT_ONCE", 0)
    explorer.open(str(SAMPLES / "mlp_fig2.hlo"))
    store = explorer.store
    qtbot.waitUntil(lambda: bool(store.state.entries) and not any(e.pending for e in store.state.entries), timeout=LONG)
    qtbot.waitUntil(lambda: not any(job.state == "running" for job in explorer.jobs()), timeout=LONG)
    shown = explorer.window.inspector
    for entry in store.state.entries:
        assert entry.variant is not None
        instruction = int(np.max(entry.variant.timeline.instruction))
        store.become("Select", edits.selected(store.state, entry.key, (instruction,)))
        qtbot.waitUntil(lambda: "is number" in shown.below.text(), timeout=LONG)
        for paragraph in decisions(entry.variant, instruction):
            assert paragraph.split("'", 1)[0] in shown.below.text()
    assert not [job.error for job in explorer.jobs() if job.error]
