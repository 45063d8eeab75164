"""Opcodes that several parts of the engine treat alike."""

from __future__ import annotations

COLLECTIVES = frozenset(
    {
        "all-gather",
        "all-reduce",
        "all-to-all",
        "collective-broadcast",
        "collective-permute",
        "ragged-all-to-all",
        "reduce-scatter",
    }
)
"""Exchanges between devices in their blocking form; the asynchronous ones end in ``-start`` and ``-done``."""


def is_start(opcode: str) -> bool:
    """Whether an instruction begins a transfer and does not wait for it."""
    return opcode.endswith("-start") or opcode in ("send", "recv")
