"""Places every item of an outline that is to be seen: each open group is laid out by itself and is then one large node
among its siblings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.control import QUIET, Control
from engine.errors import UsageError
from engine.ir.graph import Bools, Ints
from engine.layout.layered import Level, Point, lay_out
from engine.layout.outline import Bytes, Outline

MOST = 2_000
"""Nodes that are laid out at once."""
NODE_HEIGHT = 40.0
_NARROWEST, _WIDEST = 92.0, 232.0
_LETTER = 7.2
"""Width of a letter that names are given room for; longer ones are shortened when drawn."""
_SMALL_LETTER = 6.0
"""The same for what stands below the name, in smaller letters."""
HEADER = 28.0
"""Height of the title of an open group."""
PADDING = 16.0

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Picture:
    """k shown items in preorder (a group before what lies in it) and m edges. In pixels at scale 1. Read-only."""

    items: Ints
    left: Floats
    top: Floats
    width: Floats
    height: Floats
    opened: Bools
    """Whether an item is a frame around what lies in it. Shape [k]."""
    source: Ints
    """Edges as positions in `items`. Shape [m]."""
    target: Ints
    wires: Ints
    sides: Bytes
    turned: Bools
    """Edges that point up because groups depend on each other in a circle. Shape [m]."""
    starts: Ints
    """Edge e goes through the points ``starts[e]:starts[e + 1]``. Shape [m + 1]."""
    x: Floats
    y: Floats

    def __len__(self) -> int:
        return len(self.items)

    def position(self, item: int) -> int | None:
        """Where an item stands in the columns, None where it is not shown."""
        at = int(np.searchsorted(self.items, item))
        return at if at < len(self.items) and self.items[at] == item else None


@dataclass(frozen=True, eq=False)
class Skeleton:
    """What a layout needs of an outline: the shown items alone, so that little travels to the job that lays out."""

    items: Ints
    parent: Ints
    """Position of the frame that an item lies in, -1 for the first. Shape [k]."""
    width: Floats
    """Width of a node, and of a frame's title. Shape [k]."""
    opened: Bools
    source: Ints
    """Sibling edges as positions, ordered by the frame they lie in. Shape [m]."""
    target: Ints
    wires: Ints
    sides: Bytes


def skeleton_of(outline: Outline, opened: frozenset[int] = frozenset()) -> Skeleton:
    """What is seen when `opened` are open. Raises UsageError beyond `MOST` nodes."""
    items = outline.shown(opened)
    frames = [item for item in items.tolist() if item == 0 or (item in opened and outline.is_group(item))]
    count = len(items) - len(frames)
    if count > MOST:
        raise UsageError(f"{count:,} nodes would be shown, {MOST:,} at most can be: close some groups first")
    spans = [outline.edges_in(frame) for frame in frames]
    which = np.concatenate([np.arange(s.start, s.stop) for s in spans])
    return Skeleton(
        items=items,
        parent=np.searchsorted(items, outline.parent[items]) - (items == 0),
        width=np.array([node_width(outline.names[item], outline.details[item]) for item in items.tolist()]),
        opened=np.isin(items, np.array(frames, np.int64)),
        source=np.searchsorted(items, outline.edge_source[which]),
        target=np.searchsorted(items, outline.edge_target[which]),
        wires=outline.edge_wires[which],
        sides=outline.edge_sides[which],
    )


def picture_of(outline: Outline, opened: frozenset[int] = frozenset()) -> Picture:
    """Lay out what is seen when `opened` are open. Raises UsageError beyond `MOST` nodes."""
    return arrange(skeleton_of(outline, opened))


def arrange(skeleton: Skeleton, control: Control = QUIET) -> Picture:
    """Lay out every frame, inner ones first, then put them into each other."""
    frames = np.flatnonzero(skeleton.opened).tolist()
    edge_frame = skeleton.parent[skeleton.source] if len(skeleton.source) else np.empty(0, np.int64)
    levels: dict[int, _Laid] = {}
    for number, frame in enumerate(reversed(frames)):
        control.step(number / len(frames), "laying out")
        children = np.flatnonzero(skeleton.parent == frame)
        levels[frame] = _level(skeleton, frame, children, np.flatnonzero(edge_frame == frame), levels)
    return _assemble(skeleton, frames, levels)


def node_width(name: str, detail: str) -> float:
    return min(_WIDEST, max(_NARROWEST, len(name) * _LETTER + 24.0, len(detail) * _SMALL_LETTER + 24.0))


@dataclass(frozen=True, slots=True)
class _Laid:
    """An open frame: its children and edges, and the level they make."""

    children: Ints
    edges: Ints
    level: Level
    width: float
    height: float


def _level(skeleton: Skeleton, frame: int, children: Ints, edges: Ints, inner: Mapping[int, _Laid]) -> _Laid:
    local = {position: n for n, position in enumerate(children.tolist())}
    sizes = [_size(skeleton, position, inner) for position in local]
    pairs = zip(skeleton.source[edges].tolist(), skeleton.target[edges].tolist(), strict=True)
    level = lay_out([w for w, _ in sizes], [h for _, h in sizes], [(local[a], local[b]) for a, b in pairs])
    width = max(level.width, float(skeleton.width[frame])) + 2 * PADDING
    return _Laid(children, edges, level, width, level.height + HEADER + 2 * PADDING)


def _size(skeleton: Skeleton, position: int, inner: Mapping[int, _Laid]) -> tuple[float, float]:
    laid = inner.get(position)
    return (laid.width, laid.height) if laid is not None else (float(skeleton.width[position]), NODE_HEIGHT)


def _assemble(skeleton: Skeleton, frames: list[int], levels: Mapping[int, _Laid]) -> Picture:
    boxes = np.zeros((len(skeleton.items), 4))
    boxes[0, 2:] = levels[0].width, levels[0].height
    turned = np.zeros(len(skeleton.source), np.bool_)
    routes: list[tuple[Point, ...]] = [()] * len(skeleton.source)
    for frame in frames:  # outer ones first
        laid = levels[frame]
        x = boxes[frame, 0] + (boxes[frame, 2] - laid.level.width) / 2
        y = boxes[frame, 1] + HEADER + PADDING
        for n, position in enumerate(laid.children.tolist()):
            boxes[position] = (x + laid.level.left[n], y + laid.level.top[n], *_size(skeleton, position, levels))
        for edge, route, turn in zip(laid.edges.tolist(), laid.level.routes, laid.level.turned, strict=True):
            routes[edge] = tuple((x + px, y + py) for px, py in route)
            turned[edge] = turn
    points = np.array([point for route in routes for point in route]).reshape(-1, 2)
    starts = np.zeros(len(routes) + 1, np.int64)
    np.cumsum([len(route) for route in routes], out=starts[1:])
    left, top, width, height = boxes.T.copy()
    return Picture(
        items=skeleton.items,
        left=left,
        top=top,
        width=width,
        height=height,
        opened=skeleton.opened,
        source=skeleton.source,
        target=skeleton.target,
        wires=skeleton.wires,
        sides=skeleton.sides,
        turned=turned,
        starts=starts,
        x=points[:, 0].copy(),
        y=points[:, 1].copy(),
    )
