"""Where the instructions lie in a serialised HloModuleProto, so that one is read without parsing all of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.hlo.hlo_pb2 import HloComputationProto, HloInstructionProto, HloModuleProto

Ints = npt.NDArray[np.int64]
_COMPUTATIONS = HloModuleProto.COMPUTATIONS_FIELD_NUMBER
_INSTRUCTIONS = HloComputationProto.INSTRUCTIONS_FIELD_NUMBER
_ID = HloComputationProto.ID_FIELD_NUMBER
_VARINT, _FIXED64, _DELIMITED, _FIXED32 = 0, 1, 2, 5
"""Types on the wire, https://protobuf.dev/programming-guides/encoding/."""


@dataclass(frozen=True, eq=False)
class Places:
    """n instructions of c computations in a module's bytes."""

    computation: Ints
    """Ids, ascending. Shape [c]."""
    first: Ints
    """Index of each computation's first instruction. Shape [c]."""
    start: Ints
    """Offset of each computation. Shape [c]."""
    stop: Ints
    begin: Ints
    """Offset of each instruction. Shape [n]."""
    end: Ints

    def read_computation(self, data: bytes, computation: int) -> HloComputationProto:
        """A computation, from the bytes that these are the places in."""
        at = int(np.searchsorted(self.computation, computation))
        return HloComputationProto.FromString(data[int(self.start[at]) : int(self.stop[at])])

    def read(self, data: bytes, computation: int, position: int) -> HloInstructionProto:
        """The instruction at a position of a computation's list."""
        at = int(self.first[np.searchsorted(self.computation, computation)]) + position
        return HloInstructionProto.FromString(data[int(self.begin[at]) : int(self.end[at])])


def places_in(data: bytes) -> Places:
    """The places in a serialised module, in time that grows with the number of instructions, not with their size."""
    begin: list[int] = []
    end: list[int] = []
    found: list[tuple[int, int, int, int]] = []
    for number, start, stop in _fields(data, 0, len(data)):
        if number != _COMPUTATIONS:
            continue
        id_, first = 0, len(begin)
        for inner, at, until in _fields(data, start, stop):
            if inner == _INSTRUCTIONS:
                begin.append(at)
                end.append(until)
            elif inner == _ID:
                id_ = _varint(data, at)[0]
        found.append((id_, first, start, stop))
    id_of, first_of, start_of, stop_of = np.array(sorted(found), np.int64).reshape(-1, 4).T.copy()
    return Places(id_of, first_of, start_of, stop_of, np.array(begin, np.int64), np.array(end, np.int64))


def _fields(data: bytes, at: int, stop: int) -> Iterator[tuple[int, int, int]]:
    """Number of each field between two offsets, and where its content begins and ends."""
    while at < stop:
        tag, at = data[at], at + 1
        if tag >= 0x80:  # most are short, and a call for each would take as long as all else
            tag, at = _varint(data, at - 1)
        kind = tag & 7
        if kind == _DELIMITED:
            size, at = data[at], at + 1
            if size >= 0x80:
                size, at = _varint(data, at - 1)
        elif kind == _VARINT:
            size = _varint(data, at)[1] - at
        else:
            size = {_FIXED64: 8, _FIXED32: 4}[kind]
        yield tag >> 3, at, at + size
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number of seven bits a byte, the least first, and the offset after it."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
