"""Exported modules are read again as what they were."""

from __future__ import annotations

import numpy as np
import pytest

from engine.chips.budget import Budget
from engine.export.hlo import Format, export_bytes, with_schedule
from engine.hlo.printing import print_here
from engine.hlo.reading import read_here
from engine.hlo.verifying import problems
from engine.ir.graphs import graphs_of
from engine.schedule.problem import Order, Schedule
from tests.engine.hlo.texts import GATHER, LOOP, SCHEDULED


@pytest.mark.parametrize("to", ["hlo", "pb", "stablehlo"])
@pytest.mark.parametrize("text", [GATHER, LOOP], ids=["gather", "loop"])
def test_every_format_is_read_again(text: str, to: Format) -> None:
    module = read_here(text.encode())
    again = read_here(export_bytes(module, to))
    assert again.header.num_partitions == 4
    assert bool(again.notes) == (to == "pb")  # which has no place for the count: it is inferred
    opcodes = sorted(i.opcode for i in module.instructions.values())
    if to == "stablehlo":  # a while's values are a tuple only in HLO
        opcodes = [o for o in opcodes if o not in ("tuple", "get-tuple-element")]
        assert [o for o in sorted(i.opcode for i in again.instructions.values()) if "tuple" not in o] == opcodes
    else:
        assert sorted(i.opcode for i in again.instructions.values()) == opcodes


def test_text_keeps_the_header() -> None:
    module = read_here(GATHER.encode())
    assert export_bytes(module, "hlo").decode() == print_here(module)


@pytest.mark.parametrize("text", [GATHER, LOOP, SCHEDULED], ids=["gather", "loop", "scheduled"])
def test_an_order_becomes_the_modules_own(text: str) -> None:
    module = read_here(text.encode())
    rng = np.random.default_rng(0)
    orders = {}
    for id_, graph in graphs_of(module).items():
        left, order = set(range(len(graph))), list[int]()
        while left:
            ready = [n for n in left if not left.intersection(graph.predecessors.of(n).tolist())]
            order.append(int(rng.choice(ready)))
            left.remove(order[-1])
        orders[id_] = Order(np.array(order))
    schedule = Schedule("random", Budget(), orders)
    scheduled = with_schedule(module, schedule)
    assert list(problems(scheduled.proto)) == []
    again = read_here(export_bytes(module, "hlo", schedule))
    assert again.is_scheduled
    for graph in graphs_of(again).values():
        assert graph.order is not None
        before = next(g for g in graphs_of(module).values() if g.name == graph.name)
        names = [before.names[n] for n in orders[before.computation].nodes]
        assert [graph.names[n] for n in graph.order] == names
    assert not module.is_scheduled or text == SCHEDULED
