"""What every test runs under: Qt offscreen, JAX on the CPU, hypothesis without a clock."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

os.environ["QT_QPA_PLATFORM"] = os.environ.get("LAPSTRAKE_TEST_PLATFORM", "offscreen")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

# A shared CI machine is slow by turns: a deadline on single examples would fail tests by chance.
settings.register_profile("lapstrake", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("lapstrake"), derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "lapstrake")
