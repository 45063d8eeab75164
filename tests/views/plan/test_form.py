"""The form of all options: what it shows is what the plan has, and what it says is what the plan becomes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QComboBox, QLineEdit
from pytestqt.qtbot import QtBot

from engine import options
from engine.chips.budget import Budget
from engine.passes.pipeline import PASSES, Pipeline
from engine.schedule.registry import SCHEDULERS
from engine.session.plan import AS_LOADED, Plan
from tests.views.fake_host import FakeHost, host_of
from tests.views.synthetic import variant
from views.plan.form import PlanForm

PLAN = Plan(
    "decompose{unroll=2,force=all-gather.1;all-gather.2},fuse{policy=none}", "improve{seconds=3.0}", Budget(3), 1 << 30
)


@pytest.fixture
def host() -> FakeHost:
    return host_of(variant(1, plan=AS_LOADED), variant(1, plan=PLAN, name="tuned"))


@pytest.fixture
def form(qtbot: QtBot, host: FakeHost) -> Iterator[PlanForm]:
    made = PlanForm(host)
    made.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose, on=False)
    qtbot.addWidget(made)
    made.show()
    qtbot.waitExposed(made)
    yield made
    made.close()


def control(form: PlanForm, part: str, option: str) -> QComboBox | QLineEdit:
    box = {**form.passes, **form.schedulers}[part]
    return next(c for c in box.controls() if c.accessibleName() == f"{option} of {part}")


def test_it_shows_the_active_plan_and_gives_it_back(form: PlanForm) -> None:
    assert form.plan() == PLAN
    assert form.passes["decompose"].isChecked()
    assert not form.passes["async-permute"].isChecked()
    assert form.said.text() == f"{PLAN.passes} · {PLAN.scheduler}"


def test_every_option_of_every_part_has_a_control(form: PlanForm) -> None:
    for registry, boxes in ((PASSES, form.passes), (SCHEDULERS, form.schedulers)):
        for name in registry.names():
            wanted = [f"{field.name} of {name}" for field in options.fields_of(registry.load(name))]
            assert [c.accessibleName() for c in boxes[name].controls()] == wanted


def test_a_variant_is_added_as_one_step(form: PlanForm, host: FakeHost) -> None:
    ring = control(form, "decompose", "ring")
    assert isinstance(ring, QComboBox)
    ring.setCurrentText("one")
    form.scheduler.setCurrentText("bottom-up")
    form.name.setText("one ring")
    QTest.mouseClick(form.add, Qt.MouseButton.LeftButton)
    made = host.store.state.entries[-1]
    assert (made.key, made.name, made.plan.scheduler) == ("C", "one ring", "bottom-up")
    assert "ring=one" in made.plan.passes
    assert str(Pipeline.parse(made.plan.passes)) == made.plan.passes
    assert host.store.state.active == "C"
    host.store.undo()
    assert len(host.store.state.entries) == 2


def test_the_active_variant_is_changed_where_that_is_asked(form: PlanForm, host: FakeHost) -> None:
    form.passes["fuse"].setChecked(False)
    form.budget.setText("permute=4,total=5")
    QTest.mouseClick(form.change, Qt.MouseButton.LeftButton)
    entry = host.store.state.entry("B")
    assert entry is not None
    assert "fuse" not in entry.plan.passes
    assert entry.plan.budget == Budget.parse("permute=4,total=5")


@pytest.mark.parametrize("wrong", ["0", "permute=x", "lots"])
def test_what_is_wrong_is_said_in_its_place_and_nothing_can_be_added(form: PlanForm, wrong: str) -> None:
    form.budget.setText(wrong)
    assert not form.add.isEnabled()
    assert not form.change.isEnabled()
    assert "budget" in form.said.text() or "limit" in form.said.text()
    form.budget.setText("4")
    assert form.add.isEnabled()


def test_only_the_options_of_the_chosen_scheduler_are_shown(form: PlanForm) -> None:
    assert form.schedulers["improve"].isVisible()
    form.scheduler.setCurrentText("exact")
    assert form.schedulers["exact"].isVisible()
    assert not form.schedulers["improve"].isVisible()
