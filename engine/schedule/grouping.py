"""Scheduling groups: each is ordered on its own and stands in its computation as one node, like a call.

XLA's ``_scheduling_group_id`` asks that a group's instructions follow each other without a gap. So seen, every
scheduler keeps groups together without knowing of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from heapq import heappop, heappush

import numpy as np

from engine.errors import UnsupportedError
from engine.ir.buffers import Buffers
from engine.ir.graph import Bools, Csr, Graph, Ints
from engine.schedule.instance import Instance, rows
from engine.schedule.measure import in_flight, makespan, peak_memory
from engine.schedule.problem import Decisions, Hints, Loads, Order, Problem, distinct_rows, row_numbers

Solve = Callable[[Problem], Order]


def schedule_grouped(problem: Problem, solve: Solve) -> Order:
    """Order `problem` with `solve`, which need not know of groups.

    Raises UnsupportedError where a group cannot be kept together, since something outside lies between its members.
    """
    if not problem.groups:
        return solve(replace(problem, group=None))
    problem = replace(problem, simulated=None)
    number = _numbers(problem)
    groups = sorted(problem.groups, key=lambda members: int(number[members[0]]))
    parts = [_inside(problem, members) for members in groups]
    inner = [solve(part) for part in parts]
    outer = solve(_contracted(problem, number, parts, inner))
    pieces: list[Ints] = [np.flatnonzero(number == k) for k in range(int(number.max()) + 1)]
    for members, order in zip(groups, inner, strict=True):
        pieces[int(number[members[0]])] = members[order.nodes]
    nodes = np.concatenate([pieces[k] for k in outer.nodes.tolist()])
    return Order(nodes, _expanded(outer, number))


def _inside(problem: Problem, members: Ints) -> Problem:
    """A group as a problem of its own: what it reads is there, what is read outside lives to its end."""
    n = len(members)
    number = np.full(len(problem.graph), -1, np.int64)
    number[members] = np.arange(n)
    owners, items = number[row_numbers(problem.predecessors)], number[problem.predecessors.items]
    kept = (owners >= 0) & (items >= 0)
    partner = problem.graph.partner[members]
    graph = _graph(
        problem.graph, members, owners[kept], items[kept], np.where(partner >= 0, number[partner], -1), n - 1
    )
    buffers = problem.buffers
    owners, readers = row_numbers(buffers.readers), number[buffers.readers.items]
    defined = number[buffers.node] >= 0
    escapes = buffers.live_out.copy()
    escapes[owners[readers < 0]] = True
    return replace(
        problem,
        graph=graph,
        compute=problem.compute[members],
        transfer=problem.transfer[members],
        kind=problem.kind[members],
        held=problem.held[members],
        buffers=_buffers(
            np.where(defined | np.isin(np.arange(len(buffers.size)), owners[readers >= 0]), buffers.size, 0),
            np.where(defined, number[buffers.node], 0),
            owners[readers >= 0],
            readers[readers >= 0],
            buffers.live_in | ~defined,
            escapes & defined,
            None if buffers.given is None else buffers.given & defined,
            n,
        ),
        memory_cap=None,
        callee_peak=None if problem.callee_peak is None else problem.callee_peak[members],
        held_total=None if problem.held_total is None else problem.held_total[members],
        group=None,
        hints=None if problem.hints is None else Hints(problem.hints.flags[members], problem.hints.priority[members]),
        loads=None,
    )


def _numbers(problem: Problem) -> Ints:
    """A number for each group and each other node, topological and otherwise in the order of the graph.

    Raises UnsupportedError where there is none.
    """
    n = len(problem.graph)
    unit = np.arange(n)
    for members in problem.groups:
        unit[members] = members[0]
    owners, items = unit[row_numbers(problem.predecessors)], unit[problem.predecessors.items]
    edge = owners != items
    successors = rows(distinct_rows(items[edge], owners[edge], n))
    left = np.bincount(distinct_rows(items[edge], owners[edge], n).items, minlength=n).tolist()
    ready = [u for u in np.unique(unit).tolist() if not left[u]]
    number = np.full(n, -1, np.int64)
    count = 0
    while ready:
        u = heappop(ready)
        number[unit == u] = count
        count += 1
        for s in successors[u]:
            left[s] -= 1
            if not left[s]:
                heappush(ready, s)
    stuck = next((members for members in problem.groups if number[members[0]] < 0), None)
    if stuck is not None:
        names = ", ".join(problem.graph.names[m] for m in stuck[:4].tolist())
        raise UnsupportedError(
            f"a scheduling group of {problem.graph.name} ({names}, …) cannot be kept together: instructions outside it "
            f"lie on a path between its members; remove _scheduling_group_id from one of them"
        )
    return number


def _contracted(problem: Problem, number: Ints, parts: list[Problem], inner: list[Order]) -> Problem:
    """The problem with each group as one node that takes as long, holds as much and needs as much as its order does."""
    count = int(number.max()) + 1
    first = np.zeros(count, np.int64)
    first[number[::-1]] = np.arange(len(number))[::-1]
    owners, items = number[row_numbers(problem.predecessors)], number[problem.predecessors.items]
    edge = owners != items
    partner = problem.graph.partner[first]
    grouped = np.bincount(number, minlength=count) > 1
    partner = np.where((partner >= 0) & ~grouped, number[partner], -1)
    graph = _graph(problem.graph, first, owners[edge], items[edge], partner, int(number[problem.graph.root]))
    compute, transfer, kind = problem.compute[first], problem.transfer[first], problem.kind[first]
    held = problem.held[first]
    totals = (problem.held.sum(axis=1) if problem.held_total is None else problem.held_total)[first]
    callee = (np.zeros(len(number), np.int64) if problem.callee_peak is None else problem.callee_peak)[first]
    buffers = problem.buffers
    owner = row_numbers(buffers.readers)
    reader = number[buffers.readers.items]
    definer = number[buffers.node]
    outside = reader != definer[owner]
    internal = ~buffers.live_out & ~buffers.live_in & grouped[definer]
    if buffers.given is not None:  # there before the group begins
        outside |= buffers.given[owner]
    internal[owner[outside]] = False
    size = np.where(internal, 0, buffers.size)
    for k, part, order in zip(np.flatnonzero(grouped), parts, inner, strict=True):
        by_kind, total = in_flight(part, order.nodes)
        compute[k], transfer[k], kind[k] = makespan(Instance.of(part), order.nodes.tolist()), 0, 0
        held[k], totals[k] = by_kind.max(axis=0), total.max()
        touched = np.union1d(owner[reader == k], np.flatnonzero(definer == k))
        callee[k] = max(0, peak_memory(part, order.nodes) - int(size[touched].sum()))
    return replace(
        problem,
        graph=graph,
        compute=compute,
        transfer=transfer,
        kind=kind,
        held=held,
        held_total=totals,
        callee_peak=callee,
        buffers=_buffers(
            size, definer, owner[outside], reader[outside], buffers.live_in, buffers.live_out, buffers.given, count
        ),
        group=None,
        hints=None if problem.hints is None else Hints(problem.hints.flags[first], problem.hints.priority[first]),
        loads=_loads(problem.loads, first, grouped),
    )


def _expanded(outer: Order, number: Ints) -> Decisions | None:
    """Decisions of the contracted problem for all nodes: a group's members share those of the group."""
    if outer.decisions is None:
        return None
    found = outer.decisions
    first = np.zeros(int(number.max()) + 1, np.int64)
    first[number[::-1]] = np.arange(len(number))[::-1]

    def back(nodes: Ints) -> Ints:
        there = nodes[number]
        return np.where(there >= 0, first[np.maximum(there, 0)], -1)

    return Decisions(found.rule[number], back(found.beat), back(found.waited_for), found.rules)


def _loads(loads: Loads | None, first: Ints, grouped: Bools) -> Loads | None:
    if loads is None:
        return None
    counts = np.where(grouped, 0, np.diff(loads.start)[first])
    start = np.concatenate([[0], np.cumsum(counts)])
    items = np.concatenate([np.arange(loads.start[f], loads.start[f] + c) for f, c in zip(first, counts, strict=True)])
    items = items.astype(np.int64)
    return Loads(start, loads.link[items], loads.bytes[items])


def _graph(graph: Graph, first: Ints, owners: Ints, items: Ints, partner: Ints, root: int) -> Graph:
    n = len(first)
    predecessors, successors = distinct_rows(owners, items, n), distinct_rows(items, owners, n)
    nothing = Csr(np.zeros(n + 1, np.int64), np.zeros(0, np.int64))
    return Graph(
        computation=graph.computation,
        name=graph.name,
        ids=graph.ids[first],
        names=tuple(graph.names[k] for k in first.tolist()),
        opcodes=tuple(graph.opcodes[k] for k in first.tolist()),
        operands=predecessors,
        users=successors,
        controls=nothing,
        predecessors=predecessors,
        successors=successors,
        called=nothing,
        partner=partner.astype(np.int64),
        root=root,
    )


def _buffers(
    size: Ints,
    node: Ints,
    owners: Ints,
    readers: Ints,
    live_in: Bools,
    live_out: Bools,
    given: Bools | None,
    nodes: int,
) -> Buffers:
    count = len(size)
    numbers = np.arange(count)
    read = np.unique(owners * nodes + readers)
    starts = np.searchsorted(read, np.arange(count + 1) * nodes).astype(np.int64)
    touched = np.unique(np.concatenate([readers * count + owners, node * count + numbers])) if count else read
    touch_starts = np.searchsorted(touched, np.arange(nodes + 1) * count).astype(np.int64)
    return Buffers(
        size=size,
        node=node,
        readers=Csr(starts, read % max(nodes, 1)),
        touches=Csr(touch_starts, touched % max(count, 1)),
        live_in=live_in,
        live_out=live_out,
        given=given,
    )
