"""Draws the pictures of the manual: the real window on shipped samples, offscreen. Run by `make screenshots`."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtCore import QEvent, QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget

from app.explorer import Explorer
from app.settings import Settings
from engine.session import edits
from engine.timeline.timeline import Category
from views.runs.runner import Task, Wish
from views.timeline.overlay import Hit, slice_rect

ROOT = Path(__file__).parents[1]
PICTURES = ROOT / "docs" / "images"
SAMPLES = ROOT / "samples"
MLP = SAMPLES / "mlp_fig3_train_8x8_large.hlo"
RUNNABLE = SAMPLES / "mlp_fig3_train_2x4_bf16.hlo"
DECODER = SAMPLES / "decoder_fig3_scan_8x8_large.hlo"
SMALL, LARGE = (1280, 800), (2560, 1440)


def main() -> int:
    """Write every picture; 1 if a sample failed to open."""
    application = QApplication.instance() or QApplication(sys.argv[:1])
    assert isinstance(application, QApplication)
    PICTURES.mkdir(parents=True, exist_ok=True)
    with explorer(application, "light", SMALL) as shown:
        picture(shown.window, "welcome")
    with explorer(application, "light", SMALL) as shown:
        _open(application, shown, MLP)
        shown.window.show_pane("Compare")
        _pump(application)
        picture(shown.window, "window-light")
        _hover_gap(application, shown)
        picture(shown.window, "gap")
        _select(application, shown)
        picture(shown.window, "inspector")
        shown.window.show_pane("Compare")
        shown.perform("try-all")
        _wait(application, lambda: not any(job.state == "running" for job in shown.jobs()))
        picture(shown.window, "compare")
        shown.window.show_pane("Budget")
        _wait(application, lambda: not any(job.state == "running" for job in shown.jobs()))
        picture(shown.window, "budget")
        shown.window.show_pane("Graph")
        _select_permute(shown)
        _pump(application, 0.3)
        picture(shown.window, "graph")
        shown.window.show_pane("HLO")
        _wait(application, lambda: not any(job.state == "running" for job in shown.jobs()))
        picture(shown.window, "hlo")
        _tune(application, shown)
    with explorer(application, "light", SMALL) as shown:
        _run(application, shown)
    with explorer(application, "light", SMALL) as shown:
        _compare_modules(application, shown)
    with explorer(application, "dark", LARGE) as shown:
        _open(application, shown, DECODER)
        shown.window.show_pane("Compare")
        shown.perform("critical")
        _pump(application)
        picture(shown.window, "window-dark")
    return 0


def _compare_modules(application: QApplication, shown: Explorer) -> None:
    """Two modules in one session, the second one active."""
    _open(application, shown, MLP, SAMPLES / "mlp_fig2_train_16_large.hlo")
    _wait(application, lambda: bool(shown.store.state.matches))
    shown.store.become("Activate", edits.activated(shown.store.state, shown.store.state.entries[-1].key))
    shown.window.show_pane("Differences")
    _pump(application, 0.3)
    picture(shown.window, "modules")


@contextmanager
def explorer(application: QApplication, theme: str, size: tuple[int, int]) -> Iterator[Explorer]:
    """A window with settings of its own."""
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(Path(folder) / "window.ini")
        settings.theme = theme
        made = Explorer(settings)
        made.show()
        made.window.resize(*size)
        _pump(application)
        yield made
        made.leave()  # nobody is there to be asked about what was not saved
        made.window.close()
        made.window.deleteLater()
        made.deleteLater()
        application.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)


def picture(widget: QWidget, name: str) -> None:
    """Write what a widget shows to docs/images."""
    path = PICTURES / f"{name}.png"
    widget.grab().save(str(path))
    print(path.relative_to(ROOT))


def _open(application: QApplication, shown: Explorer, *paths: Path) -> None:
    shown.open(*map(str, paths))
    store = shown.store
    _wait(application, lambda: bool(store.state.problem) or store.state.facts is not None)
    _wait(application, lambda: len({entry.module for entry in store.state.entries}) == len(paths))
    _wait(application, lambda: not any(entry.pending for entry in store.state.entries))
    troubles = [store.state.problem, *(entry.error for entry in store.state.entries)]
    if any(troubles):
        raise SystemExit(f"{paths[0].name}: {'; '.join(filter(None, troubles))}")
    _pump(application, 0.3)
    _wait(application, lambda: not any(job.state == "running" for job in shown.jobs()))  # rows that do not pay
    _pump(application, 0.3)


def _run(application: QApplication, shown: Explorer) -> None:
    """Time and verify the first two variants, then profile the second."""
    _open(application, shown, RUNNABLE)
    idle = partial(_wait, application, lambda: not any(job.state == "running" for job in shown.jobs()))
    shown.perform("show-runs")
    idle()
    buttons = shown.runs_pane.devices.controls.buttons
    for task in (Task.RUN, Task.VERIFY):
        buttons[task].click()
        idle()
    picture(shown.window, "runs")
    shown.runs.start(Task.PROFILE, (shown.store.state.active,), Wish(repeats=5))
    idle()
    _wait(application, lambda: not any(entry.pending for entry in shown.store.state.entries))
    shown.window.show_pane("Differences")
    _pump(application, 0.3)
    picture(shown.window, "measured")


def _hover_gap(application: QApplication, shown: Explorer) -> None:
    """Put the mouse on the longest exposed gap of the base."""
    view = shown.window.timelines.view
    variant = shown.store.state.entries[0].variant
    assert variant is not None
    gaps = [n for n in range(len(variant.timeline)) if variant.timeline.category[n] == Category.EXPOSED]
    longest = max(gaps, key=lambda n: int(variant.timeline.duration[n]))
    place = slice_rect(view.scene(), Hit(0, longest))
    assert place is not None
    QTest.mouseMove(view.viewport(), place.center().toPoint() + QPoint(1, 0))
    _pump(application)


def _select(application: QApplication, shown: Explorer) -> None:
    """Select the collective that gains most in the active variant."""
    view = shown.window.timelines.view
    QApplication.sendEvent(view.viewport(), QEvent(QEvent.Type.Leave))
    variant = shown.store.state.active_variant
    assert variant is not None
    best = max((c for c in variant.candidates if c.gate is not None), key=lambda c: c.gate.gain if c.gate else 0)
    state = edits.selected(shown.store.state, shown.store.state.active, (best.collective,))
    shown.store.become("Select", state)
    view.setFocus(Qt.FocusReason.OtherFocusReason)
    _pump(application)


def _tune(application: QApplication, shown: Explorer) -> None:
    """Search for a while over some decisions, and stop before anything is written."""
    shown.perform("tune")
    page = shown.export.bundle
    page.path.setText("mlp_fig3.bundle")
    page.tune.click()
    _wait(application, lambda: len(shown.exports.progress.trials) >= 12)
    # Taken while the search runs: the picture is about the table that fills.
    picture(shown.window, "export")
    page.stop.click()
    _wait(application, lambda: not shown.exports.progress.stage)


def _select_permute(shown: Explorer) -> None:
    """Select one permute of the active variant."""
    variant = shown.store.state.active_variant
    assert variant is not None
    permutes = variant.timeline.instruction[variant.timeline.category == Category.PERMUTE]
    state = edits.selected(shown.store.state, shown.store.state.active, (int(permutes[len(permutes) // 2]),))
    shown.store.become("Select", state)


def _wait(application: QApplication, done: Callable[[], bool], limit: float = 300.0) -> None:
    until = time.monotonic() + limit
    while not done():
        if time.monotonic() > until:
            raise SystemExit("a job took too long")
        application.processEvents()
        time.sleep(0.01)
    _pump(application)


def _pump(application: QApplication, seconds: float = 0.1) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        application.processEvents()
        time.sleep(0.005)


if __name__ == "__main__":
    sys.exit(main())
