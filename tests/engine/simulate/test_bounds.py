"""What no schedule can beat, on programs small enough that the answer is known."""

from __future__ import annotations

import pytest

from engine.chips.inference import machine_for
from engine.chips.library import load_chip
from engine.hlo.hlo_pb2 import HloModuleProto
from engine.ir.module import Header, Module
from engine.simulate.bounds import bounds
from tests.engine.simulate.synthetic import Sketch, assemble

US = 1_000_000
MACHINE = machine_for(Module(HloModuleProto(name="none"), Header(num_partitions=8)), load_chip("tpu-v4"))


def whole_link(link: int, time: int) -> dict[int, int]:
    return {link: int(MACHINE.links[link].rate.usable * time * 1e-12)}


def test_the_critical_path_goes_through_transfers() -> None:
    sketch = Sketch()
    first = sketch.compute(2 * US)
    arrived = sketch.done(sketch.start(10 * US, first))
    sketch.compute(3 * US, arrived)
    sketch.compute(4 * US)
    found = bounds(assemble([sketch], MACHINE))
    assert (found.critical_path, found.compute, found.best) == (15 * US, 9 * US, 15 * US)


def test_blocking_collectives_are_work_of_the_stream() -> None:
    sketch = Sketch()
    sketch.collective(5 * US)
    sketch.compute(4 * US)
    found = bounds(assemble([sketch], MACHINE))
    assert (found.critical_path, found.compute) == (5 * US, 9 * US)


def test_each_link_class_has_its_own_work() -> None:
    sketch = Sketch()
    for link, time in ((0, 10), (0, 20), (1, 5)):
        sketch.done(sketch.start(time * US, loads=whole_link(link, time * US)))
    program = assemble([sketch], MACHINE)
    shared = {resource.name: resource.time for resource in bounds(program).resources}
    assert shared["ICI x+"] == pytest.approx(30 * US, rel=1e-5)
    assert shared["ICI x-"] == pytest.approx(5 * US, rel=1e-5)
    assert bounds(program).best == pytest.approx(30 * US, rel=1e-5)
    assert bounds(program, sharing=False).resources == ()
    assert bounds(program, sharing=False).best == 20 * US


def test_memory_is_a_resource_too() -> None:
    sketch = Sketch()
    sketch.compute(4 * US, hbm=int(MACHINE.hbm_bandwidth * 4e-6))
    sketch.done(sketch.start(5 * US, hbm=int(MACHINE.hbm_bandwidth * 5e-6)))
    (memory,) = bounds(assemble([sketch], MACHINE)).resources
    assert memory.name == "HBM"
    assert memory.time == pytest.approx(9 * US, rel=1e-5)


def test_loops_count_by_their_trips_and_copies() -> None:
    condition, body, entry = Sketch(), Sketch(), Sketch()
    condition.compute(1 * US)
    body.done(body.start(6 * US, loads=whole_link(2, 6 * US)))
    body.compute(2 * US)
    entry.loop(1, 0, 10)
    found = bounds(assemble([condition, body, entry], MACHINE, copies={1: 3 * US}))
    # 10 bodies of at least 6 µs, 11 conditions, 10 times the copies
    assert found.best == (60 + 11 + 30) * US
    links = {resource.name: resource.time for resource in found.resources}
    assert links["ICI y+"] == pytest.approx(60 * US, rel=1e-5)


def test_an_empty_computation_takes_no_time() -> None:
    sketch = Sketch()
    sketch.parameter(10)
    assert bounds(assemble([sketch], MACHINE)).best == 0
