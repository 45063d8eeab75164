"""Passes of two plans give the next free id to unrelated instructions: what crosses variants goes by provenance.

In the sample, A's ``max.7.fusion`` and B's ``all-gather.partition-id`` have one id.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from pytestqt.qtbot import QtBot

from engine.hlo.reading import read_here
from engine.layout.outline import Side
from engine.layout.outlining import outline_of
from engine.session import edits
from engine.session.evaluation import Evaluator
from engine.session.matching import loaded_in, shown_in
from engine.session.plan import Plan, best_passes, plain_plan
from engine.session.session import TRANSIENT, Selection, Session
from engine.session.store import Store
from engine.session.variant import Variant
from tests.places import SAMPLES
from tests.views import synthetic
from tests.views.fake_host import FakeHost, host_of
from views.candidates.collectives import Collectives
from views.graph.selection import homed, picked_ids, selected_ids
from views.inspector.facts import candidate_of, selected_instruction
from views.inspector.inspector import Inspector
from views.timeline.hits import anchor_of
from views.timeline.overlay import Hit
from views.timeline.scene import rows_of
from views.timeline.table import TablePane

MODULE = read_here((SAMPLES / "mlp_fig3.hlo").read_bytes(), "mlp_fig3.hlo")
PLANS = (plain_plan(MODULE), Plan(best_passes(MODULE), "bottom-up"))
FUSED, GATHERED = "max.7.fusion", "all-gather.partition-id"


@pytest.fixture(scope="module")
def variants() -> tuple[Variant, Variant]:
    evaluator = Evaluator(MODULE)
    plain, best = (evaluator.evaluate(plan) for plan in PLANS)
    assert ids_of(plain, FUSED) == ids_of(best, GATHERED)
    return plain, best


@pytest.fixture
def host(variants: tuple[Variant, Variant]) -> FakeHost:
    return host_of(*variants)


def ids_of(variant: Variant, name: str) -> tuple[int, ...]:
    return (variant.program.module.by_name[name].id,)


def selecting(host: FakeHost, key: str, name: str, *, active: str = "") -> Session:
    """A's or B's instruction of that name, selected."""
    entry = host.store.state.entry(key)
    assert entry is not None
    assert entry.variant is not None
    state = edits.activated(host.store.state, active or key)
    host.store.become("Select", edits.selected(state, key, ids_of(entry.variant, name)))
    return host.store.state


@pytest.mark.parametrize("active", ["A", "B"])
def test_the_inspector_gives_no_verdict_about_another_variants_instruction(
    qtbot: QtBot, host: FakeHost, active: str
) -> None:
    pane = Inspector(host)
    qtbot.addWidget(pane)
    session = selecting(host, "A", FUSED, active=active)
    assert FUSED in pane.above.text().replace("\u200b", "")
    assert "Verdict" not in pane.above.text()
    assert pane.bars.isHidden()
    selecting(host, "B", GATHERED, active=active)
    assert "all-gather-einsum" in pane.above.text()
    found = selected_instruction(host.store.state)
    assert found is not None
    assert found[1].name == GATHERED
    candidate = candidate_of(session, found[0], found[1].id)
    assert candidate is not None
    assert candidate.id == "all-gather"


def test_collectives_follow_only_what_came_from_them(qtbot: QtBot, host: FakeHost) -> None:
    pane = Collectives(host)
    qtbot.addWidget(pane)
    selecting(host, "A", FUSED, active="B")
    assert not pane.picked()
    selecting(host, "B", GATHERED)
    assert [site.id for site in pane.picked()] == ["all-gather"]


def test_a_piece_of_an_einsum_is_of_its_own_collective_alone(qtbot: QtBot, host: FakeHost) -> None:
    """The first collective's index arithmetic says where the slices of all begin."""
    collectives = Collectives(host)
    qtbot.addWidget(collectives)
    session = selecting(host, "B", "dot.1.partial.fusion")
    second = MODULE.by_name["dot.1"].id
    assert loaded_in(session, "A") == {second}
    assert shown_in(session, "A") == {second}
    found = selected_instruction(session)
    assert found is not None
    candidate = candidate_of(session, found[0], found[1].id)
    assert candidate is not None
    assert candidate.id == "all-reduce"
    assert not collectives.picked()


def test_what_is_shown_elsewhere_came_from_the_same(host: FakeHost, variants: tuple[Variant, Variant]) -> None:
    session = selecting(host, "A", FUSED)
    plain, best = (variant.program.module for variant in variants)
    (fused,) = ids_of(variants[0], FUSED)
    origins = set(plain.origins_of(fused))
    assert loaded_in(session, "B") == origins
    there = shown_in(session, "B")
    assert there
    assert fused not in there
    assert all(origins & set(best.origins_of(id_)) for id_ in there)


def made_of_another(made: Variant) -> Variant:
    """With a ``dot.0.0`` that a pass made from the second layer's ``dot.1.0``."""
    module = replace(made.program.module, origins={2003: (2103,)})
    return replace(made, program=replace(made.program, module=module))


def test_a_click_on_another_variants_slice_of_that_id_counts(qtbot: QtBot) -> None:
    host = host_of(made_of_another(synthetic.variant(1)), synthetic.variant(1, overlap=True))
    best = host.store.state.entries[1].variant
    assert best is not None
    row, counterpart = (int(rows_of(best.timeline, (id_,))[0]) for id_ in (2003, 2103))
    session = edits.selected(host.store.state, "A", (2003,))
    assert anchor_of(session, Hit(1, row)) == anchor_of(session, None) == Hit(1, counterpart)
    assert anchor_of(session, Hit(1, counterpart)) == Hit(1, counterpart)
    table = TablePane(host)
    qtbot.addWidget(table)
    table.show()
    host.store.become("Select", session)
    table.view.selectRow(table.model.row_of(row))
    assert host.store.state.selection == Selection("B", (2003,))
    table.hide()


def test_a_graph_of_both_keeps_apart_what_has_one_id(host: FakeHost, variants: tuple[Variant, Variant]) -> None:
    plain, best = variants
    outline = outline_of(best.program.module, plain.program.module)
    (fused,) = (n for n in range(len(outline)) if (outline.names[n], outline.sides[n]) == (FUSED, Side.BEFORE))
    assert (GATHERED, Side.AFTER) in zip(outline.names, outline.sides, strict=True)
    number = int(outline.instruction[fused])
    assert homed(host.store.state, outline, (number,)) == ("A", ids_of(plain, FUSED))
    assert homed(host.store.state, outline, ids_of(best, GATHERED)) == ("B", ids_of(best, GATHERED))
    session = selecting(host, "A", FUSED, active="B")
    assert picked_ids(session, outline) == {number}
    assert ids_of(best, GATHERED)[0] not in selected_ids(session, outline)
    # As loaded, an instruction is the same one in both.
    dots = [n for n in range(len(outline)) if outline.names[n] == "all-reduce" and outline.instruction[n] >= 0]
    assert all(outline.sides[n] in (Side.BOTH, Side.BEFORE) for n in dots)
    assert {i.name for i in plain.program.module.instructions.values()} == {
        plain.program.module.instructions[old].name for old in outline.earlier.values()
    }


def test_a_graph_of_one_does_not_take_the_bases_ids_for_its_own(
    host: FakeHost, variants: tuple[Variant, Variant]
) -> None:
    outline = outline_of(variants[1].program.module)
    session = selecting(host, "A", FUSED, active="B")
    picked = picked_ids(session, outline)
    assert picked
    assert ids_of(variants[1], GATHERED)[0] not in picked
    session = selecting(host, "B", GATHERED)
    assert picked_ids(session, outline) == set(ids_of(variants[1], GATHERED))


def test_a_selection_survives_another_plan_by_what_it_came_from(
    host: FakeHost, variants: tuple[Variant, Variant]
) -> None:
    plain, best = variants
    session = selecting(host, "A", FUSED)
    session = edits.planned(session, "A", best.plan)
    session = edits.arrived(session, "A", best)
    assert session.entries[0].variant is best
    assert set(session.selection.instructions) == set(plain.program.module.origins_of(ids_of(plain, FUSED)[0]))
    again = edits.arrived(edits.planned(session, "A", plain.plan), "A", plain)
    assert ids_of(plain, FUSED)[0] in shown_in(again, "A")


def test_undo_brings_back_a_result_with_the_selection_by_what_it_came_from(
    host: FakeHost, variants: tuple[Variant, Variant]
) -> None:
    plain, best = variants
    store = Store(host.store.state, TRANSIENT, mended=edits.sound)
    store.become("Plan", edits.arrived(edits.planned(store.state, "A", best.plan), "A", best))
    store.become("Select", edits.selected(store.state, "A", ids_of(best, GATHERED)))
    store.undo()
    assert store.state.entries[0].variant is plain
    assert store.state.selection.instructions == best.program.module.origins_of(ids_of(best, GATHERED)[0])
    assert shown_in(store.state, "A") == set(store.state.selection.instructions)
    again = selected_instruction(store.state)
    assert again is not None
    assert again[1].name == "all-gather"


def test_what_passes_replaced_is_looked_for_as_loaded(host: FakeHost, variants: tuple[Variant, Variant]) -> None:
    """An id that the selection's own variant does not have is no other variant's, where a pass made that."""
    made = ids_of(variants[1], GATHERED)
    plain = variants[0].program
    without = replace(variants[0], program=replace(plain, graphs={}))
    session = edits.selected(host_of(without, variants[1]).store.state, "A", made)
    assert selected_instruction(session) is None
