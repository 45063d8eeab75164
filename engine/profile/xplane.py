"""Reads XSpace profiles (``.xplane.pb``): of TPUs, GPUs, and of CPU devices, where every thunk is an event."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from google.protobuf.message import DecodeError

from engine.hlo.hlo_pb2 import HloProto
from engine.profile.attribution import Stands, attribute
from engine.profile.profile import Event, Line, Profile, profile_from
from engine.profile.xspace_pb2 import XEvent, XEventMetadata, XLine, XPlane, XSpace, XStat
from engine.timeline.timeline import LaneKind

OPS, ASYNC_OPS, MODULES = "XLA Ops", "Async XLA Ops", "XLA Modules"
_DERIVED = frozenset({"Steps", MODULES, OPS, ASYNC_OPS, "XLA TraceMe", "Framework Ops", "Framework Name Scope",
                      "Source code", "TensorFlow Ops", "TensorFlow Name Scope", "Launch Stats"})  # fmt: skip
"""Lines that the profiler derives from a GPU's streams: they repeat what the streams hold."""
_INSTRUCTION = re.compile(r"%?([\w.-]+)")
_PROGRAM = re.compile(r"^(.*?)\((\d+)\)$")
METADATA = "/host:metadata"
_NS = 1000
"""Picoseconds."""

_Tags = Mapping[str, Mapping[str, Stands]]
"""Program (``name(id)`` and plain name) → compiled instruction → what it stands for."""


def profile_of(space: XSpace, source: str) -> Profile:
    """Events of HLO instructions in `space`; none for a profile of something else.

    TPU: the lines "XLA Ops" and, for transfers from start to done, "Async XLA Ops". GPU: kernels on the streams with
    an `hlo_op` stat. CPU: events with an `hlo_op` stat, by `device_ordinal`; a thunk that goes on after its call
    returned lasts until the event ``end: NAME`` that points back at it.

    Where the profile brings the compiled module along, and that has the tags of a run of ours, names are our module's.
    """
    tags = _tags(space)
    events: list[Event] = []
    platforms = set()
    for plane in space.planes:
        if plane.name.startswith("/device:TPU"):
            found, platform = list(_read_tpu(plane)), "tpu"
        elif plane.name.startswith("/device:GPU"):
            found, platform = list(_read_gpu(plane)), "gpu"
        else:
            found, platform = list(_read_cpu(plane)), "cpu"
        if found:
            platforms.add(platform)
            events += found
    if len(platforms) > 1:  # what the host ran beside its accelerators is not the job
        platforms.discard("cpu")
        events = [e for e in events if not e.line.device.startswith("cpu ")]
    for event in events:
        stands = tags.get(event.module, {}).get(event.name)
        if stands is not None:
            event.part = event.part or event.name  # several compiled instructions may stand for one
            event.name, event.copy = stands.name, stands.copy
    return profile_from(events, source, platforms.pop() if len(platforms) == 1 else "", tuple(space.warnings))


def _tags(space: XSpace) -> _Tags:
    found: dict[str, Mapping[str, Stands]] = {}
    for plane in space.planes:
        if plane.name != METADATA:
            continue
        for metadata in plane.event_metadata.values():
            for stat in metadata.stats:
                if stat.WhichOneof("value") != "bytes_value":
                    continue
                try:
                    attributed = attribute(HloProto.FromString(stat.bytes_value).hlo_module)
                except (DecodeError, LookupError, StopIteration):
                    continue  # of a version that we do not know: names stay the compiled module's
                if attributed:
                    found[metadata.name] = attributed
    return found


# --- TPU -----------------------------------------------------------------------------------------------------------


class _Window(NamedTuple):
    """One execution of a program on a device."""

    start: int
    end: int
    module: str
    number: int


def _read_tpu(plane: XPlane) -> Iterator[Event]:
    lines = {line.name: line for line in plane.lines}
    windows = _windows(plane, lines.get(MODULES))
    starts = [window.start for window in windows]
    for name, kind in ((OPS, LaneKind.COMPUTE), (ASYNC_OPS, LaneKind.TRANSFER)):
        line = lines.get(name)
        for event in line.events if line is not None else ():
            found = _INSTRUCTION.match(_title(plane, event))
            if line is None or found is None:
                continue
            begin = line.timestamp_ns * _NS + event.offset_ps
            at = bisect_right(starts, begin) - 1
            window = windows[at] if at >= 0 and begin < windows[at].end else _Window(0, 0, "", -1)
            row = Line(plane.name, name, kind)
            yield Event(row, window.module, found[1], begin, event.duration_ps, execution=window.number)


def _windows(plane: XPlane, line: XLine | None) -> list[_Window]:
    if line is None:
        return []
    found = []
    for event in line.events:
        begin = line.timestamp_ns * _NS + event.offset_ps
        found.append((begin, begin + event.duration_ps, plane.event_metadata[event.metadata_id].name))
    counts: dict[str, int] = {}
    windows = []
    for begin, end, module in sorted(found):
        windows.append(_Window(begin, end, module, counts.get(module, 0)))
        counts[module] = counts.get(module, 0) + 1
    return windows


def _title(plane: XPlane, event: XEvent) -> str:
    metadata = plane.event_metadata[event.metadata_id]
    return metadata.display_name or metadata.name


# --- GPU and CPU ---------------------------------------------------------------------------------------------------


def _read_gpu(plane: XPlane) -> Iterator[Event]:
    """Kernels of one instruction are told apart by their names. How often the program ran, streams do not say."""
    stat_names = {id_: stat.name for id_, stat in plane.stat_metadata.items()}
    for line in plane.lines:
        if line.name in _DERIVED:
            continue
        for event in line.events:
            metadata = plane.event_metadata[event.metadata_id]
            stats = _stats(plane, stat_names, event, metadata)
            if "hlo_op" in stats:
                begin = line.timestamp_ns * _NS + event.offset_ps
                row = Line(plane.name, line.name, LaneKind.COMPUTE)
                name = stats["hlo_op"].lstrip("%")
                yield Event(row, _program(stats), name, begin, event.duration_ps, part=metadata.name)


def _read_cpu(plane: XPlane) -> Iterator[Event]:
    stat_names = {id_: stat.name for id_, stat in plane.stat_metadata.items()}
    if "hlo_op" not in stat_names.values():
        return
    ends = dict(_ends(plane, stat_names))
    found: list[tuple[str, Event]] = []
    for line in plane.lines:
        for event in line.events:
            metadata = plane.event_metadata[event.metadata_id]
            stats = _stats(plane, stat_names, event, metadata)
            if "hlo_op" not in stats:
                continue
            begin = line.timestamp_ns * _NS + event.offset_ps
            end = max(begin + event.duration_ps, ends.get(stats.get("_p", ""), 0))
            row = Line(f"cpu {stats.get('device_ordinal', '0')}", "thunks", LaneKind.COMPUTE)
            made = Event(row, _program(stats), stats["hlo_op"].lstrip("%"), begin, end - begin)
            found.append((stats.get("run_id", ""), made))
    yield from _numbered(found)


def _numbered(found: list[tuple[str, Event]]) -> Iterator[Event]:
    """Events with the number of their execution, by the ids of runs, in the order in which these began."""
    numbers: dict[tuple[str, str], int] = {}
    counts: dict[str, int] = {}
    for run, event in sorted(found, key=lambda pair: pair[1].start):
        key = event.module, run
        if run and key not in numbers:
            numbers[key] = counts.get(event.module, 0)
            counts[event.module] = numbers[key] + 1
        event.execution = numbers.get(key, -1)
        yield event


def _ends(plane: XPlane, stat_names: Mapping[int, str]) -> Iterator[tuple[str, int]]:
    """When thunks ended that went on after their call returned, by the number that connects both events."""
    for line in plane.lines:
        for event in line.events:
            metadata = plane.event_metadata[event.metadata_id]
            if metadata.name.startswith("end: "):
                stats = _stats(plane, stat_names, event, metadata)
                if "_c" in stats:
                    yield stats["_c"], line.timestamp_ns * _NS + event.offset_ps


def _program(stats: Mapping[str, str]) -> str:
    """As planes of metadata name it: ``jit_step(3)``."""
    module, number = stats.get("hlo_module", ""), stats.get("program_id", "")
    return f"{module}({number})" if number and not _PROGRAM.match(module) else module


def _stats(plane: XPlane, names: Mapping[int, str], event: XEvent, metadata: XEventMetadata) -> Mapping[str, str]:
    return {
        names[stat.metadata_id]: _value(plane, stat)
        for stat in (*metadata.stats, *event.stats)
        if names.get(stat.metadata_id) in _WANTED
    }


_WANTED = frozenset({"hlo_op", "hlo_module", "program_id", "run_id", "device_ordinal", "_p", "_c"})


def _value(plane: XPlane, stat: XStat) -> str:
    kind = stat.WhichOneof("value")
    if kind == "ref_value":
        return plane.stat_metadata[stat.ref_value].name
    return str(getattr(stat, kind)) if kind is not None else ""
