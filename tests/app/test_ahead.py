"""What is begun before there is a window is taken over by the job that would have begun it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.ahead import Ahead
from app.jobs import Jobs
from engine import worker
from engine.ir.module import Module
from tests.patience import LONG
from tests.places import SAMPLES

SAMPLE = SAMPLES / "mlp_chain_forward_4_f32.hlo"


@pytest.fixture
def ahead(monkeypatch: pytest.MonkeyPatch) -> Ahead:
    monkeypatch.setattr(worker, "prepare", lambda target: None)
    return Ahead()


@pytest.fixture
def jobs(qtbot: QtBot) -> Iterator[Jobs]:
    made = Jobs()
    yield made
    made.close()


def test_a_job_takes_over_the_reading_of_its_file(ahead: Ahead, jobs: Jobs, qtbot: QtBot) -> None:
    found: list[tuple[Module, object]] = []
    ahead.begin([str(SAMPLE)])
    call = ahead.take(str(SAMPLE), SAMPLE.read_bytes())
    assert call is not None
    jobs.start("reading", "no.such.module:load", done=found.append, begun=lambda: call)
    qtbot.waitUntil(lambda: bool(found), timeout=LONG)
    assert len(found[0][0].instructions) > 10
    assert ahead.take(str(SAMPLE), SAMPLE.read_bytes()) is None


def test_a_file_that_was_written_to_meanwhile_is_read_again(ahead: Ahead, tmp_path: Path) -> None:
    path = tmp_path / "step.hlo"
    path.write_bytes(SAMPLE.read_bytes())
    ahead.begin([str(path)])
    assert ahead.take(str(path), b"HloModule other") is None


@pytest.mark.parametrize("name", ["nothing.hlo", "", "-", "costs.csv", "step.lapstrake"])
def test_what_is_no_module_is_left_to_the_window(ahead: Ahead, tmp_path: Path, name: str) -> None:
    (tmp_path / "costs.csv").write_text("dot.1,3.5\n")
    (tmp_path / "step.lapstrake").write_text("{}")
    path = name if name == "-" else str(tmp_path / name)
    ahead.begin([path])
    assert ahead.take(path, b"") is None
