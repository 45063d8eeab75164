"""A timeline as an XSpace (``.xplane.pb``), the form of XLA's profiles, so that XProf and jax's ProfileData open it.

One plane, laid out as a TPU's: "Steps" and "XLA Modules" with one event each, "XLA Ops" for what the compute stream
runs, "Async XLA Ops" for transfers from start to done. That nothing was measured is said in the space's warnings.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.cost.costs import Origin
from engine.ir.module import Module
from engine.profile.profile import PREDICTED
from engine.profile.xspace_pb2 import XEvent, XLine, XPlane, XSpace
from engine.timeline.timeline import Category, LaneKind, Timeline

_DEVICE = "/device:TPU:0"
_STEPS, _MODULES, _OPS, _ASYNC_OPS = "Steps", "XLA Modules", "XLA Ops", "Async XLA Ops"


def xplane_bytes(timeline: Timeline, module: Module) -> bytes:
    """The serialised XSpace. Names are those of `module`, whose ids the timeline holds; gaps are left out."""
    space = XSpace()
    if timeline.source is not Origin.MEASURED:
        space.warnings.append(PREDICTED)
    plane = space.planes.add()
    plane.id, plane.name = 1, _DEVICE
    writer = _Writer(plane)
    writer.line(_STEPS, [("0", 0, timeline.makespan)])
    writer.line(_MODULES, [(module.name, 0, timeline.makespan)])
    writer.line(_OPS, _slices(timeline, module, LaneKind.COMPUTE))
    writer.line(_ASYNC_OPS, _slices(timeline, module, LaneKind.TRANSFER))
    return space.SerializeToString(deterministic=True)


def _slices(timeline: Timeline, module: Module, kind: LaneKind) -> list[tuple[str, int, int]]:
    """Name, start and duration of what stands on lanes of one kind, by start; frames before what they hold."""
    found = (
        (module.instructions[i].name, start, duration)
        for i, lane, start, duration, category in zip(
            timeline.instruction.tolist(),
            timeline.lane.tolist(),
            timeline.start.tolist(),
            timeline.duration.tolist(),
            timeline.category.tolist(),
            strict=True,
        )
        if timeline.lanes[lane].kind is kind and category != Category.EXPOSED and i in module.instructions
    )
    return sorted(dict.fromkeys(found), key=lambda slice_: (slice_[1], -slice_[2]))


class _Writer:
    """Lines of a plane; an event's name is kept once, in the plane's metadata."""

    def __init__(self, plane: XPlane) -> None:
        self._plane = plane
        self._ids: dict[str, int] = {}

    def line(self, name: str, slices: list[tuple[str, int, int]]) -> None:
        line = XLine(id=len(self._plane.lines) + 1, name=name)
        line.events.extend(self._events(slices))
        self._plane.lines.append(line)

    def _events(self, slices: list[tuple[str, int, int]]) -> Iterator[XEvent]:
        for name, start, duration in slices:
            yield XEvent(metadata_id=self._id(name), offset_ps=start, duration_ps=duration)

    def _id(self, name: str) -> int:
        if name not in self._ids:
            self._ids[name] = number = len(self._ids) + 1
            self._plane.event_metadata[number].id = number
            self._plane.event_metadata[number].name = name
        return self._ids[name]
