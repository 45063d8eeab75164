"""Jobs end, and say how: with a result, an error, cancelled, and where not even a worker could be started."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from functools import partial
from multiprocessing.context import SpawnProcess
from typing import NoReturn

import pytest
from pytestqt.qtbot import QtBot

from app.jobs import Jobs
from engine import worker
from engine.control import Cancelled
from engine.errors import LapstrakeError, WorkerError
from tests.app.waiting import LONG

SLEEP = "tests.app.slow:sleep"


@pytest.fixture
def jobs(qtbot: QtBot) -> Iterator[Jobs]:
    made = Jobs()
    yield made
    made.close()


def test_errors_and_cancelling_end_in_failed(jobs: Jobs, qtbot: QtBot) -> None:
    errors: list[LapstrakeError] = []
    jobs.start("bad", "engine.nowhere:nothing", done=lambda _: None, failed=errors.append)
    qtbot.waitUntil(lambda: bool(errors), timeout=LONG)
    assert "nowhere" in str(errors[0])
    number = jobs.start("slow", SLEEP, 60.0, done=lambda _: None, failed=errors.append)
    assert jobs.is_running(number)
    jobs.cancel(number)
    qtbot.waitUntil(lambda: len(errors) == 2, timeout=LONG)
    assert isinstance(errors[1], Cancelled)
    assert [state.state for state in jobs.states()] == ["cancelled", "failed"]


def test_only_so_many_run_at_once_and_results_arrive(jobs: Jobs, qtbot: QtBot) -> None:
    found: list[float] = []
    for n in range(4):
        jobs.start(f"job {n}", SLEEP, 0.01, done=found.append)
    assert sum(state.message == "waiting for its turn" for state in jobs.states()) == 2
    qtbot.waitUntil(lambda: len(found) == 4, timeout=LONG)


def _note(ended: list[str], name: str, result: object) -> None:
    ended.append(name)


def test_jobs_that_share_their_passes_follow_each_other(jobs: Jobs, qtbot: QtBot) -> None:
    ended: list[str] = []
    near = {"one": "passes", "two": "passes", "three": "others"}
    for name, shared in near.items():
        jobs.start(name, SLEEP, 0.3, done=partial(_note, ended, name), near=shared)
    waiting = {job.title for job in jobs.states() if job.message == "waiting for its turn"}
    assert waiting == {"two"}
    qtbot.waitUntil(lambda: len(ended) == 3, timeout=LONG)
    assert ended.index("two") > ended.index("one")


def test_a_job_without_a_worker_fails_with_a_way_out_and_leaves_its_place_to_the_next(
    jobs: Jobs, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(process: SpawnProcess) -> NoReturn:
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    worker.close()
    monkeypatch.setattr(SpawnProcess, "start", refuse)
    errors: list[LapstrakeError] = []
    for name in ("one", "two", "three"):
        jobs.start(name, SLEEP, 0.01, done=lambda _: None, failed=errors.append)
    qtbot.waitUntil(lambda: len(errors) == 3, timeout=LONG)
    assert {type(error) for error in errors} == {WorkerError}
    assert [state.state for state in jobs.states()] == ["failed"] * 3
    assert all(os.strerror(errno.EAGAIN) in state.error for state in jobs.states())
    assert all("try again" in state.error for state in jobs.states())
    monkeypatch.undo()
    found: list[float] = []
    jobs.start("again", SLEEP, 0.01, done=found.append)
    qtbot.waitUntil(lambda: found == [0.01], timeout=LONG)


def test_a_job_whose_thread_fails_ends(jobs: Jobs, qtbot: QtBot) -> None:
    def broken() -> worker.Call:
        raise RuntimeError("can't start new thread")

    said: list[str] = []
    jobs.start("reading", "app.work:load", done=said.append, failed=lambda error: said.append(str(error)), begun=broken)
    qtbot.waitUntil(lambda: bool(said), timeout=LONG)
    assert said == ["app.work:load failed: RuntimeError: can't start new thread"]
