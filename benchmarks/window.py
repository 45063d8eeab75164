"""Frame times of the timelines (median and 95th percentile of pan and zoom at 10⁵ and 10⁶ slices), and how long files
take from opening to the first picture, to all of them, and from a moved budget to its picture; offscreen.

QT_QPA_PLATFORM=offscreen python -m benchmarks.window [--only-files] [FILE …]

Each file is opened without a worker running (cold) and with one that has imported what it needs (warm), and as
`lapstrake FILE` does it, timed from the start of the process. Beside times by the clock stand processor times, which
other work on the machine does not lengthen as much: of the window and of its workers up to the first picture, and of
the longest block of the event loop. All of it runs from Python's bytecode, as an installed program does.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtWidgets import QApplication

from app.explorer import Explorer
from app.settings import Settings
from engine import worker
from engine.session.session import FIRST, TRANSIENT, Entry, ModuleFile, Session
from engine.session.store import Store
from tests.views.fake_host import FakeHost
from tests.views.synthetic import around, module_of, wide_timeline
from views.timeline.axis import TimeRange
from views.timeline.view import TimelineView

FRAMES = 60
SIZE = (1600, 900)


def main(argv: Sequence[str] | None = None) -> None:
    """Print one line for each size and movement, then those of each file."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.window", description=(__doc__ or "").partition("\n\n")[0]
    )
    parser.add_argument("files", nargs="*", metavar="FILE", help="HLO to be opened")
    parser.add_argument("--only-files", action="store_true", help="no frame times")
    options = parser.parse_args(argv)
    for path in options.files:
        if not Path(path).exists():
            parser.error(f"{path}: there is no such file")
    _use_bytecode()
    application = QApplication.instance() or QApplication([])
    assert isinstance(application, QApplication)
    if not options.only_files:
        _measure_frames(application)
    if options.files:
        _measure_files(application, options.files)


def _use_bytecode() -> None:
    """Start again with bytecode in a folder that lasts, where this Python writes none: workers would compile it all."""
    if sys.dont_write_bytecode and sys.pycache_prefix is None:
        folder = Path(tempfile.gettempdir()) / "lapstrake-benchmark-bytecode"
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(folder)}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        os.execve(sys.executable, [sys.executable, "-m", "benchmarks.window", *sys.argv[1:]], environment)


def _measure_frames(application: QApplication) -> None:
    heads = "".join(f"{head:>10}" for head in ("median", "p95", "worst", "cpu", "cpu p95"))
    print(f"{'slices':>10} {'movement':<22}{heads}   (ms, {SIZE[0]}×{SIZE[1]})")
    for slices in (10**5, 10**6):
        view = _view(slices)
        application.processEvents()
        for name, move in _movements(view):
            times, cpu = _frames(view, move)
            median, high = np.percentile(times, (50, 95))
            busy = np.percentile(cpu, (50, 95))
            print(
                f"{slices:>10,} {name:<22} {median:>9.2f} {high:>9.2f} {max(times):>9.2f} "
                f"{busy[0]:>9.2f} {busy[1]:>9.2f}"
            )
        view.close()


def _measure_files(application: QApplication, paths: Sequence[str]) -> None:
    worker.call("app.work:warm")  # writes bytecode
    heads = "".join(f"{head:>10}" for head in ("first", "window", "workers", "all", "budget", "block", "cpu"))
    print(f"\n{'file':<40}{heads}   (s)")
    for path in paths:
        for warm in (False, True):
            worker.close()  # what a worker has kept of a module would be found again
            _measure_file(application, path, warm=warm)
    worker.close()
    print(f"\n{'lapstrake FILE':<40}{'shown':>10}{'first':>10}   (s, from the start of the process)")
    for path in paths:
        command = [sys.executable, "-m", "benchmarks.first_picture", path]
        for last in (False, True):
            said = subprocess.run([*command, str(time.time())], stdout=subprocess.PIPE, text=True, check=True).stdout
            if last:  # the one before has written bytecode
                print(f"{Path(path).name[:39]:<40}" + "".join(f"{float(value):>10.3f}" for value in said.split()))


def _measure_file(application: QApplication, path: str, *, warm: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        explorer = Explorer(Settings(Path(folder) / "window.ini"))
        explorer.show()
        if warm:
            worker.prepare("app.work:warm")
        _pump(application, lambda: False, 2.0)
        begun, own, others = time.perf_counter(), time.process_time(), _workers_cpu()
        explorer.open(path)

        def entries() -> tuple[Entry, ...]:
            return explorer.store.state.entries

        block = _pump(application, lambda: any(e.variant is not None for e in entries()))
        first = time.perf_counter() - begun
        spent = time.process_time() - own, _workers_cpu() - others
        block = max(block, _pump(application, lambda: bool(entries()) and not any(e.pending for e in entries())))
        everything = time.perf_counter() - begun
        begun = time.perf_counter()
        explorer.window.plan_line.budget.setValue(3)
        block = max(block, _pump(application, lambda: not any(e.pending for e in entries())))
        moved = time.perf_counter() - begun
        times = (first, *spent, everything, moved, *block)
        name = f"{Path(path).name[:33]} {'warm' if warm else 'cold'}"
        print(f"{name:<40}" + "".join(f"{value:>10.3f}" for value in times))
        explorer.leave()  # nobody is there to be asked about what was not saved
        explorer.window.close()


def _pump(application: QApplication, done: Callable[[], bool], limit: float = 300.0) -> tuple[float, float]:
    """Run the event loop until something is done; the longest it was blocked by the clock, and was busy itself."""
    longest, busiest, until = 0.0, 0.0, time.perf_counter() + limit
    while not done() and time.perf_counter() < until:
        begun, begun_cpu = time.perf_counter(), time.thread_time()
        application.processEvents()
        longest = max(longest, time.perf_counter() - begun)
        busiest = max(busiest, time.thread_time() - begun_cpu)
        time.sleep(0.001)
    return longest, busiest


def _workers_cpu() -> float:
    """Seconds of processor time of this process's children that are alive; 0 where the system does not tell."""
    ticks = 0
    for place in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = place.read_text("utf-8", "replace").rpartition(")")[2].split()
            if int(fields[1]) == os.getpid():
                ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK") if ticks else 0.0


def _view(slices: int) -> TimelineView:
    made = around(module_of(2), wide_timeline(slices), 0)
    entry = Entry("A", made.plan, variant=made)
    host = FakeHost(Store(Session((ModuleFile(FIRST, "x"),), entries=(entry,), active="A", base="A"), TRANSIENT))
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


def _frames(view: TimelineView, move: Callable[[int], None]) -> tuple[list[float], list[float]]:
    """Milliseconds of each frame by the clock, and of this process alone: the machine may have other work."""
    times, cpu = [], []
    for number in range(FRAMES):
        move(number)
        begun, begun_cpu = time.perf_counter(), time.process_time()
        view.redraw()
        view.grab()
        times.append((time.perf_counter() - begun) * 1e3)
        cpu.append((time.process_time() - begun_cpu) * 1e3)
    return times, cpu


if __name__ == "__main__":
    main()
