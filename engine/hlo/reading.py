"""Reads HLO text, HloModuleProto or HloProto bytes and StableHLO, gzipped or not, into a `Module`."""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from os import PathLike
from pathlib import Path

from google.protobuf.message import DecodeError

from engine.control import QUIET, Control
from engine.errors import InputError, Place
from engine.hlo import xla
from engine.hlo.header import parse_header
from engine.hlo.hlo_pb2 import HloModuleProto, HloProto
from engine.hlo.partitions import infer_counts
from engine.ir.module import Header, Module, Source

_PLACE = re.compile(r"was parsing (\d+):(\d+): error: (.*)")
_ELIDED = re.compile(r"([\w.\-]+) = \S+ constant\(\{\.\.\.\}\)")


def read(path: str | PathLike[str], *, deadline: float = 120.0, control: Control = QUIET) -> Module:
    """Read a module from a file. Raises InputError."""
    control.step(0.0, f"reading {path}")
    return read_here(Path(path).read_bytes(), str(path))


def read_here(data: bytes, path: str = "-") -> Module:
    """Read a module from the bytes of a file, in this process: for workers and tests.

    `path` is only for messages. Raises InputError. XLA may abort the process on some malformed inputs.
    """
    source = Source(path, hashlib.sha256(data).hexdigest())
    if not data:
        raise InputError(f"{path}: expected an HLO module, found an empty file")
    text = data.decode()
    parsed = _parse(text, path)
    module = _assemble(parsed, path)
    elided = _ELIDED.findall(text)
    if elided:
        ids = frozenset(module.by_name[name].id for name in elided if name in module.by_name)
        module = replace(module, elided=ids).with_notes(
            f"{len(elided)} constants are elided in the text (constant({{...}})): their values are not those of the "
            "program; results computed with them mean nothing. Print with print_large_constants to keep them."
        )
    return replace(module, source=source)


def _parse(text: str, path: str) -> xla.Parsed:
    try:
        return xla.parse(text)
    except xla.XlaError as error:
        raise _explain(str(error), text, path) from None


def _explain(said: str, text: str, path: str) -> InputError:
    found = _PLACE.search(said)
    if found is None:
        return InputError(f"{path}: XLA cannot read it: {said.splitlines()[0]}")
    line, column, message = int(found[1]), int(found[2]), found[3]
    lines = text.splitlines()
    shown = lines[line - 1] if 0 < line <= len(lines) else ""
    return InputError(message, Place(path, line, max(column, 1), shown))


def _assemble(parsed: xla.Parsed, path: str, header: Header | None = None) -> Module:
    proto = HloModuleProto.FromString(parsed.proto)
    if not any(c.instructions for c in proto.computations):
        raise InputError(f"{path}: the module {proto.name} has no instructions")
    counted, note = infer_counts(proto, parse_header(parsed.header) if header is None else header)
    return Module(proto, counted, () if note is None else (note,))


def _proto(data: bytes) -> HloModuleProto | None:
    """The module inside HloProto or HloModuleProto bytes; None when they are neither."""
    for kind in (HloProto, HloModuleProto):
        try:
            message = kind.FromString(data)
        except DecodeError:
            continue
        module = message.hlo_module if isinstance(message, HloProto) else message
        if module.computations:
            return module
    return None
