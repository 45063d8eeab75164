"""A result belongs to the very module that it was asked for: what comes late is never shown as another's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pytestqt.qtbot import QtBot

from app.explorer import Explorer
from app.jobs import Jobs
from app.trials import Trials
from engine.control import Cancelled
from engine.errors import LapstrakeError
from engine.hlo.reading import read_bytes, read_here
from engine.ir.module import Module
from engine.session import edits
from engine.session.evaluation import Evaluator
from engine.session.plan import BEST_PASSES, MachineSpec, Plan
from engine.session.session import Asked, Session
from engine.session.variant import Variant
from tests.app.waiting import LONG, opened, settled
from tests.places import SAMPLES
from views.runs.runner import Progress, Stage, Task, Wish
from views.stale import stale_text
from views.timeline.accessible import describe_variant

GIVES_WAY = SAMPLES / "mlp_fig3_train_4x2_f32.hlo"
"""Of its default plan something is left out, which is found out late."""
OTHER = SAMPLES / "mlp_fig2_forward_4_f32.hlo"


def is_its_own(session: Session) -> bool:
    """Whether every entry shows a variant of its module as it was read."""
    modules = {module.key: module.sha256 for module in session.modules}
    found = [(e.variant.program.module.source, modules[e.module]) for e in session.entries if e.variant is not None]
    return len(found) == len(session.entries) and all(source and source.sha256 == own for source, own in found)


class Held:
    """Jobs that run `target` do not, and end when they are told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, jobs: Jobs, *targets: str) -> None:
        self.done: list[tuple[Callable[[Any], None], tuple[Any, ...]]] = []
        start = jobs.start

        def held(title: str, target: str, *args: Any, **more: Any) -> int:
            if target not in targets:
                return start(title, target, *args, **more)
            self.done.append((more["done"], args))
            return 0

        monkeypatch.setattr(jobs, "start", held)


def variant_of(path: Path, plan: Plan, name: str = "") -> Variant:
    module = read_here(read_bytes(str(path)), str(path))
    return Evaluator(module, MachineSpec()).evaluate(plan, name)


def test_what_was_pruned_for_a_file_is_not_shown_of_the_next(
    qtbot: QtBot, explorer: Explorer, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = Held(monkeypatch, explorer.job_list, "app.work:prune")
    explorer.open(str(GIVES_WAY))
    qtbot.waitUntil(lambda: bool(held.done), timeout=LONG)
    first = explorer.documents.modules
    done, (_, _, plan, name) = held.done[0]
    assert list(first) == [explorer.store.state.modules[0].key]
    before = dict(first)
    opened(qtbot, explorer, OTHER)
    assert not before.keys() & explorer.documents.modules.keys()
    late = variant_of(GIVES_WAY, plan, name)
    done(late)
    assert is_its_own(explorer.store.state)
    assert all(explorer.evaluations.known(entry.asked) is not late for entry in explorer.store.state.entries)


def test_nor_of_the_same_file_read_again(
    qtbot: QtBot, explorer: Explorer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "step.hlo"
    path.write_bytes(GIVES_WAY.read_bytes())
    held = Held(monkeypatch, explorer.job_list, "app.work:prune", "app.work:predict")
    explorer.open(str(path))
    qtbot.waitUntil(lambda: bool(held.done), timeout=LONG)
    done, (_, _, plan, name) = held.done[0]
    (key,) = explorer.documents.modules
    module, late = explorer.documents.modules[key], variant_of(path, plan, name)
    asked = Asked(key, MachineSpec(), Plan(BEST_PASSES, "top-down"))
    explorer.trials.predict("sweep", [asked])
    predicted, _ = held.done[-1]
    path.write_bytes(OTHER.read_bytes())
    explorer.documents.reload()
    qtbot.waitUntil(
        lambda: explorer.documents.modules.get(key) not in (None, module) and settled(explorer), timeout=LONG
    )
    done(late)
    predicted((late.metrics,))
    assert is_its_own(explorer.store.state)
    assert explorer.evaluations.known(explorer.store.state.entries[1].asked) is not late
    assert explorer.predicted(asked) is None


def test_jobs_about_modules_that_went_are_cancelled(qtbot: QtBot) -> None:
    jobs = Jobs()
    ended: list[LapstrakeError] = []
    gone, there = (read_here(read_bytes(str(path)), str(path)) for path in (GIVES_WAY, OTHER))
    for module in (gone, there, None):
        jobs.start("", "tests.app.slow:sleep", 0.3, done=lambda _: None, failed=ended.append, about=module)
    jobs.cancel_without([there])
    qtbot.waitUntil(lambda: not any(job.state == "running" for job in jobs.states()), timeout=LONG)
    assert [job.state for job in jobs.states()] == ["done", "done", "cancelled"]
    assert [type(error) for error in ended] == [Cancelled]
    jobs.close()


class _Full(Jobs):
    """As many jobs run as may: every other one waits for its turn."""

    def _fill(self) -> None:
        pass


def test_trials_that_wait_for_their_turn_go_with_their_module(qtbot: QtBot) -> None:
    """Its job's end starts the next one at once: that is of a module that is still there."""
    jobs = _Full()
    trials = Trials(jobs)
    one, two = (read_here(read_bytes(str(path)), str(path)) for path in (GIVES_WAY, OTHER))
    trials.set_modules({"1": one})
    plans = [Plan(BEST_PASSES, scheduler) for scheduler in ("bottom-up", "top-down", "optimal")]
    trials.predict("sweep", [Asked("1", MachineSpec(), plan) for plan in plans])
    later: dict[str, Module] = {"2": two}
    trials.set_modules(later)
    assert [job.state for job in jobs.states()] == ["cancelled"]
    jobs.close()


def test_a_run_that_ended_with_its_module_says_nothing_of_the_next(qtbot: QtBot, explorer: Explorer) -> None:
    opened(qtbot, explorer, GIVES_WAY)
    runs = explorer.runs
    runs.start(Task.VERIFY, ("B",), Wish())
    assert runs.progress.stage == Stage.RUNNING
    opened(qtbot, explorer, OTHER)
    qtbot.waitUntil(lambda: not any(job.state == "running" for job in explorer.jobs()), timeout=LONG)
    assert runs.progress == Progress()


def test_what_was_cancelled_did_not_fail(qtbot: QtBot, explorer: Explorer) -> None:
    opened(qtbot, explorer, OTHER)
    plan = Plan("decompose{ring=one},async-permute", "top-down")
    explorer.store.become("Plan", edits.planned(explorer.store.state, "B", plan))

    def planning() -> list[int]:
        return [job.number for job in explorer.jobs() if job.title == "planning B" and job.state == "running"]

    qtbot.waitUntil(lambda: bool(planning()), timeout=LONG)
    explorer.cancel(planning()[0])
    qtbot.waitUntil(lambda: settled(explorer), timeout=LONG)
    entry = explorer.store.state.entry("B")
    assert entry is not None
    assert entry.ending == "cancelled"
    assert stale_text(entry).startswith("<b>B was cancelled</b>, and what is shown here is of its earlier plan")
    assert "failed" not in describe_variant(explorer.store.state, "B")
    explorer.perform("rerun")
    qtbot.waitUntil(lambda: settled(explorer), timeout=LONG)
    entry = explorer.store.state.entry("B")
    assert entry is not None
    assert entry.ending == ""
