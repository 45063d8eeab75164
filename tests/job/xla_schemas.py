"""XLA's own protobuf schemas, as they are linked into the installed jaxlib: what its text formats are checked with.

A linked FileDescriptorProto begins with its file name (field 1) and package (field 2); its end is found by walking its
fields, whose numbers ascend.
"""

from __future__ import annotations

import mmap
import re
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

_LONGEST = 1 << 20
_START = re.compile(rb"\x0a([\x05-\x7f])([\w/]+\.proto)\x12")


@cache
def message(name: str, file: str) -> Any:
    """The class of a message, by its full name and the .proto file it is declared in."""
    found = _linked(str(next(_libraries())))
    pool = DescriptorPool()
    added: set[str] = set()

    def add(path: str) -> None:
        if path in added:
            return
        added.add(path)
        for needed in found[path].dependency:
            add(needed)
        pool.AddSerializedFile(found[path].SerializeToString())

    add(file)
    return GetMessageClass(pool.FindMessageTypeByName(name))


def _libraries() -> Any:
    spec = find_spec("jaxlib")
    assert spec is not None
    assert spec.submodule_search_locations
    return Path(spec.submodule_search_locations[0]).glob("libjax_common.*")


@cache
def _linked(path: str) -> dict[str, FileDescriptorProto]:
    found: dict[str, FileDescriptorProto] = {}
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as library:
        for start in _START.finditer(library):
            if start[1][0] != len(start[2]):
                continue
            described = FileDescriptorProto()
            end = _end(library, start.start(), min(len(library), start.start() + _LONGEST))
            try:
                described.ParseFromString(library[start.start() : end])
            except DecodeError:
                continue
            if described.name == start[2].decode():
                found.setdefault(described.name, described)
    return found


def _end(library: mmap.mmap, start: int, limit: int) -> int:
    at = end = start
    last = 0
    while at < limit:
        tag, at = _varint(library, at)
        number, wire = tag >> 3, tag & 7
        if number not in {*range(1, 13), 14, 15} or number < last or wire not in (0, 2):
            break
        length, at = _varint(library, at)
        at += length if wire == 2 else 0
        if at > limit:
            break
        last, end = number, at
    return end


def _varint(library: mmap.mmap, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = library[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if not byte & 0x80 or shift > 63:
            return value, at
        shift += 7
