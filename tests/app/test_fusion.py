"""The window says of a shipped training step which policy of fusion exposes its scatter's permutes."""

from __future__ import annotations

from pytestqt.qtbot import QtBot

from app.explorer import Explorer
from engine.session import edits
from engine.session.plan import Plan
from tests.app.waiting import LONG
from tests.places import SAMPLES
from views.fusion.pane import FusionPane

SAMPLE = SAMPLES / "mlp_fig2_train_16_large.hlo"
SITE = "force=all-reduce,forbid=all-gather;all-gather.1;all-reduce.1,chain=off,form=rolled,ring=one"


def show(qtbot: QtBot, explorer: Explorer, unroll: int, policy: str) -> FusionPane:
    """The Fusion tab of the site's loop."""
    store = explorer.store
    plan = Plan(f"decompose{{{SITE},unroll={unroll}}},async-permute,fuse{{policy={policy}}}", "bottom-up")
    store.become("Plan", edits.planned(store.state, store.state.active, plan))
    qtbot.waitUntil(lambda: not any(entry.pending for entry in store.state.entries), timeout=LONG)
    explorer.window.show_pane("Fusion")
    pane = explorer.window.findChild(FusionPane)
    assert isinstance(pane, FusionPane)
    return pane


def test_a_loop_of_one_chain_is_exposed_by_default_and_hidden_by_overlap_and_one_of_two_by_either(
    qtbot: QtBot, explorer: Explorer
) -> None:
    explorer.open(str(SAMPLE))
    qtbot.waitUntil(lambda: explorer.store.state.facts is not None, timeout=LONG)
    pane = show(qtbot, explorer, 1, "default")
    # 15 iterations wait for 187.4 µs each.
    assert " 1 of " in pane.text.text()
    assert "exposes transfers, 2.81 ms together" in pane.text.text()
    assert pane.table.item(0, 4).text() == "2.81 ms"  # type: ignore[union-attr]  # the table has a row
    pane.table.setCurrentCell(0, 0)
    qtbot.waitUntil(lambda: "2.81 ms of transfer exposed; leave " in pane.early.text(), timeout=LONG)
    assert pane.early.text().endswith("apart instead: 0 µs")
    for unroll, policy in ((1, "overlap"), (2, "default"), (2, "overlap")):
        pane = show(qtbot, explorer, unroll, policy)
        assert pane.text.text().endswith("decisions, none makes compute wait for a transfer it does not need."), (
            unroll,
            policy,
        )
