"""The training script captured and bundled once for all tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.job.processes import PLAN, bundled, captured


@pytest.fixture(scope="session")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return captured(tmp_path_factory.mktemp("capture"))


@pytest.fixture(scope="session")
def bundle(capture: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The decomposed plan."""
    return bundled(capture, tmp_path_factory.mktemp("tuned") / "bundle", *PLAN)


@pytest.fixture(scope="session")
def order_bundle(capture: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Another order of what the job's own compiler made."""
    return bundled(capture, tmp_path_factory.mktemp("order") / "bundle", "--order-only", "--scheduler", "memory")
