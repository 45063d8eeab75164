"""Reads the timeline that XLA's latency-hiding scheduler predicts (``xla_dump_latency_hiding_schedule``).

The file is a ScheduleProto (xla/xla.proto) in protobuf's text form: the module as it was when it was scheduled, and for
each computation with asynchronous operations its instructions in order with their start and end in cycles. Later
passes change the module, so names are what it shares with the text that the compiler ends with.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
from google.protobuf import text_encoding
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from engine.errors import InputError, Place
from engine.hlo.hlo_pb2 import HloModuleProto, PrimitiveType
from engine.hlo.partitions import infer_counts
from engine.ir.graph import Ints
from engine.ir.module import Header, Module

Floats = npt.NDArray[np.float64]

_EXPECTED = "expected a ScheduleProto in text form, as written by xla_dump_latency_hiding_schedule"
_GZIP = b"\x1f\x8b"


@dataclass(frozen=True, eq=False)
class PredictedOrder:
    """One computation as the compiler scheduled it, in order."""

    computation: int
    """Id of the computation."""
    instructions: Ints
    """Ids, shape [n]."""
    start: Floats
    """Cycles from the beginning of the computation, shape [n]."""
    end: Floats
    statistics: Mapping[str, float]
    """``total_cycles``, ``total_wasted_cycles``, …; one that is missing is 0."""


@dataclass(frozen=True, eq=False)
class PredictedSchedule:
    """A module as the compiler scheduled it, with the compiler's own prediction."""

    module: Module
    """It carries the order."""
    orders: tuple[PredictedOrder, ...]
    cycles_per_microsecond: float

    def picoseconds(self, cycles: Floats) -> Ints:
        """Cycles as integer picoseconds, rounded."""
        return np.rint(cycles * (1e6 / self.cycles_per_microsecond)).astype(np.int64)


def is_predicted_schedule(data: bytes) -> bool:
    """Whether the content of a file is a ScheduleProto in text form; gzip is seen through."""
    try:
        head = gzip.decompress(data) if data.startswith(_GZIP) else data
    except (OSError, EOFError):
        return False
    return head[:64].lstrip().startswith(b"hlo_module {") and b"\ncomputation_schedules {" in head


def read_predicted_schedule(data: bytes, path: str) -> PredictedSchedule:
    """Read the content of a file; `path` is for messages. Raises InputError where it is something else."""
    try:
        text = (gzip.decompress(data) if data.startswith(_GZIP) else data).decode()
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: {_EXPECTED}; {error}") from None
    reader = _Reader(text, path)
    if reader.module is None or not reader.orders:
        raise InputError(f"{path}: {_EXPECTED}; found no hlo_module and computation_schedules")
    for order in reader.orders:
        del reader.module.schedule.sequences[order.computation]
        reader.module.schedule.sequences[order.computation].instruction_ids.extend(order.instructions.tolist())
    header, note = infer_counts(reader.module, Header())
    module = Module(reader.module, header, (note,) if note else ())
    return PredictedSchedule(module, tuple(reader.orders), reader.cycles_per_microsecond)


class _Reader:
    def __init__(self, text: str, path: str) -> None:
        self._path = path
        self._lines = iter(enumerate(text.splitlines(), start=1))
        self.module: HloModuleProto | None = None
        self.orders: list[PredictedOrder] = []
        self.cycles_per_microsecond = 1.0
        for number, line in self._lines:
            key, value = self._split(number, line)
            if value is not None:
                if key == "cycles_per_microsecond":
                    self.cycles_per_microsecond = self._number(number, line, value)
            elif key == "hlo_module":
                self.module = HloModuleProto()
                self._read_message(self.module)
            elif key == "computation_schedules":
                self._read_order()
            elif key:
                self._skip()

    def _split(self, number: int, line: str) -> tuple[str, str | None]:
        """Key and value of ``key: value``; no value for ``key {``; no key for ``}`` and an empty line."""
        text = line.strip()
        key, colon, value = text.partition(": ")
        if colon:
            return key, value
        if text.endswith(" {"):
            return text[:-2], None
        if text in ("}", ""):
            return "", None
        raise InputError(f"{_EXPECTED}", Place(self._path, number, 1, line))

    def _number(self, number: int, line: str, value: str) -> float:
        try:
            return float(value)
        except ValueError:
            place = Place(self._path, number, line.find(value) + 1, line)
            raise InputError(f"expected a number, found {value[:40]!r}", place) from None

    def _inside(self) -> Iterator[tuple[int, str, str, str | None]]:
        """(line number, line, key, value) of what is in a message, up to its closing brace."""
        for number, line in self._lines:
            key, value = self._split(number, line)
            if not key:
                if line.strip():
                    return
                continue
            yield number, line, key, value
        raise InputError(f"{self._path}: {_EXPECTED}; it ends before it is complete")

    def _skip(self) -> None:
        for _, _, _, value in self._inside():
            if value is None:
                self._skip()

    def _read_order(self) -> None:
        computation = 0
        rows: list[tuple[int, float, float]] = []
        statistics: dict[str, float] = {}
        for number, line, key, value in self._inside():
            if key == "computation_id" and value is not None:
                computation = int(self._number(number, line, value))
            elif key == "cycles_per_microsecond" and value is not None:
                self.cycles_per_microsecond = self._number(number, line, value)
            elif value is None and key in ("instructions", "scheduler_statistics"):
                numbers = {k: self._parse(n, text, v) for n, text, k, v in self._inside() if v is not None}
                if key == "scheduler_statistics":
                    statistics = numbers
                else:
                    ends = (numbers.get(f"{which}_timestamp_cycles", 0) for which in ("start", "end"))
                    rows.append((int(numbers.get("id", 0)), *map(float, ends)))  # type: ignore[arg-type] # two of them
            elif value is None:
                self._skip()
        columns = tuple(zip(*rows, strict=True)) or ((), (), ())
        self.orders.append(
            PredictedOrder(
                computation,
                np.array(columns[0], dtype=np.int64),
                np.array(columns[1], dtype=np.float64),
                np.array(columns[2], dtype=np.float64),
                MappingProxyType(statistics),
            )
        )

    def _parse(self, number: int, line: str, value: str) -> float:
        return int(value) if value.isdigit() else self._number(number, line, value)

    def _read_message(self, message: Message) -> None:
        """Read a message; fields that our part of the schema lacks are left out."""
        fields = _fields(message)
        for number, line, key, value in self._inside():
            field_ = fields.get(key)
            if field_ is None:
                if value is None:
                    self._skip()
            elif value is None:
                self._read_submessage(message, field_)
            else:
                try:
                    field_.set(message, value)
                except ValueError:
                    place = Place(self._path, number, line.find(value) + 1, line)
                    raise InputError(f"expected a value of {key}, found {value[:40]!r}", place) from None

    def _read_submessage(self, message: Message, field_: _Field) -> None:
        held = getattr(message, field_.name)
        if field_.map is not None:
            self._read_entry(held, field_.map)
        elif field_.repeated:
            self._read_message(held.add())
        else:
            held.SetInParent()
            self._read_message(held)

    def _read_entry(self, held: Any, entry: _Entry) -> None:
        """An entry of a map; the text has the key first, and leaves out values that are nothing."""
        key: Any = entry.key.parse("0" if entry.key.type == FieldDescriptor.TYPE_INT64 else '""')
        for _, _, name, value in self._inside():
            if name == "key" and value is not None:
                key = entry.key.parse(value)
            elif value is None:
                self._read_message(held[key])
            else:
                held[key] = entry.value.parse(value)


@dataclass(frozen=True, slots=True)
class _Field:
    """How to set one field of a message from its text."""

    name: str
    repeated: bool
    type: int
    map: _Entry | None = None

    def set(self, message: Message, value: str) -> None:
        """Raises ValueError where `value` is none of this field's type."""
        if self.repeated:
            getattr(message, self.name).append(self.parse(value))
        else:
            setattr(message, self.name, self.parse(value))

    def parse(self, value: str) -> Any:
        if self.type == FieldDescriptor.TYPE_STRING:
            return _text(value)
        if self.type == FieldDescriptor.TYPE_BYTES:
            return text_encoding.CUnescape(value[1:-1])
        if self.type == FieldDescriptor.TYPE_BOOL:
            return value == "true"
        if self.type == FieldDescriptor.TYPE_ENUM:
            return PrimitiveType.Value(value)
        if self.type in (FieldDescriptor.TYPE_FLOAT, FieldDescriptor.TYPE_DOUBLE):
            return float(value)
        return _ENUMERATED[value] if value in _ENUMERATED else int(value)


@dataclass(frozen=True, slots=True)
class _Entry:
    """Key and value of a map's entries."""

    key: _Field
    value: _Field


_ENUMERATED: Mapping[str, int] = MappingProxyType(
    {"DEFAULT": 0, "HIGH": 1, "HIGHEST": 2}
    | {"REPLICATED": 0, "MAXIMAL": 1, "TUPLE": 2, "OTHER": 3, "MANUAL": 4, "UNKNOWN": 5, "UNREDUCED": 6}
    | {"UNDEFINED_ALIAS": 0, "MAY_ALIAS": 1, "MUST_ALIAS": 2}
    | {"ALG_UNSET": 0}
)
"""Values of enumerations that our part of the schema keeps as numbers: precision, sharding, aliasing, algorithm."""

_FIELDS: dict[str, Mapping[str, _Field]] = {}


def _fields(message: Message) -> Mapping[str, _Field]:
    descriptor = message.DESCRIPTOR
    known = _FIELDS.get(descriptor.full_name)
    if known is None:
        known = _FIELDS[descriptor.full_name] = {name: _field(f) for name, f in descriptor.fields_by_name.items()}
    return known


def _field(descriptor: Any) -> _Field:
    """From a field's descriptor, of which protobuf's stubs know two unrelated classes."""
    nested = descriptor.message_type
    entry = None
    if nested is not None and nested.GetOptions().map_entry:
        entry = _Entry(_field(nested.fields_by_name["key"]), _field(nested.fields_by_name["value"]))
    return _Field(descriptor.name, descriptor.is_repeated, descriptor.type, entry)


def _text(value: str) -> str:
    return text_encoding.CUnescape(value[1:-1]).decode()
