"""Prepares a computation and its order for the event loop."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from engine.chips.budget import Kind
from engine.cost.program import Program
from engine.ir.graph import Graph, Ints
from engine.ir.graphs import SEQUENTIAL
from engine.schedule.problem import Order
from engine.simulate.copies import copy_time
from engine.simulate.memory import live_bytes
from engine.simulate.run import CallPlan, ComputationRun, Plan
from engine.simulate.work import Work, work_of


def plan_computation(program: Program, computation: int, order: Order, callees: Mapping[int, ComputationRun]) -> Plan:
    """Prepare `computation` in `order`; `callees` are the runs of the computations that it calls."""
    graph, buffers = program.graphs[computation], program.buffers[computation]
    place = order.positions()
    calls = {node: _plan_call(program, graph, node, callees) for node in callers(graph)}
    work = work_of(program, computation)
    held, in_flight = _held(work, place, calls)
    live = live_bytes(buffers, place)
    peak = int(live.max(initial=0))
    for node, call in calls.items():
        peak = max(peak, int(live[place[node]]) + max(run.extra for run in call.runs))
    return Plan(
        work=work,
        order=order,
        calls=calls,
        held=held,
        in_flight=in_flight,
        live=live,
        peak=peak,
        extra=peak - int(buffers.size[buffers.live_in].sum()),
        copies=copy_time(program, work.graph.computation, order),
    )


def callers(graph: Graph) -> list[int]:
    """Nodes that run other computations as sequences: loops, calls and conditionals."""
    return [node for node, opcode in enumerate(graph.opcodes) if opcode in SEQUENTIAL]


def branch_weights(program: Program, graph: Graph, node: int) -> tuple[int, ...]:
    """How often each branch of a conditional runs, relative to the others."""
    equal = (1,) * len(graph.called.of(node))
    return program.weights.get(int(graph.ids[node]), equal)


def call_makespan(program: Program, graph: Graph, node: int, callees: Mapping[int, ComputationRun]) -> int:
    """Picoseconds of a node of `callers` when nothing else is under way."""
    plan = _plan_call(program, graph, node, callees)
    weight = sum(branch_weight for branch_weight, _ in plan.branches)
    once = sum(branch_weight * sum(run.makespan for run in runs) for branch_weight, runs in plan.branches)
    return plan.trips * (-(-once // weight) + plan.copies) + sum(run.makespan for run in plan.last)


def _plan_call(program: Program, graph: Graph, node: int, callees: Mapping[int, ComputationRun]) -> CallPlan:
    called = [callees[int(c)] for c in graph.called.of(node)]
    opcode = graph.opcodes[node]
    if opcode == "while":
        body, condition = called
        trips = program.trips[int(graph.ids[node])]
        return CallPlan(trips, ((1, (condition, body)),), (condition,), body.plan.copies)
    if opcode == "conditional":
        weights = branch_weights(program, graph, node)
        return CallPlan(1, tuple((weight, (run,)) for weight, run in zip(weights, called, strict=True) if weight))
    return CallPlan(1, ((1, tuple(called)),))


def _held(work: Work, place: Ints, calls: Mapping[int, CallPlan]) -> tuple[Ints, int]:
    """Most in flight by kind, and of all kinds together. `place` is each node's position."""
    nodes = np.flatnonzero(work.flying)
    kinds = np.array(work.kind, dtype=np.int64)
    change = np.zeros((len(work) + 1, len(Kind)), dtype=np.int64)
    ends = work.flying[nodes] < 0
    np.add.at(change, (place[nodes] + ends, kinds[nodes]), work.flying[nodes])
    held = np.cumsum(change, axis=0)
    most, in_flight = held.max(axis=0, initial=0), int(held.sum(axis=1).max(initial=0))
    for node, call in calls.items():
        at = held[place[node]]
        for run in call.runs:
            most = np.maximum(most, at + run.held)
            in_flight = max(in_flight, int(at.sum()) + run.in_flight)
    return most, in_flight
