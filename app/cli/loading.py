"""From arguments to the engine's values: modules, machines, plans."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence

from engine.chips.budget import Budget
from engine.control import Control
from engine.cost.imports import ImportedCosts, read_costs
from engine.export.captured import captured_file, check_one_function, with_mesh
from engine.hlo.reading import read
from engine.ir.module import Module
from engine.quantities import parse_cap, time_text
from engine.session.evaluation import Evaluator
from engine.session.plan import MachineSpec, Plan, best_passes, plan_text
from engine.session.pruning import best_default


def load(path: str, control: Control) -> Module:
    """Read FILE; ``-`` is standard input, and a folder that ``lapstrake capture`` wrote is the module in it."""
    control.step(0.0, f"reading {path}")
    check_one_function(path)
    return with_mesh(read(captured_file(path), control=control))


def evaluator(module: Module, arguments: Namespace) -> Evaluator:
    """An evaluator of `module` on the machine that the arguments name, with the costs they name."""
    spec = MachineSpec(arguments.chip, arguments.topology, arguments.mesh)
    return Evaluator(module, spec, imports(arguments.costs))


def imports(paths: Sequence[str]) -> tuple[ImportedCosts, ...]:
    """The costs that ``--costs`` names, in order."""
    return tuple(read_costs(path) for path in paths)


def budget(arguments: Namespace) -> Budget | None:
    return None if arguments.budget is None else Budget.parse(arguments.budget)


def memory_cap(arguments: Namespace) -> int | None:
    """Bytes of ``28GiB``. Raises UsageError."""
    return None if arguments.memory_cap is None else parse_cap(arguments.memory_cap)


def plan(arguments: Namespace, module: Module) -> Plan | None:
    """The plan that was named, of `module`; None when neither passes nor a scheduler were."""
    if arguments.passes is None and arguments.scheduler is None:
        return None
    passes = best_passes(module) if arguments.passes is None else arguments.passes
    return Plan(passes, arguments.scheduler or "bottom-up", budget(arguments), memory_cap(arguments))


def plan_or_best(
    arguments: Namespace, evaluator: Evaluator, control: Control, *, decomposes: bool = False
) -> tuple[Plan, str]:
    """The plan that was named, else the best of a report, and a sentence on what nobody named; with `decomposes`
    the best of those that have the pass."""
    named = plan(arguments, evaluator.module)
    if named is not None:
        said = f"No passes were named; these are taken: {named.passes or 'none'}"
        return named, said if arguments.passes is None else ""
    best, other = best_default(evaluator, budget(arguments), memory_cap(arguments), control, decomposes=decomposes)
    took = time_text(best.metrics.makespan)
    which = "best of the report's that have the pass" if decomposes else "best of the report's"
    said = f"No plan was named; this is the {which}, '{best.name}', {took}: {plan_text(best.plan)}"
    if other is not None:
        said += f". It decomposes nothing; '{other.name}' takes {time_text(other.metrics.makespan)}"
    return best.plan, said
