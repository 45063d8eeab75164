"""Frame times of the timelines: median and 95th percentile of pan and zoom at 10⁵ and 10⁶ slices, offscreen.

QT_QPA_PLATFORM=offscreen python -m benchmarks.window
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from itertools import count

import numpy as np

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtWidgets import QApplication

from engine.session.session import TRANSIENT, Entry, Session
from engine.session.store import Store
from tests.views.fake_host import FakeHost
from tests.views.synthetic import around, module_of, wide_timeline
from views.timeline.axis import TimeRange
from views.timeline.view import TimelineView

FRAMES = 60
SIZE = (1600, 900)


def main() -> None:
    """Print one line for each size and movement."""
    application = QApplication.instance() or QApplication([])
    print(f"{'slices':>10} {'movement':<22} {'median':>9} {'p95':>9} {'worst':>9}   (ms, {SIZE[0]}×{SIZE[1]})")
    for slices in (10**5, 10**6):
        view = _view(slices)
        application.processEvents()
        for name, move in _movements(view):
            times = _frames(view, move)
            median, high = np.percentile(times, (50, 95))
            print(f"{slices:>10,} {name:<22} {median:>9.2f} {high:>9.2f} {max(times):>9.2f}")
        view.close()


def _view(slices: int) -> TimelineView:
    made = around(module_of(2), wide_timeline(slices), 0)
    entry = Entry("A", made.plan, variant=made)
    host = FakeHost(Store(Session(path="x", entries=(entry,), active="A", base="A"), TRANSIENT))
    begun = time.perf_counter()
    view = TimelineView(host, TimeRange())
    view.resize(*SIZE)
    view.show()
    view.grab()
    print(f"{slices:>10,} {'first frame':<22} {(time.perf_counter() - begun) * 1e3:>9.2f}")
    return view


def _movements(view: TimelineView) -> Iterator[tuple[str, Callable[[int], None]]]:
    whole = view.range.limit
    yield "everything, zooming", lambda n: view.range.zoom(1.02 if n % 2 else 1 / 1.02, whole // 2)
    yield "a tenth, panning", lambda n: view.range.show(whole // 3 + n * whole // 2000, whole // 10)
    yield "a thousandth, panning", lambda n: view.range.show(whole // 3 + n * whole // 200_000, whole // 1000)
    yield "in and out", lambda n: view.range.show(whole // 3, int(whole / 1.2 ** (n % 30)))


def _frames(view: TimelineView, move: Callable[[int], None]) -> list[float]:
    times = []
    numbers = count()
    for _ in range(FRAMES):
        move(next(numbers))
        begun = time.perf_counter()
        view.redraw()
        view.grab()
        times.append((time.perf_counter() - begun) * 1e3)
    return times


if __name__ == "__main__":
    main()
