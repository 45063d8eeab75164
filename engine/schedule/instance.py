"""A problem as plain lists, which the loops of schedulers index faster than arrays."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from engine.chips.budget import Budget, Kind
from engine.ir.graph import Csr, Ints
from engine.ir.opcodes import is_start
from engine.schedule.problem import Problem

PLAIN, START, DONE = 0, 1, 2
"""Roles: whatever takes compute time, an asynchronous start that has a done, a done."""

UNLIMITED = 1 << 60
TOTAL = len(Kind)
"""Where lists by kind hold the figure of all kinds together."""


@dataclass(frozen=True, eq=False)
class Instance:
    """Lists over the n nodes of a problem. Times in picoseconds."""

    problem: Problem
    predecessors: list[list[int]]
    successors: list[list[int]]
    duration: list[int]
    """Time on the compute stream, that of a blocking collective included."""
    latency: list[int]
    """Of a done: transfer time of its start; else 0."""
    partner: list[int]
    role: list[int]
    kind: list[int]
    """Of a done: that of its start."""
    limit: list[int]
    """By kind, then `TOTAL`."""
    held: dict[int, list[int]]
    """Nodes whose callees hold something in flight: by kind, then `TOTAL`."""

    def __len__(self) -> int:
        return len(self.predecessors)

    @staticmethod
    def of(problem: Problem) -> Instance:
        graph = problem.graph
        numbers = np.arange(len(graph))
        starts = graph.partner > numbers
        dones = (graph.partner >= 0) & ~starts
        blocking = (problem.transfer > 0) & ~starts & ~dones
        blocking &= np.array([not is_start(o) for o in graph.opcodes], np.bool_)
        kind = np.where(dones, problem.kind[np.maximum(graph.partner, 0)], problem.kind)
        totals = problem.held.sum(axis=1) if problem.held_total is None else problem.held_total
        holders = np.flatnonzero(problem.held.any(axis=1))
        return Instance(
            problem=problem,
            predecessors=rows(problem.predecessors),
            successors=rows(problem.successors),
            duration=(problem.compute + np.where(blocking, problem.transfer, 0)).tolist(),
            latency=np.where(dones, problem.transfer[np.maximum(graph.partner, 0)], 0).tolist(),
            partner=graph.partner.tolist(),
            role=np.where(starts, START, np.where(dones, DONE, PLAIN)).tolist(),
            kind=kind.tolist(),
            limit=limits(problem),
            held={int(n): [*problem.held[n].tolist(), int(totals[n])] for n in holders},
        )

    def within(self, budget: Budget) -> Instance:
        """The same with another budget."""
        problem = replace(self.problem, budget=budget)
        return replace(self, problem=problem, limit=limits(problem))

    @cached_property
    def parameters(self) -> list[int]:
        """What comes first in every order: parameters exist before anything runs."""
        opcodes = self.problem.graph.opcodes
        return [n for n, opcode in enumerate(opcodes) if opcode == "parameter" and not self.predecessors[n]]

    @cached_property
    def memory(self) -> MemoryLists:
        return MemoryLists.of(self.problem)


@dataclass(frozen=True, eq=False)
class MemoryLists:
    """Buffers as lists. What is live throughout is left out: it is `fixed` bytes at every moment."""

    fixed: int
    begin: int
    """Bytes live before anything runs: `fixed`, and what the caller gives away."""
    size: list[int]
    """By buffer; 0 for those that are live throughout."""
    defines: list[list[int]]
    """By node; without what the caller gives away, which only has readers."""
    reads: list[list[int]]
    """By node; without what it defines."""
    readers: list[int]
    """By buffer: how many nodes read it, the end of the computation included where it is part of the result."""
    live_out: list[bool]
    callee: list[int]
    """By node: extra bytes while its callees run."""

    @staticmethod
    def of(problem: Problem) -> MemoryLists:
        buffers, n = problem.buffers, len(problem.graph)
        varying = ~buffers.live_in
        owner = np.repeat(np.arange(n, dtype=np.int64), np.diff(buffers.touches.starts))
        item = buffers.touches.items
        kept = varying[item]
        owner, item = owner[kept], item[kept]
        defining = buffers.node[item] == owner
        given = 0
        if buffers.given is not None:
            defining &= ~buffers.given[item]
            given = int(buffers.size[buffers.given].sum())
        fixed = int(buffers.size[buffers.live_in].sum())
        callee = np.zeros(n, np.int64) if problem.callee_peak is None else problem.callee_peak
        return MemoryLists(
            fixed=fixed,
            begin=fixed + given,
            size=np.where(varying, buffers.size, 0).tolist(),
            defines=_grouped(owner[defining], item[defining], n),
            reads=_grouped(owner[~defining], item[~defining], n),
            readers=np.where(varying, np.diff(buffers.readers.starts) + buffers.live_out, 0).tolist(),
            live_out=(buffers.live_out & varying).tolist(),
            callee=callee.tolist(),
        )


def limits(problem: Problem) -> list[int]:
    """The budget as a list by kind, then `TOTAL`."""
    found = [UNLIMITED] * (TOTAL + 1)
    for kind, limit in problem.budget.by_kind:
        found[kind] = limit
    if problem.budget.total is not None:
        found[TOTAL] = problem.budget.total
    return found


def rows(csr: Csr) -> list[list[int]]:
    """A CSR as one list a row."""
    starts, items = csr.starts.tolist(), csr.items.tolist()
    return [items[a:b] for a, b in pairwise(starts)]


def _grouped(keys: Ints, values: Ints, count: int) -> list[list[int]]:
    """Values by key; keys ascend."""
    starts = np.searchsorted(keys, np.arange(count + 1)).astype(np.int64)
    return rows(Csr(starts, values))
