"""Frame times of the graph at 10⁵ nodes (median, 95th percentile) and the time layouts take, offscreen.

QT_QPA_PLATFORM=offscreen python -m benchmarks.graph [HLO files]
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtCore import QPointF
from PySide6.QtWidgets import QApplication

from engine.control import QUIET
from engine.hlo.reading import read_here
from engine.ir.graph import Ints
from engine.layout.outline import Look, Outline, Side
from engine.layout.outlining import outline_of
from engine.layout.picture import MOST, NODE_HEIGHT, Picture, picture_of
from tests.views.fake_host import FakeHost
from views.graph.camera import Camera
from views.graph.colouring import by_kind
from views.graph.folds import first_opened, with_descendants
from views.graph.items import Shown
from views.graph.over import Over
from views.graph.view import GraphView
from views.theme import LIGHT

NODES = 10**5
FRAMES = 60
SIZE = (1600, 900)
_ACROSS = 50


def main(paths: Sequence[str]) -> None:
    """Print one line for each movement over 10⁵ nodes, then one for each file."""
    application = QApplication.instance() or QApplication([])
    assert isinstance(application, QApplication)
    view = _view(NODES)
    application.processEvents()
    print(
        f"{'nodes':>10} {'movement':<26}{'median':>9}{'p95':>9}{'worst':>9}{'cpu':>9}{'cpu p95':>9}"
        f"   (ms, {SIZE[0]}×{SIZE[1]})"
    )
    for name, move in _movements(view):
        times, cpu = _frames(view, move)
        median, high = np.percentile(times, (50, 95))
        busy = np.percentile(cpu, (50, 95))
        print(f"{NODES:>10,} {name:<26}{median:>9.2f}{high:>9.2f}{max(times):>9.2f}{busy[0]:>9.2f}{busy[1]:>9.2f}")
    view.close()
    if paths:
        print(f"\n{'file':<40}{'instr.':>9}{'outline':>9}{'first':>9}{'nodes':>7}{'largest':>9}{'nodes':>7}   (s)")
    for path in paths:
        _measure_file(path)


def _measure_file(path: str) -> None:
    """Seconds to fold a module, and to lay out what is shown at first and as much as can be."""
    module = read_here(Path(path).read_bytes(), path, QUIET)
    begun = time.perf_counter()
    outline = outline_of(module)
    folded = time.perf_counter() - begun
    opened = first_opened(outline)
    begun = time.perf_counter()
    first = picture_of(outline, opened)
    first_time = time.perf_counter() - begun
    most, _ = with_descendants(outline, opened, 0, MOST)
    begun = time.perf_counter()
    largest = picture_of(outline, most)
    largest_time = time.perf_counter() - begun
    count = int((outline.instruction >= 0).sum())
    nodes = [int((~p.opened).sum()) for p in (first, largest)]
    print(
        f"{Path(path).name:<40}{count:>9,}{folded:>9.2f}{first_time:>9.3f}{nodes[0]:>7,}{largest_time:>9.3f}{nodes[1]:>7,}"
    )


def _view(nodes: int) -> GraphView:
    outline, picture = grid(nodes)
    view = GraphView(FakeHost(), Camera())
    view.resize(*SIZE)
    begun = time.perf_counter()
    view.set_shown(Shown(outline, picture, by_kind(LIGHT, outline.look), LIGHT, Side.AFTER))
    view.show()
    view.grab()
    print(f"{nodes:>10,} {'first frame':<26}{(time.perf_counter() - begun) * 1e3:>9.2f}")
    return view


def grid(nodes: int) -> tuple[Outline, Picture]:
    """A picture of that many nodes in layers of fifty, each joined to two of the layer before: many more than a layout
    ever makes, to see what drawing costs."""
    number = np.arange(nodes)
    random = np.random.default_rng(0)
    source = np.concatenate([np.maximum(0, number[_ACROSS:] - _ACROSS), np.maximum(0, number[_ACROSS:] - _ACROSS - 1)])
    target = np.concatenate([number[_ACROSS:], number[_ACROSS:]])
    left = (number % _ACROSS) * 120.0 + random.uniform(0, 20, nodes) + 20.0
    top = (number // _ACROSS) * (NODE_HEIGHT + 36.0) + 40.0
    width = random.uniform(80, 100, nodes)
    frame = np.array([[0.0, 0.0, left.max() + 140, top.max() + 80]])
    boxes = np.concatenate([frame, np.stack([left, top, width, np.full(nodes, NODE_HEIGHT)], axis=1)])
    x = np.stack([boxes[source + 1, 0] + 45, boxes[target + 1, 0] + 45], axis=1).reshape(-1)
    y = np.stack([boxes[source + 1, 1] + NODE_HEIGHT, boxes[target + 1, 1]], axis=1).reshape(-1)
    items = np.arange(nodes + 1)
    ones = np.ones(len(source), np.int64)
    both = np.full(nodes + 1, Side.BOTH, np.uint8)
    outline = Outline(
        parent=np.concatenate([[-1], np.zeros(nodes, np.int64)]),
        end=np.concatenate([[nodes + 1], items[1:] + 1]),
        kind=np.zeros(nodes + 1, np.uint8),
        instruction=items - 1,
        names=("main", *(f"add.{n}" for n in range(nodes))),
        details=("", *("add bf16[4096,1024]" for _ in range(nodes))),
        paths=("",) * (nodes + 1),
        sides=both,
        changed=np.zeros(nodes + 1, np.bool_),
        look=np.concatenate([[Look.GROUP], random.integers(0, 6, nodes)]).astype(np.uint8),
        source=source + 1,
        target=target + 1,
        wire_sides=np.full(len(source), Side.BOTH, np.uint8),
        edge_source=source + 1,
        edge_target=target + 1,
        edge_wires=ones,
        edge_sides=np.full(len(source), Side.BOTH, np.uint8),
        origins={},
    )
    starts: Ints = np.arange(len(source) + 1, dtype=np.int64) * 2
    picture = Picture(
        items=items,
        left=boxes[:, 0],
        top=boxes[:, 1],
        width=boxes[:, 2],
        height=boxes[:, 3],
        opened=items == 0,
        source=source + 1,
        target=target + 1,
        wires=ones,
        sides=np.full(len(source), Side.BOTH, np.uint8),
        turned=np.zeros(len(source), np.bool_),
        starts=starts,
        x=x,
        y=y,
    )
    return outline, picture


def _movements(view: GraphView) -> Iterator[tuple[str, Callable[[int], None]]]:
    assert view.shown is not None
    whole = view.shown.picture
    middle = QPointF(float(whole.width[0]) / 2, float(whole.height[0]) / 2)
    view.fit()
    least = view.camera.scale

    def pan(scale: float) -> Callable[[int], None]:
        return lambda n: view.camera.look_at(middle + QPointF(n % 7, n * 24 / scale), scale)

    yield "everything, zooming", lambda n: view.camera.look_at(middle, least * 1.02 ** (n % 8))
    yield "a tenth, panning", pan(0.08)
    yield "short names, panning", pan(0.3)
    yield "names, panning", pan(1.0)
    yield "in and out", lambda n: view.camera.look_at(middle, least * 1.3 ** (n % 24))
    yield "hovering", lambda n: _hover(view, middle, n)


def _hover(view: GraphView, middle: QPointF, number: int) -> None:
    view.camera.look_at(middle, 0.6)
    view.set_over(Over(hover=NODES // 2 + number))


def _frames(view: GraphView, move: Callable[[int], None]) -> tuple[list[float], list[float]]:
    """Milliseconds of each frame by the clock, and of this process alone: the machine may have other work."""
    times, cpu = [], []
    move(0)
    view.grab()
    for number in range(FRAMES):
        begun, begun_cpu = time.perf_counter(), time.process_time()
        move(number)
        view.viewport().grab()
        times.append((time.perf_counter() - begun) * 1e3)
        cpu.append((time.process_time() - begun_cpu) * 1e3)
    return times, cpu


def options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="benchmarks.graph", description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("files", nargs="*", metavar="FILE", help="HLO whose graph is laid out besides")
    return parser.parse_args()


if __name__ == "__main__":
    main(options().files)
