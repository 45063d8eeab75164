"""A timeline as Perfetto / Chrome trace JSON.

Complete events on one track nest; overlapping slices of a lane go to further tracks. Times are microseconds with
fractions from the start of the step; counters show what is in flight and the memory; flow arrows go from a transfer
to the gap that waits for it. The text is ASCII: other characters are escaped.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping
from typing import Any

from engine.cost.costs import Origin
from engine.ir.module import Module
from engine.timeline.timeline import Category, Curve, LaneKind, Timeline

_PS_PER_US = 1_000_000
_PROCESS = 1
_NAMES = {
    Category.EINSUM: "einsum",
    Category.ELEMENTWISE: "element-wise",
    Category.COPY: "copy",
    Category.PERMUTE: "permute",
    Category.COLLECTIVE: "collective",
    Category.EXPOSED: "exposed",
    Category.LOOP: "loop",
}
_SOURCES = {Origin.COMPILER: "compiler's estimate", Origin.MEASURED: "measured"}


def trace_bytes(timeline: Timeline, module: Module, title: str) -> bytes:
    """The trace, gzipped (byte for byte the same for the same timeline)."""
    return gzip.compress(trace_text(timeline, module, title), mtime=0)


def trace_text(timeline: Timeline, module: Module, title: str) -> bytes:
    """The trace, not compressed."""
    return json.dumps(trace(timeline, module, title), ensure_ascii=True, separators=(",", ":")).encode("ascii")


def trace(timeline: Timeline, module: Module, title: str) -> dict[str, Any]:
    """The trace as JSON values. Names are those of `module`, whose ids the timeline holds."""
    source = _SOURCES.get(timeline.source, "predicted by the model")
    tracks = _tracks(timeline)
    events = [
        *_names(timeline, tracks, f"{title} ({source})"),
        *_slices(timeline, module, tracks),
        *_flows(timeline, tracks),
        *_counter("in flight", timeline.in_flight, "operations", 1),
        *_counter("memory", timeline.memory, "MB", 1e-6),
    ]
    return {"displayTimeUnit": "ns", "traceEvents": events, "otherData": {"module": module.name, "source": source}}


def _tracks(timeline: Timeline) -> list[int]:
    """Track number of each slice: lane × 100 + row, so that what overlaps without nesting lies on different rows."""
    tracks: list[int] = []
    open_: dict[int, list[list[int]]] = {}
    columns = (timeline.lane.tolist(), timeline.start.tolist(), timeline.duration.tolist())
    for lane, start, duration in zip(*columns, strict=True):
        rows = open_.setdefault(lane, [])
        end = start + duration
        for number, ends in enumerate(rows):
            while ends and ends[-1] <= start:
                ends.pop()
            if not ends or ends[-1] >= end:
                ends.append(end)
                tracks.append(lane * 100 + number)
                break
        else:
            tracks.append(lane * 100 + len(rows))
            rows.append([end])
    return tracks


def _names(timeline: Timeline, tracks: list[int], title: str) -> Iterator[dict[str, Any]]:
    yield {"ph": "M", "pid": _PROCESS, "name": "process_name", "args": {"name": title}}
    for track in sorted(set(tracks)):
        lane = timeline.lanes[track // 100]
        row = track % 100
        name = f"{lane.name} ({row + 1})" if row else lane.name
        base = {"ph": "M", "pid": _PROCESS, "tid": track}
        yield {**base, "name": "thread_name", "args": {"name": name}}
        yield {**base, "name": "thread_sort_index", "args": {"sort_index": track}}


def _slices(timeline: Timeline, module: Module, tracks: list[int]) -> Iterator[dict[str, Any]]:
    names = _instruction_names(timeline, module)
    columns = (
        timeline.start,
        timeline.duration,
        timeline.category,
        timeline.instruction,
        timeline.repeat,
        timeline.waits_for,
    )
    rows = zip(tracks, *(c.tolist() for c in columns), strict=True)
    for track, start, duration, category, instruction, repeat, waits_for in rows:
        name = names.get(instruction, "")
        arguments: dict[str, Any] = {}
        if category == Category.EXPOSED:
            arguments["waits for"] = names.get(waits_for, "")
            name = f"waits for {arguments['waits for']}"
        elif category == Category.LOOP:
            arguments["trips"] = repeat
        if instruction in names and category != Category.EXPOSED:
            arguments |= {"hlo_op": name, "hlo_module": module.name}  # as profilers write it, for readers of theirs
        yield {
            "ph": "X",
            "pid": _PROCESS,
            "tid": track,
            "ts": start / _PS_PER_US,
            "dur": duration / _PS_PER_US,
            "name": name or _NAMES[Category(category)],
            "cat": _NAMES[Category(category)],
            **({"args": arguments} if arguments else {}),
        }


def _flows(timeline: Timeline, tracks: list[int]) -> Iterator[dict[str, Any]]:
    """An arrow from each transfer to the exposed gap that ends when it arrives."""
    transfers: dict[int, list[int]] = {}
    for k, lane in enumerate(timeline.lane.tolist()):
        if timeline.lanes[lane].kind is LaneKind.TRANSFER:
            transfers.setdefault(int(timeline.instruction[k]), []).append(k)
    for number, k in enumerate(range(len(timeline))):
        if timeline.category[k] != Category.EXPOSED:
            continue
        end = int(timeline.start[k] + timeline.duration[k])
        found = [t for t in transfers.get(int(timeline.waits_for[k]), ()) if int(timeline.start[t]) <= end]
        if not found:
            continue
        last = found[-1]
        common = {"cat": "wait", "name": "waits for", "pid": _PROCESS, "id": number}
        yield {**common, "ph": "s", "tid": tracks[last], "ts": int(timeline.start[last]) / _PS_PER_US}
        yield {**common, "ph": "f", "bp": "e", "tid": tracks[k], "ts": end / _PS_PER_US}


def _counter(name: str, curve: Curve, unit: str, factor: float) -> Iterator[dict[str, Any]]:
    for time, value in zip(curve.time.tolist(), curve.value.tolist(), strict=True):
        yield {"ph": "C", "pid": _PROCESS, "name": name, "ts": time / _PS_PER_US, "args": {unit: value * factor}}


def _instruction_names(timeline: Timeline, module: Module) -> Mapping[int, str]:
    wanted = {*timeline.instruction.tolist(), *timeline.waits_for.tolist()} - {-1}
    return {i: module.instructions[i].name for i in wanted if i in module.instructions}
