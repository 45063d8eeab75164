"""The Fusion tab's inside, its sentences about early transfers, and its two timelines, on a module with a fusion."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from PySide6.QtCore import QEvent
from PySide6.QtGui import QPalette
from PySide6.QtWidgets import QApplication, QPushButton, QRadioButton
from pytestqt.qtbot import QtBot

from engine.hlo.hlo_pb2 import HloComputationProto, HloInstructionProto, HloModuleProto
from engine.ir.module import Module
from engine.layout.outline import Look
from engine.passes.fusion import Alternative, Fusion
from engine.quantities import time_text
from engine.session import edits
from engine.session.plan import AS_LOADED, Plan
from engine.session.variant import Variant
from tests.views.fake_host import FakeHost, host_of
from tests.views.synthetic import around, module_of, timeline_of, variant
from views.fusion.diagram import described
from views.fusion.early import early_dones, early_of
from views.fusion.harm import caused, fusion_rows, taken, waited_by_name
from views.fusion.inside import LATE, MOST, inside_of
from views.fusion.pane import FusionPane
from views.fusion.strips import place_of
from views.fusion.words import gain_of
from views.inspector.inspector import Inspector

PLAN = Plan("decompose,async-permute,fuse", "bottom-up")
APART = Alternative("leave dot.1.0 apart", "apart", "dot.1.0")
DONE = "all-gather-done.1.0"
FUSION = Fusion("dot.1.0", 2103, ("dot.1.0", "add.inner"), "kOutput", "dot.1.0", (DONE,), (DONE,), 1 << 20, (APART,))
"""The synthetic module's second layer: its einsum as a fusion of an einsum and an addition."""


def fused(members: int = 1) -> Variant:
    """The synthetic variant with one dot made a fusion that holds a dot and some additions."""
    plain = module_of(6)
    proto = HloModuleProto()
    proto.CopyFrom(plain.proto)
    entry = next(c for c in proto.computations if c.id == proto.entry_computation_id)
    dot = next(i for i in entry.instructions if i.id == FUSION.instruction)
    dot.opcode, dot.fusion_kind = "fusion", "kOutput"
    dot.called_computation_ids.append(50)
    inner = HloComputationProto(id=50, name="fused")
    for number, (name, opcode, operands) in enumerate(
        (
            ("a", "parameter", ()),
            ("b", "parameter", ()),
            ("dot.1.0", "dot", (500, 500)),
            *((f"add.{n}", "add", (502 + n, 501)) for n in range(members)),
        )
    ):
        made = HloInstructionProto(id=500 + number, name=name, opcode=opcode, parameter_number=number)
        made.operand_ids.extend(operands)
        made.shape.CopyFrom(dot.shape)
        inner.instructions.append(made)
    inner.root_id = 502 + members
    proto.computations.insert(0, inner)
    module = Module(proto, plain.header, source=plain.source)
    timeline, exposed = timeline_of(module, 1, 6, overlap=False, loop=True)
    return replace(around(module, timeline, exposed, plan=PLAN), fusions=(FUSION,))


def better() -> Variant:
    """The same without waiting for anything."""
    return variant(1, overlap=True, plan=taken(PLAN, APART))


@pytest.fixture
def host() -> FakeHost:
    return host_of(variant(1, plan=AS_LOADED), fused())


@pytest.fixture
def pane(qtbot: QtBot, host: FakeHost) -> FusionPane:
    made = FusionPane(host)
    qtbot.addWidget(made)
    made.resize(1200, 700)
    made.show()
    qtbot.waitExposed(made)
    made.table.setCurrentCell(-1, -1)
    made.table.setCurrentCell(0, 0)
    return made


class TestInside:
    def test_members_operands_and_what_arrives_late(self) -> None:
        found = inside_of(fused(), FUSION)
        assert found is not None
        number = dict(zip(found.outline.names, found.number.tolist(), strict=True))
        assert number["dot.1.0"] == Look.EINSUM
        assert number["add.0"] == Look.ELEMENTWISE
        assert number[DONE] == LATE
        assert number["add.0.1"] == Look.SILENT
        assert found.outline.names[found.einsum] == "dot.1.0"
        assert {found.outline.names[n] for n in found.outside} == {DONE, "add.0.1"}
        assert DONE in described(found)

    def test_edges_lead_from_outside_to_what_reads_it(self) -> None:
        found = inside_of(fused(), FUSION)
        assert found is not None
        names, items = found.outline.names, found.picture.items
        edges = {
            (names[items[a]], names[items[b]])
            for a, b in zip(found.picture.source.tolist(), found.picture.target.tolist(), strict=True)
        }
        assert edges == {("add.0.1", "dot.1.0"), ("dot.1.0", "add.0"), (DONE, "add.0")}

    def test_a_done_that_the_einsum_needs_is_not_late(self) -> None:
        found = inside_of(fused(), replace(FUSION, foreign=()))
        assert found is not None
        assert found.number[found.outline.names.index(DONE)] == Look.PERMUTE

    def test_an_indirect_done_is_drawn_above_the_operand_that_comes_from_it(self) -> None:
        far = replace(FUSION, waits_for=("all-gather-done.0.1",), foreign=("all-gather-done.0.1",))
        found = inside_of(fused(), far)
        assert found is not None
        names, picture = found.outline.names, found.picture
        edges = {
            (names[picture.items[a]], names[picture.items[b]])
            for a, b in zip(picture.source.tolist(), picture.target.tolist(), strict=True)
        }
        assert ("all-gather-done.0.1", "add.0.1") in edges

    def test_an_einsum_left_apart_and_a_large_fusion(self) -> None:
        apart = replace(FUSION, kind="", members=("dot.1.0",))
        found = inside_of(variant(1, plan=PLAN), apart)
        assert found is not None
        assert len(found.outside) == 2
        assert inside_of(fused(MOST + 1), FUSION) is None
        assert inside_of(fused(), replace(FUSION, instruction=77)) is None


class TestEarly:
    def test_the_sentence_names_the_best_of_what_was_tried(self) -> None:
        now, then = fused(), better()
        (early,) = early_dones(now, FUSION)
        assert early.exposed == waited_by_name(now)[DONE]
        assert early.said().startswith(f"{DONE}: dot.1.0 waits for it too early, ")
        left = waited_by_name(then).get(DONE, 0)
        assert left < early.exposed
        assert early.said(((APART, then),)).endswith(f"; leave dot.1.0 apart instead: {time_text(left)}")
        assert early.said(((APART, now),)).endswith("to leave dot.1.0 apart does not change that")

    def test_a_transfer_that_something_else_reads_first_is_not_held_against_a_fusion(self) -> None:
        made = fused()
        assert caused(made, FUSION) == (DONE,)
        assert fusion_rows(made)[0].exposed == waited_by_name(made)[DONE]
        later = replace(FUSION, instruction=2104)
        assert caused(made, later) == ()
        assert early_dones(made, later) == ()
        assert fusion_rows(replace(made, fusions=(later,)))[0].exposed == 0

    def test_it_is_found_by_the_start_as_by_the_done(self) -> None:
        made = fused()
        for instruction in (2101, 2102):
            assert [early.done for early in early_of(made, instruction)] == [DONE]
        assert not list(early_of(made, 2001))
        assert not list(early_of(made, -1))

    def test_gains_have_sign_and_unit(self) -> None:
        now, then = fused().metrics, better().metrics
        gain = gain_of(then, now)
        assert gain.time.startswith("−")
        assert gain.time in gain.in_words
        assert gain_of(None, now).in_words == "not predicted yet"
        assert gain_of("no such einsum", now).in_words == "no such einsum"


class TestPane:
    def test_the_best_alternative_is_compared_when_all_are_measured(self, host: FakeHost, pane: FusionPane) -> None:
        entry = host.store.state.active_entry
        assert entry is not None
        assert entry.variant is not None
        assert pane.diagram.isVisible()
        assert not pane.strips.isVisible()
        asked, then = entry.asking(taken(entry.plan, APART)), better()
        host.variants[asked] = then
        host.learn(asked, then.metrics)
        assert host.evaluating == [asked]
        assert pane.strips.isVisible()
        assert "exposed" in pane.figures.text()
        radio, take = (pane.choices.itemAtPosition(0, n) for n in (0, 2))
        assert radio is not None
        assert take is not None
        compared, button = radio.widget(), take.widget()
        assert isinstance(compared, QRadioButton)
        assert isinstance(button, QPushButton)
        assert button.text().startswith("Take −")
        assert "predicted makespan −" in button.toolTip()
        pane.close()

    def test_the_decision_is_at_one_pixel_in_both_timelines(self, host: FakeHost, pane: FusionPane) -> None:
        now, then = fused(), better()
        pane.strips.compare(FUSION, now, then, APART.what)
        windows = [(strip, pane.strips.window_of(strip)) for strip in pane.strips.strips]
        places = [window.x_of(strip.place) for strip, window in windows]
        assert all(abs(a - b) < 0.01 for a, b in pairwise(places))
        assert place_of(now, FUSION) != place_of(then, FUSION)
        assert windows[0][1].span == windows[1][1].span
        assert not pane.strips.grab().isNull()
        pane.close()

    def test_a_result_that_comes_after_another_pick_is_not_shown(self, host: FakeHost, pane: FusionPane) -> None:
        entry = host.store.state.active_entry
        assert entry is not None
        pane.preview(APART)
        assert pane.figures.text().startswith("trying")
        pane.table.setCurrentCell(-1, -1)
        assert not pane.strips.isVisible()
        assert not pane.figures.text()
        assert not pane.diagram.isVisible()
        pane.close()

    def test_a_narrow_pane_keeps_what_is_exposed_in_sight(self, pane: FusionPane) -> None:
        assert not pane.table.isColumnHidden(1)
        for width, hidden in ((700, {3}), (500, {1, 2, 3})):
            pane.resize(width, 500)
            QApplication.processEvents()
            assert {n for n in range(6) if pane.table.isColumnHidden(n)} == hidden
            assert pane.table.horizontalScrollBar().maximum() == 0
        pane.close()

    def test_it_is_drawn_again_in_other_colours(self, host: FakeHost, pane: FusionPane) -> None:
        before = len(pane.diagram.scene().items())
        QApplication.sendEvent(pane, QEvent(QEvent.Type.PaletteChange))
        assert len(pane.diagram.scene().items()) == before == 2
        pane.setPalette(QPalette())
        assert not pane.diagram.grab().isNull()
        pane.close()


class TestInspector:
    def test_a_done_says_which_fusion_makes_it_early_and_what_helps(self, qtbot: QtBot, host: FakeHost) -> None:
        entry = host.store.state.active_entry
        assert entry is not None
        inspector = Inspector(host)
        qtbot.addWidget(inspector)
        host.store.become("Select", edits.selected(host.store.state, entry.key, (2102,)))
        assert f"{DONE}: dot.1.0 waits for it too early" in inspector.below.text()
        asked, then = entry.asking(taken(entry.plan, APART)), better()
        host.variants[asked] = then
        inspector.below.linkActivated.emit("try:2102")
        left = time_text(waited_by_name(then).get(DONE, 0))
        assert f"leave dot.1.0 apart instead: {left}" in inspector.below.text()
        assert "try:2102" not in inspector.below.text()
        host.store.become("Select", edits.selected(host.store.state, entry.key, (2001,)))
        assert "too early" not in inspector.below.text()
