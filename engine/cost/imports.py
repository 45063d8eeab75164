"""Costs that come from elsewhere: the compiler, a profile, a table. What is read here replaces modelled times."""

from __future__ import annotations

import csv
import gzip
import re
import tomllib
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import isfinite
from pathlib import Path

from google.protobuf.message import DecodeError

from engine.chips.chip import Chip
from engine.cost.compiler_schedule import CompilerSchedule, is_predicted, is_schedule, read_schedule
from engine.cost.costs import Origin
from engine.cost.estimates import estimated_cycles
from engine.cost.text_format import TextMessage, unquoted
from engine.errors import InputError, Place
from engine.ir.graphs import SEQUENTIAL
from engine.ir.module import Module
from engine.profile.measured import measured_times
from engine.profile.profile import PREDICTED, Profile
from engine.profile.trace import trace_profile
from engine.profile.xplane import profile_of
from engine.profile.xspace_pb2 import ProfiledInstructions, XSpace
from engine.quantities import PICOSECONDS

_TRACE = re.compile(r"\s*(?:\{|\[\s*\{)")
_PGLE = re.compile(r"(?:\s|#[^\n]*\n)*(?:costs|latencies)\s*:?\s*[{<]")


@dataclass(frozen=True, eq=False)
class ImportedCosts:
    """Times of instructions by name, in picoseconds of one execution."""

    source: str
    """File as the user gave it, or what the times are: for messages."""
    origin: Origin
    times: Mapping[str, int]
    on_stream: bool = False
    """Whether a time is always the compute stream's, also of asynchronous starts and dones, whose transfers then keep
    their own. Otherwise the time of a start is its transfer's."""
    schedule: CompilerSchedule | None = None
    """The order that came along, for a ScheduleProto."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """How often each instruction ran, for a profile."""
    branches: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """How often each branch of a conditional runs, relative to the others, by the conditional's name."""

    def unmatched(self, module: Module) -> tuple[str, ...]:
        """Names that no instruction of `module` has, sorted."""
        return tuple(sorted(name for name in {*self.times, *self.branches} if name not in module.by_name))


def read_costs(path: str) -> ImportedCosts:
    """Read a file of costs, gzipped or not: ScheduleProto text, PGLE, xplane.pb, a Chrome/Perfetto trace, or a table of
    names and µs.

    The kind is told by the content. Raises InputError with what was expected and the place of what is wrong.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{path}: costs were expected, but it cannot be read: {error.strerror}") from error
    return parse_costs(data, path)


def parse_costs(data: bytes, path: str) -> ImportedCosts:
    """What `read_costs` makes of a file that holds `data`; `path` is for messages, and tells a TOML table."""
    if data[:2] == b"\x1f\x8b":
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise InputError(f"{path}: it is gzip data, but damaged: {error}") from error
    if not data.strip():
        raise InputError(f"{path}: costs were expected, but the file is empty")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return _binary(data, path)
    if is_schedule(text):
        return _as_predicted(schedule_costs(read_schedule(text, path), path), text)
    if "\0" in text:
        return _binary(data, path)
    if _PGLE.match(text):
        return _as_predicted(_pgle(text, path), text)
    if _TRACE.match(text):
        return _profile(trace_profile(text, path), path)
    plain_name = path.removesuffix(".gz")
    if plain_name.endswith(".toml"):
        return _toml(text, path)
    return ImportedCosts(path, Origin.TABLE, _csv(text, path))


def _as_predicted(found: ImportedCosts, text: str) -> ImportedCosts:
    """`found`, no compiler's and not measured where `text` was written by Lapstrake."""
    return replace(found, origin=Origin.MODEL) if is_predicted(text) else found


def compiler_estimates(module: Module, chip: Chip) -> ImportedCosts | None:
    """The `estimated_cycles` that `module` carries, at the chip's clock; None where it carries none.

    They are the TPU compiler's, for the chip it compiled for: which one the text does not say. What a pass made from
    an instruction may still carry that one's estimate, which says nothing about it: it is left out.
    """
    if chip.family != "tpu":
        return None
    scale = PICOSECONDS["s"] / chip.units.clock
    times = {
        instruction.name: round(cycles * scale)
        for computation in module.proto.computations
        for instruction in computation.instructions
        if (cycles := estimated_cycles(instruction)) is not None
        and module.origins_of(instruction.id) == (instruction.id,)
    }
    if not times:
        return None
    return ImportedCosts(f"estimated_cycles at {chip.units.clock / 1e6:g} MHz", Origin.COMPILER, times)


def schedule_costs(schedule: CompilerSchedule, source: str) -> ImportedCosts:
    """Times of every instruction that a ScheduleProto schedules, loops and calls left to their callees."""
    times = {
        name: time
        for computation in schedule.computations
        for name, opcode, time in zip(computation.names, computation.opcodes, computation.picoseconds(), strict=True)
        if opcode not in SEQUENTIAL
    }
    return ImportedCosts(source, Origin.COMPILER, times, on_stream=True, schedule=schedule)


def _binary(data: bytes, path: str) -> ImportedCosts:
    expected = f"{path}: ScheduleProto text, PGLE, xplane.pb, or a table of names and microseconds was expected"
    try:
        profile = ProfiledInstructions.FromString(data)
        if profile.costs and all(cost.name for cost in profile.costs):
            times = _microseconds({_bare(cost.name): cost.cost_us for cost in profile.costs}, path)
            return ImportedCosts(path, Origin.MEASURED, times)
        space = XSpace.FromString(data)
    except DecodeError as error:
        raise InputError(f"{expected}, but it is none of them") from error
    planes = ", ".join(plane.name for plane in space.planes) or "none"
    return _profile(profile_of(space, path), path, f"its planes ({planes}) hold none")


def _profile(profile: Profile, path: str, otherwise: str = "the trace holds none") -> ImportedCosts:
    """Times of a measured run. Raises InputError, with `otherwise`, where it has none."""
    if PREDICTED in profile.notes:
        raise InputError(f"{path}: a measured profile was expected, but this one was predicted by Lapstrake")
    measured = measured_times(profile)
    if not measured.times:
        raise InputError(f"{path}: a profile with HLO operations was expected, but {otherwise}")
    return ImportedCosts(path, Origin.MEASURED, measured.times, counts=measured.counts)


def _pgle(text: str, path: str) -> ImportedCosts:
    """`costs { name, cost_us }`; latencies are not read, as on GPUs."""
    message = TextMessage(text, path)
    found: dict[str, float] = {}
    for name, value in message.fields():
        if name == "costs" and value is None:
            instruction, cost = "", None
            for key, inner in message.fields():
                if inner is None:
                    message.skip()
                elif key == "name":
                    instruction = _bare(unquoted(inner))
                elif key == "cost_us":
                    cost = _number(inner, message.error)
            if not instruction or cost is None:
                raise message.error("costs { name: …, cost_us: … } was expected just before this")
            found[instruction] = cost
        elif value is None:
            message.skip()
    return ImportedCosts(path, Origin.MEASURED, _microseconds(found, path))


def _bare(name: str) -> str:
    """A PGLE name without the fingerprint of its module."""
    return name.rpartition("::")[2].lstrip("%")


def _csv(text: str, path: str) -> Mapping[str, int]:
    """Lines of ``name,microseconds``; a first line whose second column is no number is a heading."""
    found: dict[str, float] = {}
    lines = text.splitlines()
    reader = csv.reader(lines)
    for row in _rows(reader, path):
        if not "".join(row).strip() or row[0].lstrip().startswith("#"):
            continue
        place = Place(path, reader.line_num, 1, lines[reader.line_num - 1])
        if len(row) != 2:
            raise InputError(f"a table's lines are name,microseconds, but this one has {len(row)} columns", place)
        name, time = row
        if _is_number(time):
            found[name.strip().lstrip("%")] = float(time)
        elif reader.line_num > 1:
            raise InputError(f"microseconds were expected, but '{time.strip()}' came", place)
    if not found:
        raise InputError(f"{path}: a table of name,microseconds was expected, but it holds no line of that kind")
    return _microseconds(found, path)


def _rows(reader: Iterable[list[str]], path: str) -> Iterator[list[str]]:
    """The rows of a table; what `csv` cannot read (a field of more than 128 KiB) is an InputError."""
    try:
        yield from reader
    except csv.Error as error:
        raise InputError(f"{path}: a table of name,microseconds was expected, but: {error}") from None


def _toml(text: str, path: str) -> ImportedCosts:
    """``"fusion.3" = 12.5`` lines, at the top or in one table, and ``"cond.1" = [9, 1]`` in a table ``branches``."""
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: a TOML table of microseconds by instruction name was expected: {error}") from error
    branches = values.pop("branches", {})
    if not isinstance(branches, dict):
        raise InputError(f"{path}: branches: a table of weights by conditional was expected, but {branches!r} came")
    if len(values) == 1 and isinstance(only := next(iter(values.values())), dict):
        values = only
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InputError(f"{path}: {name}: microseconds were expected, but {value!r} came")
    if not values and not branches:
        raise InputError(f"{path}: a TOML table of microseconds by instruction name was expected, but it is empty")
    times = _microseconds({name.lstrip("%"): float(value) for name, value in values.items()}, path)
    weights = {name.lstrip("%"): _weights(name, value, path) for name, value in branches.items()}
    return ImportedCosts(path, Origin.TABLE, times, branches=weights)


def _weights(name: str, value: object, path: str) -> tuple[int, ...]:
    if not isinstance(value, list) or not all(type(w) is int and w >= 0 for w in value) or not any(value):
        raise InputError(f"{path}: branches.{name}: whole numbers, one a branch, were expected, but {value!r} came")
    return tuple(value)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _number(text: str, error: Callable[[str], InputError]) -> float:
    if not _is_number(text):
        raise error(f"microseconds were expected, but '{text.strip()}' came")
    return float(text)


def _microseconds(times: Mapping[str, float], path: str) -> Mapping[str, int]:
    for name, time in times.items():
        if not isfinite(time) or time < 0:
            raise InputError(f"{path}: {name}: a time that is not negative was expected, but {time:g} µs came")
    return {name: round(time * PICOSECONDS["µs"]) for name, time in times.items()}
