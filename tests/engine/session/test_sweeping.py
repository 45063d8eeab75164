"""Sweeps: how ranges are written, and that what they vary is what changes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.chips.budget import Budget
from engine.chips.chip import DomainLinks, TorusLinks
from engine.chips.library import load_chip
from engine.cost.costs import Origin
from engine.cost.imports import ImportedCosts
from engine.errors import UsageError
from engine.hlo.reading import read_bytes, read_here
from engine.ir.module import Module
from engine.session.plan import BEST_PASSES, MachineSpec, Plan
from engine.session.sweeping import Quantity, Range, Row, knee, sweep, sweep_partitions, with_bandwidth
from tests.places import SAMPLES

PLAN = Plan(BEST_PASSES, "bottom-up")
FORCED = Plan("decompose{gate=off},async-permute", "bottom-up")
SPEC = MachineSpec("tpu-v4")


def sample(name: str) -> Module:
    path = str(SAMPLES / name)
    return read_here(read_bytes(path), path)


@pytest.fixture(scope="module")
def module() -> Module:
    return sample("mlp_fig2.hlo")


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("budget=1..4", ("1", "2", "3", "4")),
        ("budget=3", ("3",)),
        ("budget=1,8", ("1", "8")),
        ("link-bandwidth=0.25..4", ("0.25", "0.5", "1", "2", "4")),
        ("link-bandwidth=1..3", ("1", "2", "3")),
        ("link-bandwidth=0.5, 1", ("0.5", "1")),
        (" unroll = 1,2", ("1", "2")),
        ("unroll=1..2", ("1", "2")),
        ("ring=one,both", ("one", "both")),
    ],
)
def test_ranges_as_they_are_written(text: str, values: tuple[str, ...]) -> None:
    found = Range.parse(text)
    assert found.values == values
    assert Range.parse(str(found)) == found


@pytest.mark.parametrize(
    "text",
    [
        "",
        "budget",
        "depth=1..4",
        "budget=0..4",
        "budget=4..1",
        "budget=a..b",
        "link-bandwidth=0..4",
        "link-bandwidth=4..1",
        "link-bandwidth=fast",
        "link-bandwidth=1..2..3",
        "ring=two",
        "unroll=3",
        "partitions=2",
    ],
)
def test_ranges_that_are_refused(text: str) -> None:
    with pytest.raises(UsageError):
        Range.parse(text)


def test_an_unknown_quantity_names_all_there_are() -> None:
    with pytest.raises(UsageError) as caught:
        Range.parse("depth=1..4")
    assert all(quantity in str(caught.value) for quantity in Quantity)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("budget=1..100000000", "100,000,000"),
        ("budget=" + ",".join(["1"] * 300), "300"),
        ("ring=" + "one," * 299 + "both", "300"),
    ],
)
def test_more_points_than_anybody_reads_are_refused(text: str, count: str) -> None:
    with pytest.raises(UsageError, match=f"at most 256 points, but '.*' has {count}:"):
        Range.parse(text)
    assert len(Range.parse("budget=1..256").values) == 256


def test_a_larger_budget_never_holds_less_in_flight_than_is_useful(module: Module) -> None:
    rows = sweep(module, SPEC, FORCED, Range.parse("budget=1..3"))
    assert [row.value for row in rows] == ["1", "2", "3"]
    for budget, row in enumerate(rows, start=1):
        assert row.metrics is not None
        assert row.metrics.max_in_flight <= budget
        assert row.base == rows[0].base


def test_a_swept_budget_keeps_the_limits_by_kind_of_the_plan_and_else_of_the_chip(module: Module) -> None:
    over = Range.parse("budget=3")
    assert sweep(module, SPEC, FORCED, over)[0].budget == "permute=4,gather=2,total=3"
    by_kind = replace(FORCED, budget=Budget.parse("permute=1"))
    assert sweep(module, SPEC, by_kind, over)[0].budget == "permute=1,total=3"
    assert sweep(module, SPEC, by_kind, Range.parse("budget=unlimited"))[0].budget == "unlimited"


def test_faster_links_are_not_slower(module: Module) -> None:
    rows = sweep(module, SPEC, replace(PLAN, passes=""), Range.parse("link-bandwidth=0.25..4"))
    makespans = [row.base.makespan for row in rows]
    assert makespans == sorted(makespans, reverse=True)
    assert makespans[0] > makespans[-1]


def test_ring_and_unroll_change_the_plan(module: Module) -> None:
    rolled = replace(FORCED, passes="decompose{gate=off,form=rolled,ring=one},async-permute")
    for text, plan in (("ring=one,both", FORCED), ("unroll=1,2", rolled)):
        rows = sweep(module, SPEC, plan, Range.parse(text))
        assert all(row.metrics and row.gain > 0 for row in rows)
        assert rows[0].metrics != rows[1].metrics


def test_what_the_plan_does_not_do_cannot_be_swept(module: Module) -> None:
    with pytest.raises(UsageError, match="not in the plan"):
        sweep(module, SPEC, Plan("", "memory"), Range.parse("ring=one,both"))
    with pytest.raises(UsageError, match="one file for each"):
        sweep(module, SPEC, PLAN, Range(Quantity.PARTITIONS, ("2",)))


def test_what_is_not_priced_as_the_module_as_loaded_is_told(module: Module) -> None:
    gather = next(i.name for i in module.instructions.values() if i.opcode == "all-gather")
    given = (ImportedCosts("c.csv", Origin.TABLE, {gather: 10**9}),)
    (row,) = sweep(module, SPEC, FORCED, Range.parse("budget=2"), given)
    assert row.unlike == (gather,)
    (alike,) = sweep(module, SPEC, FORCED, Range.parse("budget=2"))
    assert alike.unlike == ()


def test_partitions_take_one_module_each() -> None:
    modules = [sample("mlp_fig2_train_4_f32.hlo"), sample("mlp_fig2_train_8_bf16.hlo")]
    assert [row.value for row in sweep_partitions(modules, SPEC, [PLAN, PLAN])] == ["4", "8"]


def test_the_knee_is_the_smallest_that_is_good_enough(module: Module) -> None:
    (row,) = sweep(module, SPEC, FORCED, Range.parse("budget=2"))
    assert row.metrics is not None

    def taking(makespan: int) -> Row:
        assert row.metrics is not None
        return replace(row, value=str(makespan), metrics=replace(row.metrics, makespan=makespan))

    rows = [Row("none", None, row.base, "no order fits"), taking(2000), taking(1005), taking(1000), taking(1001)]
    found = knee(rows)
    assert found is not None
    assert found.value == "1005"
    assert knee([]) is None
    assert rows[0].gain == 0.0


@pytest.mark.parametrize("name", ["tpu-v4", "h100"])
def test_bandwidth_scales_every_link(name: str) -> None:
    chip = load_chip(name)
    fast = with_bandwidth(chip, 2.0)
    assert fast.network.link.usable == 2 * chip.network.link.usable
    if isinstance(chip.network, DomainLinks) and isinstance(fast.network, DomainLinks):
        assert fast.network.network.nominal == 2 * chip.network.network.nominal
    else:
        assert isinstance(fast.network, TorusLinks)
