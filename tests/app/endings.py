"""Runs from the window that end badly, as jobs with little patience or little memory."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import patch

from app import run_work
from app.run_work import Timed
from engine import worker
from engine.control import Control
from engine.execute.timing import RunOptions
from engine.session.variant import Variant

PATIENCE = 8.0
"""Seconds that a run may take."""
WAITING = 2.0
"""Seconds that a collective may wait for other devices."""
LITTLE = 1 << 30
"""Bytes that a starved run gets beyond what its process has."""


def soon(variants: tuple[Variant, ...], options: RunOptions, folder: str, *, control: Control) -> Timed:
    """As `app.run_work.run`, with a near deadline."""
    return run_work.run(variants, replace(options, deadline=PATIENCE), folder, control=control)


def stuck(variants: tuple[Variant, ...], options: RunOptions, folder: str, *, control: Control) -> Timed:
    """As `app.run_work.run`, where devices soon count as waiting for each other without end."""
    with patch("engine.execute.timing.RENDEZVOUS", WAITING):
        return run_work.run(variants, options, folder, control=control)


def starved(variants: tuple[Variant, ...], options: RunOptions, folder: str, *, control: Control) -> Timed:
    """As `app.run_work.run`, its worker short of memory."""
    call = worker.call

    def limited(_: str, *args: object, **kwargs: object) -> object:
        return call("tests.engine.execute.starving:measure_with", LITTLE, *args, **kwargs)  # type: ignore[arg-type]  # as given

    with patch("engine.worker.call", limited):
        return run_work.run(variants, options, folder, control=control)
