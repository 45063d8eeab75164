"""Ids, names and channels that nothing in a module has yet."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from engine.hlo.hlo_pb2 import HloComputationProto, HloModuleProto

LOCAL_BITS = 32
"""XLA numbers instructions ``computation id << 32 | local id``."""


def local_id(computation: int, instruction: int) -> int:
    """An instruction's number in its computation; -1 where its id is not numbered so."""
    local = instruction - (computation << LOCAL_BITS)
    return local if 0 <= local < 1 << LOCAL_BITS else -1


class Numbering:
    """Gives out what is free in `proto`, which must stay as it is while it is asked; nothing is given twice, nor what
    was taken once: `gone` has the last local id that was removed from each computation, be it there or not."""

    def __init__(self, proto: HloModuleProto, gone: Mapping[int, int]) -> None:
        self._proto = proto
        self._gone = gone
        self._suffixes: dict[str, int] = {}
        self._next_local: dict[int, int] = {}
        self._next_computation = max((*(c.id for c in proto.computations), *gone), default=0) + 1

    def name(self, base: str) -> str:
        """`base` if nobody has it, else with the next free number."""
        name = base
        while name in self._names:
            suffix = self._suffixes.get(base, 0) + 1
            self._suffixes[base] = suffix
            name = f"{base}.{suffix}"
        self._names.add(name)
        return name

    def channel(self) -> int:
        """A channel id for a collective."""
        self._last_channel += 1
        return self._last_channel

    def computation(self) -> int:
        """A computation's id."""
        self._next_computation += 1
        return self._next_computation - 1

    def instruction(self, computation: HloComputationProto) -> int:
        """The id of one more instruction of `computation`, which is from the module or came to be since."""
        local = self._next_local.get(computation.id)
        if local is None:
            there = (local_id(computation.id, i.id) for i in computation.instructions)
            local = max((*there, self._gone.get(computation.id, -1)), default=-1) + 1
        self._next_local[computation.id] = local + 1
        return computation.id << LOCAL_BITS | local

    @cached_property
    def _names(self) -> set[str]:
        computations = self._proto.computations
        return {c.name for c in computations} | {i.name for c in computations for i in c.instructions}

    @cached_property
    def _last_channel(self) -> int:
        return max((i.channel_id for c in self._proto.computations for i in c.instructions), default=0)
