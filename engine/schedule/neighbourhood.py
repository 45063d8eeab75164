"""What an instruction waits for, what waits for it, and which transfers pass behind it: in words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from engine.ir.graph import Graph, Ints
from engine.ir.opcodes import is_start
from engine.quantities import time_text
from engine.schedule.problem import Problem
from engine.simulate.run import ComputationRun

_SHOWN = 4
"""How many instructions a sentence names."""
_GIVEN = frozenset(("parameter", "constant"))
"""Opcodes that nothing waits for: there from the beginning."""
_PASSED_ON = frozenset(("tuple", "get-tuple-element", "bitcast"))
"""Opcodes that take no time: what is behind them is what is meant."""


def neighbourhood(problem: Problem, run: ComputationRun, node: int) -> str:
    """Sentences on what `node` needs and how long compute waited for it, what needs it, and what it hides; of a start
    and its done, what the one needs and what needs the other."""
    partner = int(problem.graph.partner[node])
    if partner >= 0:
        start, done = sorted((node, partner))
        return f"{_needs(problem, run, start)} {_readers(problem, run, done)}"
    return " ".join((_needs(problem, run, node), _readers(problem, run, node), *_hides(problem, run, node)))


def _needs(problem: Problem, run: ComputationRun, node: int) -> str:
    graph = problem.graph
    needed = list(_through(graph, problem.predecessors.of, node))
    wanted = [other for other in needed if graph.opcodes[other] not in _GIVEN]
    if not wanted:
        return "It waits for nothing: what it reads is there from the beginning."
    said = f"It waits for {_listed(graph, sorted(wanted, key=lambda other: -int(run.end[other])))}"
    last = max(wanted, key=lambda other: int(run.end[other]))
    waited = int(run.start[last] - run.reached[last])
    if waited > 0:
        return f"{said}; nothing ran for {time_text(waited)} before {graph.names[last]} was there."
    early = int(run.reached[node] - run.end[last])
    which = "which" if len(wanted) == 1 else "the last of which"
    return f"{said}, {which} was there {f'{time_text(early)} before' if early > 0 else 'just before'}."


def _readers(problem: Problem, run: ComputationRun, node: int) -> str:
    graph = problem.graph
    found = sorted(_through(graph, problem.successors.of, node), key=lambda other: int(run.reached[other]))
    if not found:
        return "Nothing in its computation waits for it: it is a result."
    first = int(run.reached[found[0]] - run.end[node])
    when = f"{time_text(first)} later" if first > 0 else "at once"
    return f"What waits for it: {_listed(graph, found)}; the first comes {when}."


def _hides(problem: Problem, run: ComputationRun, node: int) -> Iterator[str]:
    """Transfers that are under way while `node` runs, the longest first."""
    begin, end = int(run.start[node]), int(run.end[node])
    if end <= begin:
        return
    graph = problem.graph
    under = {
        start: min(end, _arrival(run, start)) - max(begin, int(run.depart[start]))
        for start, opcode in enumerate(graph.opcodes)
        if is_start(opcode) and run.depart[start] >= 0 and start != node
    }
    found = sorted((start for start, time in under.items() if time > 0), key=lambda start: -under[start])
    if not found:
        other = "other " if problem.transfer[node] else ""
        yield f"No {other}transfer is under way in its {time_text(end - begin)}."
        return
    named = ", ".join(f"{graph.names[start]} ({time_text(under[start])})" for start in found[:_SHOWN])
    yield f"In its {time_text(end - begin)} it hides {named}{_more(len(found))}."


def _arrival(run: ComputationRun, start: int) -> int:
    """When its transfer is over, or its computation where the transfer goes on beyond."""
    arrival = int(run.arrive[start])
    return arrival if arrival >= 0 else run.makespan


def _through(graph: Graph, neighbours: Callable[[int], Ints], node: int) -> Iterable[int]:
    """Neighbours of `node`, those of what takes no time in its place."""
    found: dict[int, None] = {}
    seen = {node}
    stack = [int(other) for other in neighbours(node)]
    while stack:
        other = stack.pop()
        if other in seen:
            continue
        seen.add(other)
        if graph.opcodes[other] in _PASSED_ON and len(neighbours(other)):
            stack.extend(int(further) for further in neighbours(other))
        else:
            found[other] = None
    return found


def _listed(graph: Graph, nodes: list[int]) -> str:
    return ", ".join(graph.names[node] for node in nodes[:_SHOWN]) + _more(len(nodes))


def _more(count: int) -> str:
    return f" and {count - _SHOWN} more" if count > _SHOWN else ""
