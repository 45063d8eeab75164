"""Bytes live over time, and who holds them at the worst moment."""

from __future__ import annotations

import random

import numpy as np
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from engine.chips.budget import Budget
from engine.chips.inference import machine_for
from engine.chips.library import load_chip
from engine.cost.program import Program
from engine.hlo.hlo_pb2 import HloModuleProto
from engine.ir.module import Header, Module
from engine.schedule.problem import Order, Schedule
from engine.simulate.memory import live_bytes, peak_of
from engine.simulate.run import ComputationRun
from engine.simulate.simulator import simulate
from tests.engine.simulate.synthetic import Sketch, assemble, draw_program

MACHINE = machine_for(Module(HloModuleProto(name="none"), Header(num_partitions=8)), load_chip("tpu-v4"))
UNSHRUNK = (Phase.explicit, Phase.reuse, Phase.generate)
"""Programs drawn from random numbers do not become simpler by making the numbers smaller."""


def entry_run(program: Program) -> ComputationRun:
    orders = {k: Order(np.arange(len(graph))) for k, graph in program.graphs.items()}
    simulation = simulate(program, Schedule("as-loaded", Budget(), orders))
    return simulation.runs[program.module.proto.entry_computation_id]


def diamond() -> Program:
    """A parameter of 100 bytes, two readers of it that leave 10 and 20, and their sum of 5."""
    sketch = Sketch()
    parameter = sketch.parameter(100)
    one = sketch.compute(1, parameter, size=10)
    two = sketch.compute(1, parameter, size=20)
    sketch.compute(1, one, two, size=5)
    return assemble([sketch], MACHINE)


def test_a_buffer_lives_from_its_definition_to_its_last_reader() -> None:
    program = diamond()
    assert live_bytes(program.buffers[0], np.arange(4)).tolist() == [100, 110, 130, 135]


def test_the_order_decides() -> None:
    program = diamond()
    place = np.array([0, 2, 1, 3])
    assert live_bytes(program.buffers[0], place).tolist() == [100, 120, 130, 135]


def test_the_peak_names_its_buffers_largest_first() -> None:
    peak = peak_of(diamond(), entry_run(diamond()))
    assert peak.size == 135
    assert peak.at == (4,)
    assert [(holder.instruction, holder.size, holder.last) for holder in peak.holders] == [
        (1, 100, 4),
        (3, 20, 4),
        (2, 10, 4),
        (4, 5, 4),
    ]


def test_the_peak_may_be_inside_a_callee() -> None:
    callee, entry = Sketch(), Sketch()
    callee.compute(1, callee.compute(1, callee.parameter(100), size=50))
    entry.call(0, entry.parameter(100))
    program = assemble([callee, entry], MACHINE)
    peak = peak_of(program, entry_run(program))
    assert peak.size == 150
    assert peak.at == (5, 2)
    assert [(holder.computation, holder.size) for holder in peak.holders] == [(1, 100), (0, 50)]


def test_a_loop_of_no_trips_needs_nothing_for_its_body() -> None:
    condition, body, entry = Sketch(), Sketch(), Sketch()
    condition.compute(1)
    body.compute(1, size=1000)
    entry.loop(1, 0, 0, entry.parameter(10))
    assert entry_run(assemble([condition, body, entry], MACHINE)).peak == 10


@given(st.randoms(use_true_random=False))
@settings(max_examples=100, phases=UNSHRUNK)
def test_holders_add_up_to_the_peak_of_the_run(random_: random.Random) -> None:
    program = draw_program(random_, MACHINE)
    run = entry_run(program)
    peak = peak_of(program, run)
    assert peak.size == run.peak
    assert sum(holder.size for holder in peak.holders) == peak.size
