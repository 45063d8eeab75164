"""What every test runs under: Qt offscreen, JAX on the CPU, hypothesis without a clock."""

from __future__ import annotations

import faulthandler
import os
import sys

import pytest
from hypothesis import HealthCheck, settings

os.environ["QT_QPA_PLATFORM"] = os.environ.get("LAPSTRAKE_TEST_PLATFORM", "offscreen")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
# Processes of pytest-xdist are told 80 columns; reports are as wide as they are where nobody says so.
os.environ.pop("COLUMNS", None)

_LEAVING_S = 120.0

# A shared CI machine is slow by turns: a deadline on single examples would fail tests by chance.
settings.register_profile("lapstrake", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("many", settings.get_profile("lapstrake"), max_examples=1000, derandomize=False)
settings.register_profile("ci", settings.get_profile("lapstrake"), derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "lapstrake")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What tests want said even though they passed."""
    for report in terminalreporter.getreports("passed"):
        for name, value in report.user_properties:
            if name == "summary":
                terminalreporter.write_line(str(value))


def pytest_unconfigure() -> None:
    """Pytest's own watch ends with the last test: a process that then does not end says where it hangs, and ends."""
    if sys.__stderr__ is not None:
        faulthandler.dump_traceback_later(_LEAVING_S, exit=True, file=sys.__stderr__)
