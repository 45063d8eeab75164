"""What a simulated program does, on programs small enough to know the answer."""

from __future__ import annotations

import numpy as np
import pytest

from engine.chips.budget import Budget
from engine.chips.inference import machine_for
from engine.chips.library import load_chip
from engine.chips.machine import Machine
from engine.cost.program import Program
from engine.hlo.hlo_pb2 import HloModuleProto
from engine.ir.module import Header, Module
from engine.schedule.problem import Order, Schedule
from engine.simulate.simulator import Simulation, SimulationOptions, simulate
from engine.simulate.synthetic import Sketch, assemble
from engine.timeline.timeline import Category

US = 1_000_000


@pytest.fixture(scope="module")
def machine() -> Machine:
    return machine_for(Module(HloModuleProto(name="none"), Header(num_partitions=8)), load_chip("tpu-v4"))


def in_proto_order(program: Program) -> Schedule:
    orders = {k: Order(np.arange(len(graph))) for k, graph in program.graphs.items()}
    return Schedule("as-loaded", Budget(), orders)


def run(program: Program, *, sharing: bool = True, cap: int = 200_000) -> Simulation:
    return simulate(program, in_proto_order(program), SimulationOptions(sharing=sharing, slice_cap=cap))


def whole_link(machine: Machine, link: int, time: int) -> dict[int, int]:
    """The load that fills `link` for `time`."""
    return {link: int(machine.links[link].rate.usable * time * 1e-12)}


def test_a_done_that_comes_early_exposes_the_rest_of_its_transfer(machine: Machine) -> None:
    sketch = Sketch()
    start = sketch.start(10 * US)
    sketch.compute(4 * US)
    sketch.done(start)
    simulation = run(assemble([sketch], machine))
    assert simulation.metrics.makespan == 10 * US
    assert simulation.metrics.exposed == 6 * US
    assert simulation.metrics.compute == 4 * US
    timeline = simulation.timeline
    gap = int(np.flatnonzero(timeline.category == Category.EXPOSED)[0])
    assert (timeline.start[gap], timeline.duration[gap]) == (4 * US, 6 * US)
    assert timeline.waits_for[gap] == 1
