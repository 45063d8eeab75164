"""Any iteration of a loop can be shown: one that the timeline has, and one that has to be unfolded."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from PySide6.QtWidgets import QInputDialog
from pytestqt.qtbot import QtBot

from app import work
from app.explorer import Explorer
from engine.control import QUIET
from engine.hlo.reading import read_here
from engine.session import edits
from engine.session.plan import AS_LOADED, MachineSpec
from engine.session.variant import Variant
from engine.simulate.simulator import SimulationOptions, simulate
from tests.app.waiting import LONG, drawn
from tests.places import SAMPLES
from views.timeline.iterations import iteration_span, loop_at

SAMPLE = SAMPLES / "decoder_fig2_scan_4_f32.hlo"


def active(explorer: Explorer) -> Variant:
    variant = explorer.store.state.active_variant
    assert variant is not None
    return variant


def test_an_iteration_is_shown_and_unfolded_where_it_has_to_be(
    qtbot: QtBot, explorer: Explorer, monkeypatch: pytest.MonkeyPatch
) -> None:
    explorer.open(str(SAMPLE))
    qtbot.waitUntil(lambda: drawn(explorer), timeout=LONG)
    explorer.iterations.ask()
    assert explorer.window.statusBar().currentMessage().startswith("Select a loop")
    variant, key = active(explorer), explorer.store.state.active
    timeline = variant.timeline
    loops = np.flatnonzero((timeline.repeat > 1) & (timeline.instruction >= 0))
    assert len(loops)
    loop, last = int(timeline.instruction[loops[0]]), int(timeline.repeat[loops[0]])
    explorer.store.become("Select", edits.selected(explorer.store.state, key, (loop,)))
    monkeypatch.setattr(QInputDialog, "getInt", lambda *given, **_: (given[5], True))
    explorer.iterations.ask()
    span = iteration_span(timeline, int(loops[0]), last - 1)
    assert span is not None
    shown = explorer.window.range
    assert shown.start <= span[0] < span[1] <= shown.start + shown.span

    folded = simulate(variant.program, variant.schedule, SimulationOptions(slice_cap=0)).timeline
    hidden = 2 if last > 3 else 0
    simulated = replace(variant, timeline=replace(folded, iteration=np.full(len(folded), -1)))
    explorer.store.settle(entries=edits.arrived(explorer.store.state, key, simulated).entries)
    frame = loop_at(simulated.timeline, (loop,))
    assert frame is not None
    explorer.iterations.show(key, simulated, frame, hidden)
    qtbot.waitUntil(lambda: active(explorer) is not simulated, timeout=LONG)
    found = loop_at(active(explorer).timeline, (loop,))
    assert found is not None
    assert iteration_span(active(explorer).timeline, found, hidden) is not None


def test_the_job_shows_an_iteration_that_is_folded(monkeypatch: pytest.MonkeyPatch) -> None:
    path = SAMPLE.with_name("decoder_fig2_scan_16_large.hlo")
    module = read_here(path.read_bytes(), path.name, QUIET)
    monkeypatch.setattr("app.work.SimulationOptions", partial(SimulationOptions, slice_cap=0))
    variant = work.evaluate(module, MachineSpec(), AS_LOADED, "", control=QUIET)
    folded = simulate(variant.program, variant.schedule, SimulationOptions(slice_cap=0)).timeline
    frame = loop_at(folded, (int(folded.instruction[np.argmax(folded.repeat)]),))
    assert frame is not None
    assert iteration_span(folded, frame, 2) is None
    loop = int(folded.instruction[frame])
    unfolded = work.unfold(module, MachineSpec(), AS_LOADED, "", (loop, 2), control=QUIET)
    found = loop_at(unfolded.timeline, (loop,))
    assert found is not None
    assert iteration_span(unfolded.timeline, found, 2) is not None
    assert unfolded.metrics == variant.metrics
    assert unfolded.timeline.makespan == folded.makespan
