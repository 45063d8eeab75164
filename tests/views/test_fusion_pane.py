from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtWidgets import QLabel, QPushButton
from pytestqt.qtbot import QtBot

from engine.passes.fusion import Alternative, Fusion
from engine.session.plan import AS_LOADED
from engine.timeline.timeline import Metrics
from tests.views.fake_host import FakeHost, active_plan, host_of
from tests.views.synthetic import BEST, variant
from views.fusion.harm import fusion_rows, taken
from views.fusion.pane import FusionPane, counted_harm

WAITS = "makes compute wait for a transfer it does not need."


def metrics(makespan: int, memory: int = 10**9) -> Metrics:
    return replace(variant(1).metrics, makespan=makespan, peak_memory=memory)


class TestFusion:
    def test_decisions_come_by_harm_and_an_alternative_can_be_taken(self, qtbot: QtBot) -> None:
        apart = Alternative("leave dot.1.0 apart", "apart", "dot.1.0")
        done = ("all-gather-done.1.0",)
        made = variant(1, plan=replace(BEST, passes=f"{BEST.passes},fuse"))
        fusions = (
            Fusion("add.0.0", 2004, ("add.0.0",), "kLoop", "", (), (), 1 << 20),
            Fusion("add.1.0", 2103, ("dot.1.0", "add.1.0"), "kOutput", "dot.1.0", done, done, 1 << 20, (apart,)),
        )
        host = host_of(variant(1, plan=AS_LOADED), replace(made, fusions=fusions))
        pane = FusionPane(host)
        qtbot.addWidget(pane)
        pane.show()
        qtbot.waitExposed(pane)
        assert [row.fusion.name for row in fusion_rows(replace(made, fusions=fusions))] == ["add.1.0", "add.0.0"]
        assert "1 of 2 decisions exposes transfers" in pane.text.text()
        pane.table.setCurrentCell(1, 0)
        pane.table.setCurrentCell(0, 0)
        plan = host.wanted[-1].plan
        assert plan.passes.endswith("fuse{apart=dot.1.0}")
        host.learn(host.wanted[-1], metrics(10))
        gain = pane.choices.itemAtPosition(0, 1)
        assert gain is not None
        label = gain.widget()
        assert isinstance(label, QLabel)
        assert label.text().startswith("−")
        button = pane.choices.itemAtPosition(0, 2)
        assert button is not None
        take = button.widget()
        assert isinstance(take, QPushButton)
        take.click()
        assert active_plan(host) == plan
        assert host.store.undo_label == "Leave dot.1.0 apart"
        assert taken(plan, apart) == plan
        pane.close()

    def test_it_says_when_nothing_is_fused(self, qtbot: QtBot, host: FakeHost) -> None:
        pane = FusionPane(host)
        qtbot.addWidget(pane)
        assert "fuses nothing" in pane.text.text()


@pytest.mark.parametrize(
    ("exposed", "said"),
    [
        ([0], "1 decision, it makes no compute wait for a transfer it does not need."),
        (
            [0] * 301,
            "301 decisions, none makes compute wait for a transfer it does not need. The first 300 are listed.",
        ),
        ([2_000_000, 0], "1 of 2 decisions exposes transfers, 2.00 µs together."),
        (
            [1_000_000] * 2 + [0] * 299,
            "2 of 301 decisions expose transfers, 2.00 µs together. The 300 worst are listed.",
        ),
    ],
)
def test_decisions_are_counted_in_words(exposed: list[int], said: str) -> None:
    assert counted_harm(exposed) == said
