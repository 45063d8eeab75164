"""How long each instruction took in a measured profile, averaged over its executions and devices."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from engine.profile.xspace_pb2 import XEvent, XEventMetadata, XLine, XPlane, XSpace, XStat

_OPS, _ASYNC_OPS = "XLA Ops", "Async XLA Ops"
_DERIVED = frozenset({"Steps", "XLA Modules", _OPS, _ASYNC_OPS, "XLA TraceMe", "Framework Ops", "Framework Name Scope",
                      "Source code", "TensorFlow Ops", "TensorFlow Name Scope"})  # fmt: skip
"""Lines that the profiler derives from a GPU's streams: they repeat what the streams hold."""
_INSTRUCTION = re.compile(r"%?([\w.-]+)")


@dataclass(slots=True)
class _Mean:
    total: int = 0
    count: int = 0

    def add(self, duration: int) -> None:
        self.total += duration
        self.count += 1

    @property
    def value(self) -> float:
        return self.total / self.count


@dataclass(slots=True)
class _Times:
    """Durations in picoseconds by (device, instruction, part); a GPU runs several kernels for one instruction."""

    means: dict[tuple[str, str, str], _Mean] = field(default_factory=dict)

    def add(self, device: str, instruction: str, part: str, duration: int) -> None:
        self.means.setdefault((device, instruction, part), _Mean()).add(duration)

    def counts(self) -> Mapping[str, int]:
        """How often each instruction ran on the device where it ran most."""
        most: dict[str, int] = {}
        for (_, instruction, _), mean in self.means.items():
            most[instruction] = max(most.get(instruction, 0), mean.count)
        return most

    def by_instruction(self) -> Mapping[str, int]:
        """Parts summed, then averaged over devices."""
        summed: dict[tuple[str, str], float] = {}
        for (device, instruction, _), mean in self.means.items():
            key = device, instruction
            summed[key] = summed.get(key, 0.0) + mean.value
        over_devices: dict[str, list[float]] = {}
        for (_, instruction), value in summed.items():
            over_devices.setdefault(instruction, []).append(value)
        return {name: round(sum(values) / len(values)) for name, values in over_devices.items()}


@dataclass(frozen=True, slots=True)
class Measured:
    """What a profile says of each instruction, by name."""

    times: Mapping[str, int]
    """Picoseconds of one execution."""
    counts: Mapping[str, int]
    """How often it ran on one device."""


def measured_times(space: XSpace) -> Measured:
    """Times and counts of every instruction seen; none for a profile without HLO operations.

    TPU: the lines "XLA Ops" and, for transfers from start to done, "Async XLA Ops". GPU: kernels on the streams with
    an `hlo_op` stat. CPU: events with an `hlo_op` stat, by `device_ordinal`.
    """
    times = _Times()
    for plane in space.planes:
        if plane.name.startswith("/device:TPU"):
            _read_tpu(plane, times)
        else:
            _read_tagged(plane, times)
    return Measured(times.by_instruction(), times.counts())


def _read_tpu(plane: XPlane, times: _Times) -> None:
    lines = {line.name: line for line in plane.lines}
    transfers: set[str] = set()
    for name, duration in _named(plane, lines.get(_ASYNC_OPS)):
        transfers.add(name)
        times.add(plane.name, name, "", duration)
    for name, duration in _named(plane, lines.get(_OPS)):
        # With the asynchronous line present, what the compute line shows of a transfer is only its issue and its wait.
        if name not in transfers and not (transfers and re.search(r"-(start|done)\b", name)):
            times.add(plane.name, name, "", duration)


def _named(plane: XPlane, line: XLine | None) -> Iterator[tuple[str, int]]:
    for event in line.events if line is not None else ():
        metadata = plane.event_metadata[event.metadata_id]
        found = _INSTRUCTION.match(metadata.display_name or metadata.name)
        if found is not None:
            yield found[1], event.duration_ps


def _read_tagged(plane: XPlane, times: _Times) -> None:
    """Events that carry an `hlo_op` stat."""
    stat_names = {id_: stat.name for id_, stat in plane.stat_metadata.items()}
    if "hlo_op" not in stat_names.values():
        return
    is_gpu = plane.name.startswith("/device:GPU")
    for line in plane.lines:
        if is_gpu and line.name in _DERIVED:
            continue
        for event in line.events:
            metadata = plane.event_metadata[event.metadata_id]
            stats = _stats(plane, stat_names, event, metadata)
            if "hlo_op" in stats:
                device = plane.name if is_gpu else stats.get("device_ordinal", "0")
                times.add(device, stats["hlo_op"].lstrip("%"), metadata.name if is_gpu else "", event.duration_ps)


def _stats(plane: XPlane, names: Mapping[int, str], event: XEvent, metadata: XEventMetadata) -> Mapping[str, str]:
    wanted = ("hlo_op", "device_ordinal")
    return {
        names[stat.metadata_id]: _value(plane, stat)
        for stat in (*metadata.stats, *event.stats)
        if names.get(stat.metadata_id) in wanted
    }


def _value(plane: XPlane, stat: XStat) -> str:
    kind = stat.WhichOneof("value")
    if kind == "ref_value":
        return plane.stat_metadata[stat.ref_value].name
    return str(getattr(stat, kind)) if kind is not None else ""
