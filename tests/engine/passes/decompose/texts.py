"""HLO texts around one collective, put together from a few lines, and what the finder says of them."""

from __future__ import annotations

from collections.abc import Mapping

from engine.chips.inference import machine_for
from engine.chips.library import load_chip
from engine.chips.machine import Machine
from engine.hlo.reading import read_here
from engine.ir.flow import Flow
from engine.ir.module import Module
from engine.passes.candidate import Candidate
from engine.passes.decompose.decide.planning import Planned, plan
from engine.passes.decompose.find.collectives import collectives_of
from engine.passes.decompose.find.examining import Examined, examine
from engine.passes.decompose.find.finder import Finder
from engine.passes.decompose.options import Options

ADD = """
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT sum = f32[] add(a, b)
}
"""
ALL = "channel_id=1, replica_groups=[1,4]<=[4], use_global_device_ids=true"
"""Attributes of a collective over four partitions."""


def module(body: str, *, before: str = ADD, partitions: int = 4, replicas: int = 1) -> Module:
    """A module whose entry holds the lines of `body`."""
    header = f"HloModule m, num_partitions={partitions}, replica_count={replicas}"
    return read_here(f"{header}\n{before}\nENTRY main {{\n{body}\n}}\n".encode())


def examined(of: Module, name: str | None = None) -> Examined:
    """What is found around the collective `name`, or around the first one."""
    flow = Flow(of)
    finder = Finder(flow)
    found = [examine(finder, c) for c in collectives_of(flow)]
    return next(x for x in found if name is None or flow.name(x.collective.id) == name)


def machine(of: Module, chip: str = "tpu-v4") -> Machine:
    return machine_for(of, load_chip(chip))


def planned(of: Module, chip: str = "tpu-v4", **options: object) -> Planned:
    return plan(of, machine(of, chip), Options(**options))  # type: ignore[arg-type]  # by field name


def verdicts(of: Planned) -> Mapping[str, Candidate]:
    """Candidates by id."""
    return {c.id: c for c in of.candidates}
