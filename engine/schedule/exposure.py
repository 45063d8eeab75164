"""Why a transfer is not hidden: what of compute, dependencies, budget, memory, links and fusion stands in the way."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from engine.hlo.hlo_pb2 import HloComputationProto, HloInstructionProto
from engine.ir.graph import Ints
from engine.ir.module import Module
from engine.quantities import bytes_text, time_text
from engine.schedule.bounds import ends, tails
from engine.schedule.instance import START, TOTAL, UNLIMITED, Instance
from engine.schedule.measure import in_flight, live_memory
from engine.schedule.problem import Problem, positions
from engine.simulate.run import ComputationRun


class Cause(Enum):
    """What an explanation is about."""

    PLACE = "place"
    """Where an instruction is, when it runs, and what it waits for."""
    DECISION = "decision"
    """Which rule of the scheduler put it there."""
    BLOCKING = "blocking"
    """A collective that nothing runs beside."""
    NO_INDEPENDENT_COMPUTE = "no independent compute"
    DEPENDENCY = "dependency chain"
    BUDGET = "budget"
    MEMORY_CAP = "memory cap"
    SHARED_LINKS = "shared links"
    FUSION = "fusion"
    ELSEWHERE = "compute elsewhere"
    """Independent compute there is, but the schedule has it in other places."""
    GATE = "gate"
    """Why a collective was or was not decomposed."""


@dataclass(frozen=True, slots=True)
class Reason:
    """One paragraph."""

    cause: Cause
    text: str


_ON_PATH = 0.98
"""A transfer is on the critical path where the longest path through it takes this part of the makespan."""
_SLOWED = 1.02
"""A transfer shares something where it takes this many times as long as alone."""
_SHOWN = 4
"""How many instructions a sentence names."""


@dataclass(frozen=True, eq=False)
class Exposure:
    """One asynchronous operation in one computation's schedule."""

    module: Module
    problem: Problem
    run: ComputationRun
    order: Ints
    start: int
    """Node of the start."""

    @property
    def done(self) -> int:
        return int(self.problem.graph.partner[self.start])

    @property
    def waited(self) -> int:
        """Picoseconds that the compute stream waits at the done."""
        return int(self.run.start[self.done] - self.run.reached[self.done])

    def reasons(self) -> tuple[Reason, ...]:
        """Everything found, the most telling first; nothing where the transfer is hidden."""
        if self.waited <= 0:
            return ()
        instance = Instance.of(self.problem)
        found = [
            self._shared_links(),
            self._independent(instance),
            self._chain(instance),
            *self._limits(instance),
            *self._fusion(),
        ]
        reasons = [reason for reason in found if reason is not None]
        return tuple(reasons) if reasons else (self._elsewhere(instance),)

    def _shared_links(self) -> Reason | None:
        alone, took = int(self.problem.transfer[self.start]), self._took()
        if took <= alone * _SLOWED:
            return None
        depart, arrive = self.run.depart, self.run.arrive
        beside = [
            n
            for n in np.flatnonzero(depart >= 0).tolist()
            if n != self.start and depart[n] < arrive[self.start] and arrive[n] > depart[self.start]
        ]
        names = self._names(beside) or "compute that moves memory"
        return Reason(
            Cause.SHARED_LINKS,
            f"Its transfer takes {time_text(took)} instead of {time_text(alone)}, since it shares links or memory "
            f"bandwidth with {names}.",
        )

    def _took(self) -> int:
        return int(self.run.arrive[self.start] - self.run.depart[self.start])

    def _independent(self, instance: Instance) -> Reason | None:
        free = self._independent_nodes(instance)
        time = sum(instance.duration[n] for n in free)
        if time >= self._took():
            return None
        has = f"only {time_text(time)} of compute" if time else "no compute"
        return Reason(
            Cause.NO_INDEPENDENT_COMPUTE,
            f"There is {has} in {self.problem.graph.name} that neither leads to {self._name(self.start)} nor needs "
            f"{self._name(self.done)}, and the transfer takes {time_text(self._took())}.",
        )

    def _independent_nodes(self, instance: Instance) -> list[int]:
        before = _reach(self.start, instance.predecessors)
        after = _reach(self.done, instance.successors)
        tied = before | after | {self.start, self.done}
        return [n for n in range(len(instance)) if n not in tied and instance.duration[n]]

    def _chain(self, instance: Instance) -> Reason | None:
        end = ends(instance)
        tail = tails(instance)
        ready = max([end[p] for p in instance.predecessors[self.start]], default=0)
        after = max([tail[s] for s in instance.successors[self.done]], default=0)
        through = ready + int(self.problem.transfer[self.start]) + after
        if through < self.run.makespan * _ON_PATH:
            return None
        leads = _follow(self.start, instance.predecessors, end)
        follows = _follow(self.done, instance.successors, tail)
        return Reason(
            Cause.DEPENDENCY,
            f"It lies on the longest chain of dependencies: before it must come {time_text(ready)} of work "
            f"({self._names(leads) or 'nothing'}), after it {time_text(after)} ({self._names(follows) or 'nothing'}); "
            f"with the transfer that is {time_text(through)} of the {time_text(self.run.makespan)} that "
            f"{self.problem.graph.name} takes, in any order.",
        )

    def _limits(self, instance: Instance) -> Iterable[Reason]:
        """Places between what the start needs and the start, and between the done and its users, that are full."""
        place = positions(self.order)
        first = max([int(place[p]) for p in instance.predecessors[self.start]], default=-1) + 1
        last = min([int(place[s]) for s in instance.successors[self.done]], default=len(place))
        around = [*range(first, int(place[self.start])), *range(int(place[self.done]) + 1, last)]
        if not around:
            return
        by_kind, total = in_flight(self.problem, self.order)
        columns = np.column_stack([by_kind, total])
        for key in (instance.kind[self.start], TOTAL):
            full = [k for k in around if instance.limit[key] < UNLIMITED and columns[k, key] >= instance.limit[key]]
            if full:
                holders = self._holders(instance, place, full[-1], key)
                yield Reason(
                    Cause.BUDGET,
                    f"The budget {self.problem.budget} keeps {self._name(self.start)} from starting earlier, or "
                    f"{self._name(self.done)} from coming later: {self._names(holders)} "
                    f"{'is' if len(holders) == 1 else 'are'} in flight there.",
                )
                break
        cap = self.problem.memory_cap
        if cap is None:
            return
        live = live_memory(self.problem, self.order)
        size = sum(instance.memory.size[b] for b in instance.memory.defines[self.start])
        full = [k for k in around if live[k] + size > cap]
        if full:
            worst = max(full, key=live.__getitem__)
            yield Reason(
                Cause.MEMORY_CAP,
                f"The memory cap of {bytes_text(cap)} leaves no room for its {bytes_text(size)} any earlier or longer: "
                f"{bytes_text(int(live[worst]))} are live at {self._name(int(self.order[worst]))}.",
            )

    def _holders(self, instance: Instance, place: Ints, at: int, key: int) -> list[int]:
        """What is in flight at a position."""
        found = [
            n
            for n in range(len(instance))
            if instance.role[n] == START
            and n != self.start
            and key in (instance.kind[n], TOTAL)
            and place[n] <= at <= place[instance.partner[n]]
        ]
        running = int(self.order[at])
        return [*found, running] if running in instance.held else found

    def _fusion(self) -> Iterable[Reason]:
        """Fusions that read the done and hold an einsum that does not need it."""
        graph = self.problem.graph
        for user in graph.users.of(self.done).tolist():
            if graph.opcodes[user] != "fusion":
                continue
            instruction = self.module.instructions[int(graph.ids[user])]
            body = self.module.computations[instruction.called_computation_ids[0]]
            numbers = [k for k, o in enumerate(graph.operands.of(user).tolist()) if o == self.done]
            apart = _einsums_apart(body, numbers)
            if apart:
                yield Reason(
                    Cause.FUSION,
                    f"{graph.names[user]} reads what arrives, and holds {apart[0].name}, which does not need it: fused "
                    f"together, the einsum waits for the transfer too. Apart, it could hide it.",
                )

    def _elsewhere(self, instance: Instance) -> Reason:
        place = positions(self.order)
        inside = (int(place[self.start]), int(place[self.done]))
        free = [n for n in self._independent_nodes(instance) if not inside[0] < place[n] < inside[1]]
        free.sort(key=lambda n: -instance.duration[n])
        return Reason(
            Cause.ELSEWHERE,
            f"Compute that could hide it runs in other places: {self._names(free) or 'none'}. Another scheduler "
            f"(improve) or a larger budget may place it better.",
        )

    def _name(self, node: int) -> str:
        return self.problem.graph.names[node]

    def _names(self, nodes: Sequence[int]) -> str:
        names = ", ".join(self._name(n) for n in nodes[:_SHOWN])
        return f"{names} and {len(nodes) - _SHOWN} more" if len(nodes) > _SHOWN else names


def _reach(node: int, edges: list[list[int]]) -> set[int]:
    """Everything that can be reached from `node`, itself not included."""
    found: set[int] = set()
    stack = [node]
    while stack:
        for other in edges[stack.pop()]:
            if other not in found:
                found.add(other)
                stack.append(other)
    return found


def _follow(node: int, edges: list[list[int]], weight: list[int]) -> list[int]:
    """The heaviest chain from `node` along `edges`, without instructions that take no time of their own."""
    chain: list[int] = []
    while edges[node]:
        node = max(edges[node], key=weight.__getitem__)
        if weight[node] and (not chain or weight[node] != weight[chain[-1]]):
            chain.append(node)
    return chain


def _einsums_apart(body: HloComputationProto, numbers: list[int]) -> list[HloInstructionProto]:
    """Einsums of a fusion that do not depend on its parameters `numbers`."""
    tainted: set[int] = set()
    apart = []
    for instruction in body.instructions:
        waits = any(o in tainted for o in instruction.operand_ids)
        if instruction.opcode == "parameter":
            waits = instruction.parameter_number in numbers
        if waits:
            tainted.add(instruction.id)
        elif instruction.opcode in ("dot", "convolution"):
            apart.append(instruction)
    return apart
