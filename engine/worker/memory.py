"""When a worker takes the memory that the machine needs to stay usable: asked while it works, on Linux alone."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

LARGE = 0.25
"""Share of the machine's memory that a worker may have at any time."""
LEFT = 0.1
"""Share of it that has to stay available while a worker has more than that."""


def takes_too_much(pid: int | None) -> int:
    """Bytes that a process has, if it is large and leaves the machine next to nothing; else 0, also where it cannot be
    told. Address space that is only reserved, as XLA does, does not count."""
    has = resident_bytes(pid)
    if not has:
        return 0
    total, available = machine_bytes()
    return has if has > LARGE * total and available < LEFT * total else 0


def resident_bytes(pid: int | None) -> int:
    """Memory that a process has, 0 where it cannot be told."""
    with suppress(OSError, ValueError, IndexError):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def machine_bytes() -> tuple[int, int]:
    """All memory of the machine, and what can be had without swapping; as if all were free where it cannot be told."""
    with suppress(OSError, ValueError, KeyError):
        lines = (line.split() for line in Path("/proc/meminfo").read_text().splitlines())
        found = {words[0]: int(words[1]) * 1024 for words in lines}
        return found["MemTotal:"], found["MemAvailable:"]
    return 1, 1
