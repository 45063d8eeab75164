"""Runs with less memory than they need, in the worker: what happens on a machine that is full."""

from __future__ import annotations

import os
import resource
from pathlib import Path
from unittest.mock import patch

import jax

from engine.control import Control
from engine.execute.stopwatch import measure_in_worker
from engine.execute.timing import Entrant, Measurement, RunOptions


def measure_with(more: int, entrants: tuple[Entrant, ...], options: RunOptions, *, control: Control) -> Measurement:
    """As `measure_in_worker`, in a process that gets `more` bytes beyond what it has, and does not ask before."""
    jax.devices()
    size = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (size + more, before[1]))
    try:
        with patch("engine.execute.running.check_fits"):
            return measure_in_worker(entrants, options, control=control)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
