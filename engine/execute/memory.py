"""Whether a run fits into this machine's memory: asked before it starts, since the system kills without a word."""

from __future__ import annotations

import ctypes
import os
import sys
from contextlib import suppress
from pathlib import Path

from engine.errors import UnsupportedError
from engine.ir import shapes
from engine.ir.module import Module
from engine.quantities import bytes_text

SMALLER = "a smaller version of the module (shorter batch, fewer layers, narrower model), or a machine with more memory"
"""What can be taken instead of what is too large."""

RESERVED = 0.1
"""Share of the available memory that is left to everybody else."""


def check_fits(name: str, needed: int, devices: int, available: int | None = None) -> None:
    """Raises UnsupportedError when `needed` bytes for all devices together are more than there are."""
    available = available_bytes() if available is None else available
    if available is None or needed <= available * (1 - RESERVED):
        return
    raise UnsupportedError(
        f"{name} needs {bytes_text(needed)} on {devices} CPU devices together, but this machine has "
        f"{bytes_text(available)} available. All devices of the module have to run, so fewer would not help: take "
        f"{SMALLER}"
    )


def least_bytes(module: Module) -> int:
    """A lower bound of what a run needs on all devices together: parameters, results, and the largest array between.

    Only results of einsums and collectives count as arrays between: others may never exist as a whole.
    """
    entry = module.proto.host_program_shape
    signature = sum(shapes.byte_count(p) for p in entry.parameters) + shapes.byte_count(entry.result)
    made = (shapes.byte_count(i.shape) for i in module.instructions.values() if i.opcode in _MATERIALISED)
    return (signature + max(made, default=0)) * module.header.devices


_MATERIALISED = frozenset({"all-gather", "all-reduce", "all-to-all", "collective-permute", "convolution", "dot"})


def available_bytes() -> int | None:
    """Memory that can be had without swapping, limits of the container included; None where it cannot be told."""
    found = [b for b in (_system_bytes(), _container_bytes()) if b is not None]
    return min(found, default=None)


def _system_bytes() -> int | None:
    with suppress(OSError, StopIteration, ValueError):
        lines = Path("/proc/meminfo").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("MemAvailable:")).split()[1]) * 1024
    if sys.platform == "win32":
        return _windows_bytes()
    with suppress(OSError, ValueError):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return None


def _container_bytes() -> int | None:
    with suppress(OSError, ValueError):
        group = Path("/sys/fs/cgroup")
        limit = int((group / "memory.max").read_text())
        return max(0, limit - int((group / "memory.current").read_text()))
    return None


def _windows_bytes() -> int | None:
    class Status(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ulong), ("load", ctypes.c_ulong)] + [
            (name, ctypes.c_ulonglong) for name in ("total", "available", "a", "b", "c", "d", "e")
        ]

    status = Status()
    status.length = ctypes.sizeof(Status)
    windll = getattr(ctypes, "windll", None)
    if windll is None or not windll.kernel32.GlobalMemoryStatusEx(ctypes.byref(status)):
        return None
    return int(status.available)
