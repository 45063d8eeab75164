"""Answers in words: why an instruction is where it is, and why a collective is exposed."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from engine.cost.program import Program
from engine.errors import UsageError
from engine.ir.graph import Graph
from engine.passes.candidate import Candidate
from engine.quantities import time_text
from engine.schedule.exposure import Cause, Exposure, Reason
from engine.schedule.neighbourhood import neighbourhood
from engine.schedule.problem import Decisions, Order, Problem, Schedule
from engine.schedule.programs import problem_of
from engine.schedule.rules import RULES
from engine.simulate.run import ComputationRun
from engine.simulate.simulator import simulate_computations

_MEANINGS = {rule.name: rule.meaning for rule in RULES} | {
    "OnlyChoice": "nothing else could be placed at that step",
    "WithinLimits": "something better would have broken the budget or the memory cap",
    "Parameter": "parameters come first",
    "ForwardPass": "a pass from the beginning moved it, which hides more",
    "InputOrder": "it is where the order of small peak memory has it",
    "Rebalanced": "it was moved to fill the time of a transfer",
    "StartEarly": "starts come as early as what they need allows",
    "DoneLate": "dones come as late as what needs them allows",
    "LocalSearch": "moving it made the schedule faster",
    "ProvenOptimal": "no order is faster",
    "BestFound": "it is the fastest order found",
}


@dataclass(frozen=True, slots=True)
class Explanation:
    """What can be said about one instruction of a scheduled program."""

    name: str
    exposed: int
    """Picoseconds that the compute stream waits for it, in one execution of its computation."""
    reasons: tuple[Reason, ...]

    def __str__(self) -> str:
        return "\n\n".join(reason.text for reason in self.reasons)


def explain(
    program: Program,
    schedule: Schedule,
    instruction: int | str,
    *,
    candidates: Sequence[Candidate] = (),
    runs: Mapping[int, ComputationRun] | None = None,
) -> Explanation:
    """Explain an instruction, by id or name, of `program` under `schedule`.

    `candidates` are the verdicts of the passes that made the program; `runs` those of `simulate_computations`, which
    are simulated where they are not given. Raises UsageError for a name that is not there.
    """
    found = _find(program, instruction)
    if runs is None:
        runs = simulate_computations(program, schedule)
    inside, node_id = _executed(program, found)
    computation = program.module.computation_of[node_id]
    graph = program.graphs[computation]
    node = graph.ids.tolist().index(node_id)
    problem = problem_of(program, computation, runs, schedule.budget, schedule.memory_caps.get(computation))
    order, run = schedule.orders[computation], runs[computation]
    known = _known(program, found, candidates)
    reasons = [*inside, _place(problem, run, order, node), *_waiting(program, problem, run, order, node, known)]
    reasons.append(Reason(Cause.PLACE, neighbourhood(problem, run, node)))
    if order.decisions is not None:
        reasons.append(_decision(problem, order.decisions, node))
    reasons += _verdicts(known)
    return Explanation(program.module.instructions[found].name, _exposed(problem, run, node), tuple(reasons))


def paragraphs(program: Program, schedule: Schedule, instruction: int) -> tuple[str, ...]:
    """What `explain` says of an instruction, given by its id, or in one paragraph why nothing can be said."""
    try:
        said = str(explain(program, schedule, instruction))
    except UsageError as error:
        return (str(error),)
    return tuple(paragraph for paragraph in said.split("\n\n") if paragraph)


def _find(program: Program, instruction: int | str) -> int:
    module = program.module
    if isinstance(instruction, int):
        if instruction in module.instructions:
            return instruction
        raise UsageError(f"{module.name} has no instruction with id {instruction}")
    name = instruction.removeprefix("%")
    if name in module.by_name:
        return module.by_name[name].id
    close = difflib.get_close_matches(name, module.by_name, n=3)
    hint = f" (did you mean {' or '.join(close)}?)" if close else ""
    raise UsageError(f"{module.name} has no instruction called '{name}'{hint}")


def _executed(program: Program, instruction: int) -> tuple[list[Reason], int]:
    """The instruction that runs `instruction`: itself, or the fusion (or the like) that it is part of."""
    module = program.module
    name = module.instructions[instruction].name
    reasons: list[Reason] = []
    while module.computation_of[instruction] not in program.graphs:
        computation = module.computation_of[instruction]
        caller = next((i for i in module.instructions.values() if computation in i.called_computation_ids), None)
        if caller is None:
            raise UsageError(f"{name} is never executed: nothing calls {module.computations[computation].name}")
        instruction = caller.id
        reasons = [Reason(Cause.PLACE, f"{name} is part of {caller.name}, which runs as one.")]
    return reasons, instruction


def _place(problem: Problem, run: ComputationRun, order: Order, node: int) -> Reason:
    graph = problem.graph
    position = int(order.positions()[node]) + 1
    text = (
        f"{graph.names[node]} is number {position} of {len(graph)} in {graph.name}; it is reached at "
        f"{time_text(int(run.reached[node]))} and left at {time_text(int(run.end[node]))} of {time_text(run.makespan)}."
    )
    if run.depart[node] >= 0 and run.arrive[node] >= 0:
        text += (
            f" Its transfer runs from {time_text(int(run.depart[node]))} to {time_text(int(run.arrive[node]))}, "
            f"{time_text(int(run.arrive[node] - run.depart[node]))} long."
        )
    return Reason(Cause.PLACE, text)


def _exposed(problem: Problem, run: ComputationRun, node: int) -> int:
    partner = int(problem.graph.partner[node])
    done = partner if partner > node else node
    waited = int(run.start[done] - run.reached[done])
    return waited if partner >= 0 else int(run.end[node] - run.start[node]) if problem.transfer[node] else waited


def _waiting(
    program: Program, problem: Problem, run: ComputationRun, order: Order, node: int, known: Sequence[Candidate]
) -> list[Reason]:
    graph = problem.graph
    partner = int(graph.partner[node])
    exposed = _exposed(problem, run, node)
    if partner < 0 and not problem.transfer[node]:
        return []
    if partner < 0:
        return [
            Reason(
                Cause.BLOCKING,
                f"It is blocking: the compute stream waits all of its {time_text(exposed)}. "
                f"{_way_out(graph, node, known)}",
            )
        ]
    exposure = Exposure(program.module, problem, run, order.nodes, min(node, partner))
    if exposed <= 0:
        return [Reason(Cause.PLACE, f"Its transfer is hidden: nothing waits at {graph.names[exposure.done]}.")]
    took = int(run.arrive[exposure.start] - run.depart[exposure.start])
    head = Reason(
        Cause.PLACE,
        f"{time_text(exposed)} of its {time_text(took)} are exposed: nothing runs while "
        f"{graph.names[exposure.done]} waits.",
    )
    return [head, *exposure.reasons()]


def _way_out(graph: Graph, node: int, known: Sequence[Candidate]) -> str:
    """What could hide part of a blocking transfer; what no pass can decompose is not said to gain by that."""
    split = "" if graph.opcodes[node] == "collective-permute" else "{kinds=all}"
    ways = "plit into a start and a done (async-permute" + split + "), part of it could be hidden."
    return f"Decomposed, or s{ways}" if any(c.gate is not None or c.chosen for c in known) else f"S{ways}"


def _decision(problem: Problem, decisions: Decisions, node: int) -> Reason:
    names = problem.graph.names
    rule = decisions.rules[int(decisions.rule[node])]
    text = f"The scheduler's rule {rule} put {names[node]} there: {_MEANINGS.get(rule, 'a rule of its own')}."
    beaten, waited = int(decisions.beat[node]), int(decisions.waited_for[node])
    if beaten >= 0:
        text += f" The other choice was {names[beaten]}."
    if waited >= 0:
        counted = "Counted from the end, it" if "OriginalOrder" in decisions.rules else "It"
        text += f" {counted} could not pass {names[waited]}."
    return Reason(Cause.DECISION, text)


def _known(program: Program, instruction: int, candidates: Sequence[Candidate]) -> list[Candidate]:
    """Those of `candidates` that the instruction came from."""
    origins = set(program.module.origins_of(instruction))
    name = program.module.instructions[instruction].name
    return [c for c in candidates if not origins.isdisjoint(c.loaded) or c.id == name]


def _verdicts(known: Sequence[Candidate]) -> list[Reason]:
    """What the passes decided about what the instruction came from."""
    return [
        Reason(Cause.GATE, f"{c.id} was {'decomposed' if c.chosen else 'not decomposed'}: {c.reason}.") for c in known
    ]
