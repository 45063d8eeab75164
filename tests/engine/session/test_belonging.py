"""Files that belong to another module are refused by name, or doubted."""

from __future__ import annotations

import pytest

from engine.cost.costs import Origin
from engine.cost.imports import ImportedCosts
from engine.errors import InputError
from engine.hlo.reading import read_here
from engine.ir.module import Module
from engine.session.belonging import check_devices, cost_doubts, schedule_doubts

TEXT = """HloModule jit_step, num_partitions=4
ENTRY e {
  a = f32[8] parameter(0)
  ROOT b = f32[8] negate(a)
}
"""


@pytest.fixture(scope="module")
def module() -> Module:
    return read_here(TEXT.encode(), "step.hlo")


def costs(*names: str) -> ImportedCosts:
    return ImportedCosts("c.csv", Origin.TABLE, dict.fromkeys(names, 5))


def test_another_number_of_devices_is_refused_and_an_unknown_one_is_not(module: Module) -> None:
    with pytest.raises(InputError, match="jit_step on 4 devices was expected, but this one is of 8 devices"):
        check_devices(8, module, "s.txt", "a schedule")
    for devices in (0, 1, 4):
        check_devices(devices, module, "s.txt", "a schedule")


@pytest.mark.parametrize(("name", "said"), [("jit_step", 0), ("jit_step.3", 0), ("jit_other", 1), ("", 0)])
def test_a_module_of_another_name_is_doubted(module: Module, name: str, said: int) -> None:
    doubts = schedule_doubts(name, module, "s.txt", 9, 10)
    assert len(doubts) == said
    assert all("jit_other" in doubt and "jit_step" in doubt for doubt in doubts)


def test_a_schedule_of_which_little_is_found_is_doubted(module: Module) -> None:
    assert schedule_doubts("jit_step", module, "s.txt", 1, 40)
    assert not schedule_doubts("jit_step", module, "s.txt", 0, 0)


def test_costs_count_where_any_variant_has_their_names(module: Module) -> None:
    with pytest.raises(InputError, match=r"none of its 4 names is there \(w, x, y …\)"):
        cost_doubts(costs("w", "x", "y", "z"), 0, (), module, "c.csv")
    assert not cost_doubts(costs("w", "x", "y", "z"), 0, (frozenset({"x"}),), module, "c.csv")
    assert cost_doubts(costs("b", *"stuvwxyz"), 0, (), module, "c.csv")
    assert not cost_doubts(costs("b"), 4, (), module, "c.csv")
