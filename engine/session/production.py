"""What a production compiler makes of a module, and of our plan for it, as variants beside ours.

A compiler is asked for its predicted schedule, which carries its own costs. Ours can be forced on it: the instructions
that it made are put in our order by our scheduler under its costs, and it is asked again with that order pinned.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from engine.chips.budget import Budget
from engine.chips.inference import machine_for
from engine.chips.library import load_chip
from engine.chips.machine import Machine
from engine.control import QUIET, Control
from engine.cost.carrying import Loaded
from engine.cost.costs import Origin
from engine.cost.imports import ImportedCosts
from engine.cost.program import Program
from engine.cost.programs import prepare
from engine.cost.scheduled_module import ScheduledModule
from engine.errors import UnsupportedError, WorkerError
from engine.execute.compiling import (
    ASYNCHRONOUS_WHOLE,
    DEADLINE,
    DECOMPOSED_LATE,
    NO_OPTIONS,
    NO_ORDERS,
    WITHOUT_DECOMPOSITION,
    Compiled,
    Options,
    Orders,
    Unpartitioned,
    Unpredicted,
    compile_module,
)
from engine.execute.pinning import UNTIMED
from engine.execute.targets import Target, check_installed
from engine.ir.graph import Graph, Ints
from engine.ir.module import Module
from engine.passes.async_permute import AsyncPermute
from engine.passes.passes import Context, Result
from engine.passes.pipeline import Pipeline
from engine.schedule.directions import Lengths, Way, most_each_way, one_each_way, ways
from engine.schedule.problem import Order, Schedule
from engine.schedule.programs import schedule_program
from engine.schedule.registry import parse_scheduler
from engine.session.compiled import predicted_variant
from engine.session.plan import MachineSpec, Plan
from engine.session.variant import Variant
from engine.simulate.replay import price
from engine.simulate.run import ComputationRun
from engine.simulate.simulator import SimulationOptions, simulate, simulate_computation
from engine.timeline.timeline import Metrics

OURS: Mapping[str, Options] = MappingProxyType({"tpu": ASYNCHRONOUS_WHOLE, "cuda": NO_OPTIONS})
"""Options for modules that our passes made, by platform; see `Production.options`."""

LOOSE, PINNED = "ours, compiled by it", "ours, our order pinned"
"""What variants of a plan are called; others are what the compiler makes without one."""

WHOLE = "without decomposition"

LEFT_TO_THE_COMPILER = ("async-permute", "fuse")
"""Passes that a compiler does itself: it is given what the others made."""


@dataclass(frozen=True, eq=False)
class Produced:
    """A compiler's result, judged twice."""

    compiled: Compiled
    predicted: ScheduledModule
    variant: Variant
    """Under the compiler's own costs, waits inside loops included."""
    model: Metrics
    """The same instructions in the same order in our simulator, with our costs."""
    clock: float
    """The compiler's cycles per microsecond; a cycle of it is no measured time."""
    each_way: int
    """Most permutes with the same pairs in flight together: with more than 1 the compiler's figure is too good."""
    link_load: float
    """Most permutes that one link carries at a time, by routing."""

    @property
    def cycles(self) -> int:
        """Of the whole, loops as trips × full body."""
        return self._in_cycles(self.variant.metrics.makespan)

    @property
    def waiting(self) -> int:
        """Cycles in which nothing runs because a transfer is waited for."""
        return self._in_cycles(self.variant.metrics.exposed)

    @property
    def counts(self) -> bool:
        """Whether the compiler's figure may be compared: one permute each way at a time."""
        return self.each_way <= 1

    def _in_cycles(self, picoseconds: int) -> int:
        return round(picoseconds * self.clock / 1e6)


@dataclass(frozen=True, eq=False)
class Ordered:
    """An order for what the compiler made of a module."""

    variant: Variant
    """What it should take by the compiler's costs, to tell orders apart before compiling again."""
    orders: Orders
    options: Options
    """That the compiler was given; with others it may make other instructions."""
    clock: float
    """The compiler's cycles per microsecond."""

    @property
    def cycles(self) -> int:
        return round(self.variant.metrics.makespan * self.clock / 1e6)


class Production:
    """Compiles variants of one module for one target; `machine` is where the target's devices lie."""

    def __init__(
        self,
        module: Module,
        target: Target,
        mesh: str | None = None,
        deadline: float = DEADLINE,
        imports: Sequence[ImportedCosts] = (),
    ) -> None:
        """`mesh` as `machine_for` reads it; without a device order in it, rings lie on neighbours where they can.
        `imports` are the costs by which plans were made: their passes decide by them here, too.

        Raises UsageError where the module does not fit the target.
        """
        self.module, self.target, self.deadline = module, target, deadline
        chip = load_chip(target.known.chip)
        written = mesh or _axes(machine_for(module, chip, target.topology))
        self.spec = MachineSpec(
            target.known.chip, target.topology, written if ";" in written else f"{written};order=ring"
        )
        self.machine = machine_for(module, chip, self.spec.topology, self.spec.mesh)
        self._imports = tuple(imports)
        self._loaded = Loaded(module, self.machine, imports)

    def compiled(
        self,
        name: str,
        program: Module | Unpartitioned,
        options: Options = NO_OPTIONS,
        orders: Orders = NO_ORDERS,
        scheduled_only: bool = False,
        control: Control = QUIET,
    ) -> Produced:
        """`program` compiled, as the variant `name`; arguments are those of `compile_module`.

        Raises what that does, and Unpredicted for a module with nothing asynchronous in it.
        """
        made = compile_module(
            program,
            self.target,
            options=options,
            placement=self._placement(),
            orders=orders,
            scheduled_only=scheduled_only,
            deadline=self.deadline,
            control=control,
        )
        return self.judged(made, name)

    def judged(self, made: Compiled, name: str) -> Produced:
        """A compiler's result as a variant."""
        predicted = made.predicted()
        variant = predicted_variant(predicted, self.spec, name)
        variant = replace(variant, notes=(*made.notes, *variant.notes))
        program = variant.program
        if self.target.platform == "cuda":
            entry = predicted.schedule.computations[-1]
            total = entry.total_cycles / entry.cycles_per_microsecond
            note = (
                f"{name}: the compiler's own total of {entry.name} is {total:,.0f} µs. Here its kernels are taken "
                "as it predicts them, transfers at the rate of the links."
            )
            variant = replace(variant, notes=(*variant.notes, note))
        ours = simulate(prepare(program.module, self.machine), variant.schedule)
        used = [(program.graphs[id_], order.nodes) for id_, order in variant.schedule.orders.items()]
        return Produced(
            compiled=made,
            predicted=predicted,
            variant=variant,
            model=ours.metrics,
            clock=predicted.schedule.computations[0].cycles_per_microsecond,
            each_way=max(most_each_way(graph, order, ways(program.module, graph)) for graph, order in used),
            link_load=max(link_load(program.module, graph, order, self.machine) for graph, order in used),
        )

    def transformed(self, plan: Plan, control: Control = QUIET) -> Result:
        """What the plan's passes make of the module, without those whose work the compiler does itself."""
        pipeline = Pipeline.parse(plan.passes)
        kept = tuple(step for step in pipeline.passes if step.name not in LEFT_TO_THE_COMPILER)
        priced = self._priced if self._loaded.given_by else None
        context = Context(self.machine, control, priced=priced)
        result = replace(pipeline, passes=kept).run(self.module, context)
        left = [step.name for step in pipeline.passes if step not in kept]
        notes = (f"Left to the compiler: {', '.join(left)}.",) if left else ()
        return replace(result, notes=(*result.notes, *notes))

    def _priced(self, module: Module) -> Program:
        return prepare(module, self.machine, imports=self._imports, loaded=self._loaded)

    def options(self, plan: Plan) -> Options:
        """What the compiler is told beside the plan's module: what is to be asynchronous of what stays whole.

        All that it can, but where the plan's `async-permute` names permutes alone.
        """
        steps = (step for step in Pipeline.parse(plan.passes).passes if isinstance(step, AsyncPermute))
        if any(step.kinds == "permute" for step in steps):
            return NO_OPTIONS
        return OURS[self.target.platform]

    def ordered(self, loose: Produced, plan: Plan, control: Control = QUIET) -> Ordered:
        """What the compiler made, in the order of the plan's scheduler under the compiler's costs.

        Permutes that go the same way follow each other. Raises Infeasible where no order fits the plan's budget.
        """
        program = price(loose.predicted, self.machine)
        budget = self.machine.chip.budget(plan.budget)
        scheduler = parse_scheduler(plan.scheduler)
        options = SimulationOptions(sharing=False)
        schedule = schedule_program(program, scheduler, budget, memory_cap=plan.memory_cap, control=control)
        schedule = _apart(program, schedule, options)
        simulation = simulate(program, schedule, options)
        known = {computation.name for computation in loose.predicted.schedule.computations}
        variant = replace(
            loose.variant,
            plan=plan,
            program=program,
            schedule=schedule,
            timeline=replace(simulation.timeline, source=Origin.COMPILER),
            metrics=simulation.metrics,
        )
        return Ordered(variant, _names(program, schedule, known), loose.compiled.options, loose.clock)

    def pinned(
        self, name: str, module: Module, ordered: Ordered, *, scheduled_only: bool = False, control: Control = QUIET
    ) -> Produced:
        """`module` compiled again, in the order that `ordered` chose. Raises UnsupportedError where versions cannot."""
        made = self.compiled(
            name, module, ordered.options, ordered.orders, scheduled_only=scheduled_only, control=control
        )
        if not _kept(made, ordered.orders):
            raise UnsupportedError(f"the compiler for {self.target} did not keep the order that was pinned")
        return replace(made, variant=replace(made.variant, plan=ordered.variant.plan))

    def _placement(self) -> list[int] | None:
        """Chips by device; None where several devices share a chip, which compilers number by themselves."""
        return None if self.target.known.devices_per_chip > 1 else self.machine.position.tolist()


def produce(
    production: Production, plan: Plan, *, scheduled_only: bool = False, control: Control = QUIET
) -> tuple[list[Produced], list[str]]:
    """The compiler's variants of a module, `plan` compiled by it, and that pinned; and why any of them is missing.

    With `scheduled_only` no code is generated, and there is no optimised HLO: a tenth of the time.

    "TPU compiler, default" of a module that is partitioned already is the compiler's own decomposition after
    partitioning, where that makes a difference; gathers are asynchronous in "… without decomposition".
    """
    check_installed(production.target)
    compiler = f"{production.target.platform.upper()} compiler"
    asked = [(f"{compiler}, default", production.module, NO_OPTIONS)]
    if production.target.platform == "tpu":
        asked += [
            (f"{compiler}, {WHOLE}", production.module, WITHOUT_DECOMPOSITION),
            (f"{compiler}, decomposing after partitioning", production.module, DECOMPOSED_LATE),
        ]
    result = production.transformed(plan, control.part(0.0, 0.1))
    asked.append((LOOSE, result.module, production.options(plan)))
    found: list[Produced] = []
    missing: list[str] = []
    ours = None
    for number, (name, module, options) in enumerate(asked):
        part = control.part(0.1 + 0.7 * number / len(asked), 0.1 + 0.7 * (number + 1) / len(asked))
        try:
            made = production.compiled(name, module, options, scheduled_only=scheduled_only, control=part)
        except Unpredicted as reason:
            missing.append(f"{name}: {reason}")
            continue
        if module is result.module:
            notes = (*result.notes, *made.variant.notes)
            made = ours = replace(
                made, variant=replace(made.variant, plan=plan, candidates=result.candidates, notes=notes)
            )
        found.append(made)
    if ours is not None:
        try:
            order = production.ordered(ours, plan, control.part(0.8, 0.85))
            part = control.part(0.85, 1.0)
            found.append(production.pinned(PINNED, result.module, order, scheduled_only=scheduled_only, control=part))
        except (UnsupportedError, WorkerError) as reason:
            missing.append(f"{PINNED}: {reason}")
    return found, missing


def link_load(module: Module, graph: Graph, order: Ints, machine: Machine) -> float:
    """Most permutes that one link carries at a time, by dimension-ordered routing."""
    way = ways(module, graph)
    known: dict[tuple[Way, ...], float] = {}
    flying: dict[int, Way] = {}
    most = 0.0
    for node in order.tolist():
        if node not in way:
            flying.pop(int(graph.partner[node]), None)
            continue
        flying[node] = way[node]
        together = tuple(sorted(flying.values()))
        if together not in known:
            known[together] = _heaviest(together, machine)
        most = max(most, known[together])
    return most


def _heaviest(together: tuple[Way, ...], machine: Machine) -> float:
    """Transfers on the link that carries most of them; routed at once, since loads of link classes do not add up."""
    sources, targets = np.array([pair for pairs in together for pair in pairs], np.int64).T
    return float(machine.load(sources, targets, 1.0).bytes.max())


def _axes(machine: Machine) -> str:
    return ",".join(f"{name}={size}" for name, size in machine.mesh)


def _apart(program: Program, schedule: Schedule, options: SimulationOptions) -> Schedule:
    """The schedule with permutes that go the same way after each other."""
    orders: dict[int, Order] = {}
    runs: dict[int, ComputationRun] = {}
    for id_, graph in program.graphs.items():
        order = schedule.orders[id_]
        run = simulate_computation(program, id_, order, runs, options)
        way = ways(program.module, graph)
        if most_each_way(graph, order.nodes, way) > 1:
            lengths = Lengths(run.end - run.start, program.costs[id_].transfer)
            order = Order(one_each_way(graph, order.nodes, way, lengths))
            run = simulate_computation(program, id_, order, runs, options)
        orders[id_], runs[id_] = order, run
    return replace(schedule, orders=orders)


def _names(program: Program, schedule: Schedule, known: set[str]) -> Mapping[str, list[str]]:
    return {
        graph.name: [graph.names[node] for node in schedule.orders[id_].nodes.tolist()]
        for id_, graph in program.graphs.items()
        if graph.name in known
    }


def _kept(made: Produced, orders: Orders) -> bool:
    """Whether the compiler's schedule has the pinned order, but for what takes no time."""
    for computation in made.predicted.schedule.computations:
        order = orders.get(computation.name)
        if order is None:
            continue
        opcodes = dict(zip(computation.names, computation.opcodes, strict=True))
        if [n for n in order if opcodes.get(n) not in UNTIMED] != [n for n in opcodes if opcodes[n] not in UNTIMED]:
            return False
    return True


PIN_BUDGET = Budget.parse("permute=2,gather=1,all-to-all=1")
"""In flight for plans that are pinned: one permute each way round a ring, and as many gathers and all-to-alls as the
TPU compiler allows: it fails where an order has more."""
