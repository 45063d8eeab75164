"""Kinds of asynchronous operations, and how many of each may be in flight."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from types import MappingProxyType

from engine.errors import UsageError


class Kind(IntEnum):
    """What an instruction is to a budget and to the timeline's lanes."""

    COMPUTE = 0
    PERMUTE = 1
    ALL_GATHER = 2
    REDUCE_SCATTER = 3
    ALL_REDUCE = 4
    ALL_TO_ALL = 5
    COPY = 6
    """Asynchronous copies and slices between memories."""
    OTHER = 7
    """Sends, receives and other asynchronous operations."""


KIND_NAMES: Mapping[str, Kind] = MappingProxyType(
    {
        "permute": Kind.PERMUTE,
        "gather": Kind.ALL_GATHER,
        "scatter": Kind.REDUCE_SCATTER,
        "reduce": Kind.ALL_REDUCE,
        "all-to-all": Kind.ALL_TO_ALL,
        "copy": Kind.COPY,
        "other": Kind.OTHER,
    }
)
"""As budgets name the asynchronous kinds."""

KIND_PLURALS: Mapping[Kind, str] = MappingProxyType(
    {
        Kind.PERMUTE: "permutes",
        Kind.ALL_GATHER: "all-gathers",
        Kind.REDUCE_SCATTER: "reduce-scatters",
        Kind.ALL_REDUCE: "all-reduces",
        Kind.ALL_TO_ALL: "all-to-alls",
        Kind.COPY: "copies",
        Kind.OTHER: "other operations",
    }
)
"""As sentences name several."""

_LIMIT = re.compile(r"\s*(?:([A-Za-z][\w-]*)\s*=\s*)?(\d+)\s*")
MOST = 1_000_000
"""Highest limit that is taken: what is over it was mistyped, since no program has as many in flight."""

_EXPECTED = "a budget is a number, or limits by kind such as 'permute=4,gather=1,total=5'"


@dataclass(frozen=True, slots=True)
class Budget:
    """How many asynchronous operations may be in flight at any moment; callees count while they run.

    The text form is ``4``, by kind ``permute=4,gather=1,total=5``, or ``unlimited``. `parse` and `str` are each other's
    inverse. A bare number is the total: the chip's limits by kind stay (see `on`).
    """

    total: int | None = None
    """Of all kinds together; None is unlimited."""
    by_kind: tuple[tuple[Kind, int], ...] = ()
    """Limits of single kinds, ascending by kind; a kind that is missing is limited by `total` only."""

    @staticmethod
    def parse(text: str) -> Budget:
        """Raises UsageError for anything but the text form."""
        if text.strip() == "unlimited":
            return Budget()
        total: int | None = None
        by_kind: dict[Kind, int] = {}
        for number, piece in enumerate(text.split(",")):
            found = _LIMIT.fullmatch(piece)
            if found is None:
                raise UsageError(f"{_EXPECTED}; '{piece.strip()}' in '{text}' is neither")
            digits = found[2].lstrip("0")
            if len(digits) > len(str(MOST)) or int(digits or "0") > MOST:
                raise UsageError(
                    f"a limit in '{text[:60]}' is over {MOST:,}, which is more than any program has in flight; "
                    "'unlimited' allows any number"
                )
            name, limit = found[1] or "total", int(digits or "0")
            if limit == 0:
                raise UsageError(f"'{text}' allows no operation in flight: a limit is at least 1")
            if found[1] is None and number:
                raise UsageError(f"{_EXPECTED}; '{piece.strip()}' in '{text}' names no kind")
            if name == "total":
                if total is not None:
                    raise UsageError(f"the total is given twice in '{text}'")
                total = limit
            elif name not in KIND_NAMES:
                raise UsageError(f"no kind is called '{name}'; there are: {', '.join(KIND_NAMES)}, total")
            elif KIND_NAMES[name] in by_kind:
                raise UsageError(f"'{name}' is given twice in '{text}'")
            else:
                by_kind[KIND_NAMES[name]] = limit
        return Budget(total, tuple(sorted(by_kind.items())))

    def __str__(self) -> str:
        names = {kind: name for name, kind in KIND_NAMES.items()}
        parts = [f"{names[kind]}={limit}" for kind, limit in self.by_kind]
        if self.total is not None:
            parts.append(f"total={self.total}" if parts else str(self.total))
        return ",".join(parts) or "unlimited"

    def in_words(self) -> str:
        """Read in a sentence: ``at most 8 operations in flight (permute 4, gather 2)``."""
        names = {kind: name for name, kind in KIND_NAMES.items()}
        kinds = ", ".join(f"{names[kind]} {limit}" for kind, limit in self.by_kind)
        if self.total is None:
            return f"at most so many operations in flight: {kinds}" if kinds else "any number of operations in flight"
        return f"at most {self.total} operations in flight{f' ({kinds})' if kinds else ''}"

    def on(self, usual: Budget) -> Budget:
        """What is in force on a chip whose own budget is `usual`: a total alone leaves the limits by kind as they are.

        Limits by kind that are named stand for themselves, and ``unlimited`` lifts all.
        """
        return self if self.total is None or self.by_kind else replace(self, by_kind=usual.by_kind)

    def limit(self, kind: Kind) -> int | None:
        """How many of `kind` may be in flight, from its own limit and the total; None is unlimited."""
        limits = [limit for k, limit in self.by_kind if k == kind]
        if self.total is not None:
            limits.append(self.total)
        return min(limits, default=None)
