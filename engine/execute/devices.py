"""Which platforms this machine has devices of, asked in a process of its own for each: a broken one hurts no other."""

from __future__ import annotations

from dataclasses import dataclass

from engine import worker
from engine.control import QUIET, Control
from engine.errors import WorkerError
from engine.execute.environment import PLATFORMS, environment

DEADLINE = 60.0
"""Seconds that a platform's runtime gets to answer."""


@dataclass(frozen=True, slots=True)
class Platform:
    """Devices of one kind, or why there are none."""

    name: str
    """``cpu``, ``gpu`` or ``tpu``."""
    count: int
    """Attached devices; for the CPU as many as a module asks for, counted here as 1."""
    kind: str = ""
    """What the runtime calls a device: ``NVIDIA H100``, ``TPU v4``."""
    memory: int | None = None
    """Bytes of one device; None where the runtime does not tell."""
    version: str = ""
    """Version of the platform's runtime."""
    problem: str = ""
    """Why there are none."""


def platforms_found(*, deadline: float = DEADLINE, control: Control = QUIET) -> tuple[Platform, ...]:
    """All platforms; those without devices say why. Never raises for a platform that does not work; Cancelled."""
    found = []
    for k, name in enumerate(PLATFORMS):
        part = control.part(k / len(PLATFORMS), (k + 1) / len(PLATFORMS))
        part.step(0.0, f"looking for {name} devices")
        try:
            answer = worker.call(
                "engine.execute.attached:describe",
                name,
                environment=environment(1, name, 3600.0),
                deadline=deadline,
                control=part,
            )
            assert isinstance(answer, Platform)
        except WorkerError as error:
            answer = Platform(name, 0, problem=str(error))
        found.append(answer)
    return tuple(found)
