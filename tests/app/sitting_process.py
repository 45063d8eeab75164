"""Starts the sitting in a process of its own, on a virtual display where this machine has what that needs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import nullcontext

from tests.app.virtual_display import missing, virtual_display
from tests.places import ROOT


def sit(*arguments: str, deadline: float) -> subprocess.CompletedProcess[str]:
    """Run `tests.app.sitting` with these arguments; its output holds what was said to standard error as well.

    Raises subprocess.TimeoutExpired after `deadline` seconds, which is longer than it lets itself hang.
    """
    display = nullcontext("") if missing() else virtual_display()
    with display as name:
        return _run(arguments, name, deadline)


def _run(arguments: Sequence[str], display: str, deadline: float) -> subprocess.CompletedProcess[str]:
    platform = {"QT_QPA_PLATFORM": "xcb", "DISPLAY": display} if display else {"QT_QPA_PLATFORM": "offscreen"}
    return subprocess.run(
        [sys.executable, "-m", "tests.app.sitting", *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), **platform},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=deadline,
        check=False,
    )
