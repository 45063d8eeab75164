"""How a run ended that did not end well: XLA's way of dying, or of not coming back, as what it means for the module."""

from __future__ import annotations

from engine import worker
from engine.errors import OutOfMemory, WorkerError
from engine.execute.memory import SMALLER, available_bytes
from engine.quantities import bytes_text


def explain(
    error: worker.Died | worker.TimedOut | OutOfMemory, name: str, devices: int, platform: str, deadline: float
) -> WorkerError:
    """`error` in words for whoever ran the module `name` on `devices` devices, within `deadline` seconds."""
    if isinstance(error, worker.TimedOut):
        return WorkerError(
            f"running {name} did not end within {deadline:g} s: an endless loop, or too slow for this machine"
        )
    if isinstance(error, OutOfMemory) or error.starved:
        return _starved(error, name, devices, platform)
    if "Termination timeout" in error.said or "stuck" in error.said.lower():
        return WorkerError(f"deadlock: devices wait for each other in a collective forever ({error.said})")
    return error


def _starved(error: WorkerError, name: str, devices: int, platform: str) -> OutOfMemory:
    where = f"{devices} {platform.upper()} device{'s' if devices != 1 else ''}"
    left = available_bytes() if platform == "cpu" else None
    now = "" if left is None else f" This machine has {bytes_text(left)} available now."
    return OutOfMemory(f"{name} ran out of memory on {where}: {error}.{now} Take {SMALLER}")
