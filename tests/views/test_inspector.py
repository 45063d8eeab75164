"""Why an instruction is where it is: at once in small programs, by a job in larger ones, on demand in the largest."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtGui import QTextDocument
from pytestqt.qtbot import QtBot

from engine.session import edits
from engine.session.plan import AS_LOADED, BEST_PASSES, Plan
from tests.views.fake_host import FakeHost, host_of
from tests.views.synthetic import variant
from views.inspector import inspector as module
from views.inspector.inspector import Inspector

FIRST, SECOND = 2001, 2103


@pytest.fixture
def host() -> FakeHost:
    return host_of(variant(1, plan=AS_LOADED), variant(1, plan=Plan(BEST_PASSES)))


def select(host: FakeHost, instruction: int) -> None:
    host.store.become("Select", edits.selected(host.store.state, "B", (instruction,)))


def test_small_programs_are_explained_at_once(qtbot: QtBot, host: FakeHost) -> None:
    inspector = Inspector(host)
    qtbot.addWidget(inspector)
    select(host, FIRST)
    assert "is number" in inspector.below.text()
    assert not host.explaining


def test_a_job_explains_larger_ones_and_what_it_said_is_kept(
    qtbot: QtBot, host: FakeHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "AT_ONCE", 0)
    inspector = Inspector(host)
    qtbot.addWidget(inspector)
    select(host, FIRST)
    assert "Explaining …" in inspector.below.text()
    select(host, SECOND)
    (key, first, late), (_, second, arrived) = host.explaining
    assert (key, first, second) == ("B", FIRST, SECOND)
    late("")  # given up for the second one
    assert "Explaining …" in inspector.below.text()
    arrived(("because <it> had to be",))
    assert "because &lt;it&gt; had to be" in inspector.below.text()
    select(host, FIRST)
    select(host, SECOND)
    assert "because &lt;it&gt; had to be" in inspector.below.text()
    assert [instruction for _, instruction, _ in host.explaining] == [FIRST, SECOND, FIRST]
    host.explaining[-1][2]("no such luck")
    select(host, FIRST)
    assert "no such luck" in inspector.below.text()


def test_the_largest_wait_to_be_asked(qtbot: QtBot, host: FakeHost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "AT_ONCE", 0)
    monkeypatch.setattr(module, "UNASKED", 0)
    inspector = Inspector(host)
    qtbot.addWidget(inspector)
    select(host, FIRST)
    assert f"explain:{FIRST}" in inspector.below.text()
    assert not host.explaining
    inspector.below.linkActivated.emit(f"explain:{FIRST}")
    assert "Explaining …" in inspector.below.text()
    host.explaining[0][2]("")  # cancelled: it can be asked for again
    select(host, SECOND)
    select(host, FIRST)
    assert f"explain:{FIRST}" in inspector.below.text()


@pytest.mark.parametrize(
    "name", ["a" * 120, "jit_train_step__very_long" * 5, "all-gather.fusion.remat" * 6, "/mnt/x.y" * 20]
)
def test_long_names_go_on_in_the_next_line(qtbot: QtBot, name: str) -> None:
    host = host_of(replace(variant(1, name=name), notes=(f"<{name}> is taken for one of them",)))
    inspector = Inspector(host)
    qtbot.addWidget(inspector)
    label = inspector.above if inspector.above.text() else inspector.below
    assert name in label.text().replace("\u200b", "")
    document = QTextDocument()
    document.setHtml(label.text())
    document.setTextWidth(260)
    assert document.size().width() <= 261
