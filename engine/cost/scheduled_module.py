"""The module inside a ScheduleProto: as it was when the compiler scheduled it, carrying the compiler's order.

Later passes change the module, so it is not the one that the compiler ends with; most names are the same.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from google.protobuf import text_encoding
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from engine.cost.compiler_schedule import CompilerSchedule, is_predicted, read_schedule
from engine.cost.text_format import TextMessage
from engine.errors import InputError
from engine.hlo.hlo_pb2 import HloModuleProto, PrimitiveType
from engine.hlo.partitions import infer_counts
from engine.ir.module import Header, Module


@dataclass(frozen=True, eq=False)
class ScheduledModule:
    """A module with the compiler's order in it, and what the compiler predicts of that order."""

    module: Module
    schedule: CompilerSchedule


def read_scheduled_module(text: str, path: str, header: Header | None = None) -> ScheduledModule:
    """Read a ScheduleProto in text format. Raises InputError with the place of what is wrong.

    `header`: how many devices the module was compiled for, which a ScheduleProto does not say; by default what its
    collectives name, with a note.
    """
    if is_predicted(text):
        raise InputError(f"{path}: a schedule that a compiler predicted was expected, but this one is Lapstrake's own")
    schedule = read_schedule(text, path)
    proto = HloModuleProto()
    message = TextMessage(text, path)
    for name, value in message.fields():
        if name == "hlo_module" and value is None:
            _read(message, proto)
        elif value is None:
            message.skip()
    header, note = infer_counts(proto, header or Header())
    ids = {i.name: i.id for c in proto.computations for i in c.instructions}
    computations = {c.name: c.id for c in proto.computations}
    for scheduled in schedule.computations:
        order = [ids[name] for name in scheduled.names]
        computation = computations[scheduled.name]
        del proto.schedule.sequences[computation]
        proto.schedule.sequences[computation].instruction_ids.extend(order)
    return ScheduledModule(Module(proto, header, (note,) if note else ()), schedule)


def _read(message: TextMessage, proto: Message) -> None:
    """Read the open message; fields that our part of the schema lacks are left out."""
    fields = _fields(proto)
    for name, value in message.fields():
        field = fields.get(name)
        if field is None:
            if value is None:
                message.skip()
        elif value is None:
            _read_inner(message, proto, field)
        else:
            try:
                field.set(proto, value)
            except (KeyError, ValueError):
                raise message.error(f"a value of {name} was expected before this, but {value[:40]} came") from None


def _read_inner(message: TextMessage, proto: Message, field: _Field) -> None:
    held = getattr(proto, field.name)
    if field.entry is not None:
        _read_entry(message, held, field.entry)
    elif field.repeated:
        _read(message, held.add())
    else:
        held.SetInParent()
        _read(message, held)


def _read_entry(message: TextMessage, held: Any, entry: _Entry) -> None:
    """An entry of a map; the key comes first, and what is nothing is left out."""
    key: Any = entry.key.parse("0" if entry.key.type == FieldDescriptor.TYPE_INT64 else '""')
    for name, value in message.fields():
        if value is None:
            _read(message, held[key])
        elif name == "key":
            key = entry.key.parse(value)
        else:
            held[key] = entry.value.parse(value)


@dataclass(frozen=True, slots=True)
class _Field:
    """How one field of a message is set from text."""

    name: str
    repeated: bool
    type: int
    entry: _Entry | None = None
    """Of a map."""

    def set(self, proto: Message, value: str) -> None:
        """Raises ValueError or KeyError where `value` is none of the field's type."""
        if not self.repeated:
            setattr(proto, self.name, self.parse(value))
        elif value.startswith("["):
            getattr(proto, self.name).extend(map(self.parse, re.findall(r"[^\s,\[\]]+", value)))
        else:
            getattr(proto, self.name).append(self.parse(value))

    def parse(self, value: str) -> Any:
        if self.type == FieldDescriptor.TYPE_STRING:
            return _bytes(value).decode()
        if self.type == FieldDescriptor.TYPE_BYTES:
            return _bytes(value)
        if self.type == FieldDescriptor.TYPE_BOOL:
            return {"true": True, "false": False}[value]
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

_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"|\'((?:[^\'\\]|\\.)*)\'')
_FIELDS: dict[str, Mapping[str, _Field]] = {}


def _fields(proto: Message) -> Mapping[str, _Field]:
    descriptor = proto.DESCRIPTOR
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


def _bytes(value: str) -> bytes:
    """The content of one or more adjacent quoted texts."""
    return b"".join(text_encoding.CUnescape(one or other) for one, other in _QUOTED.findall(value))
