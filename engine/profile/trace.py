"""Reads traces in the Chrome/Perfetto JSON format that XLA programs left: profilers' exports, and our own."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from engine.errors import InputError
from engine.profile.profile import PREDICTED, SYNCHRONOUS_LANE, Event, Line, Profile, profile_from
from engine.timeline.timeline import LaneKind

_PS = 1_000_000
"""Picoseconds in the format's unit, a microsecond."""
_NAME = re.compile(r"^%?([A-Za-z_][\w.-]*)$")
_NO_PROGRAM_LINES = frozenset({"Steps", "XLA Modules", "Framework Ops", "Framework Name Scope", "Source code"})


def is_trace(text: str) -> bool:
    """Whether a text may be a trace: a JSON object or list, as the format wants."""
    return text.lstrip()[:1] in ("{", "[")


def trace_profile(text: str, source: str) -> Profile:
    """Complete events that carry `hlo_op`, or stand on a line of operations of a device.

    `ts` and `dur` are microseconds. Raises InputError for what is no trace; see `Profile` for what is kept.
    """
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{source}: a trace in JSON was expected, but it is damaged: {error}") from None
    records = content.get("traceEvents") if isinstance(content, dict) else content
    if not isinstance(records, list) or not all(isinstance(record, dict) for record in records):
        raise InputError(f"{source}: a trace was expected, with a list of objects as traceEvents, but it has none")
    processes, threads = _names(records)
    events = list(_events(records, processes, threads, source))
    platforms = {_platform(event.line) for event in events} - {""}
    return profile_from(events, source, platforms.pop() if len(platforms) == 1 else "", _notes(content))


def _notes(content: object) -> tuple[str, ...]:
    """Our own traces say where their times come from."""
    said = content.get("otherData") if isinstance(content, dict) else None
    source = said.get("source") if isinstance(said, dict) else None
    return (PREDICTED,) if source in ("predicted by the model", "compiler's estimate") else ()


def _names(records: list[dict[str, Any]]) -> tuple[Mapping[Any, str], Mapping[tuple[Any, Any], str]]:
    """Names of processes, and of their threads, from the metadata events."""
    processes: dict[Any, str] = {}
    threads: dict[tuple[Any, Any], str] = {}
    for record in records:
        if record.get("ph") != "M":
            continue
        arguments = record.get("args")
        title = str(arguments.get("name", "")) if isinstance(arguments, dict) else ""
        if record.get("name") == "process_name":
            processes[_key(record.get("pid"))] = title
        elif record.get("name") == "thread_name":
            threads[_key(record.get("pid")), _key(record.get("tid"))] = title
    return processes, threads


def _events(
    records: list[dict[str, Any]],
    processes: Mapping[Any, str],
    threads: Mapping[tuple[Any, Any], str],
    source: str,
) -> Iterator[Event]:
    for record in records:
        if record.get("ph") != "X":
            continue
        pid, tid = _key(record.get("pid")), _key(record.get("tid"))
        device, thread = processes.get(pid, f"process {pid}"), threads.get((pid, tid), f"thread {tid}")
        arguments = record.get("args") if isinstance(record.get("args"), dict) else {}
        assert isinstance(arguments, dict)
        tagged = arguments.get("hlo_op") or arguments.get("instruction")
        name = _NAME.match(str(tagged or record.get("name", "")))
        if name is None or not (tagged or _is_operations(device, thread)) or thread in _NO_PROGRAM_LINES:
            continue
        if "device_ordinal" in arguments and not device.startswith("/device:"):
            device, thread = f"cpu {arguments['device_ordinal']}", "thunks"
        kind = LaneKind.TRANSFER if thread.startswith("Async") or thread.startswith("transfers") else LaneKind.COMPUTE
        start, duration = _time(record, "ts", source), _time(record, "dur", source)
        module = str(arguments.get("hlo_module", ""))
        part = str(record.get("name", "")) if tagged and device.startswith("/device:GPU") else ""
        yield Event(Line(device, thread, kind), module, name[1], start, duration, part=part)


def _is_operations(device: str, thread: str) -> bool:
    """Whether a line holds operations of a device by name alone."""
    return thread in ("XLA Ops", "Async XLA Ops") or (device.startswith("/device:") and thread.startswith("Stream"))


def _platform(line: Line) -> str:
    for platform in ("tpu", "gpu"):
        if f"/device:{platform}" in line.device.lower():
            return platform
    return "cpu" if line.device.startswith("cpu ") or line.name == SYNCHRONOUS_LANE else ""


def _time(record: Mapping[str, Any], key: str, source: str) -> int:
    value = record.get(key, 0 if key == "dur" else None)
    try:
        return round(float(value) * _PS)
    except (TypeError, ValueError, OverflowError):
        raise InputError(
            f"{source}: event '{record.get('name', '')}': a number as {key} was expected, but {value!r} came"
        ) from None


def _key(value: Any) -> Any:
    return value if isinstance(value, str | int | float) else str(value)
