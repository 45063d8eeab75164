"""One plan over a range of something: async budget, link bandwidth, ring direction, unrolling, partitions.

Each value gives a row with the metrics of the plan and those of the module as loaded on the same machine.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from engine.chips.budget import Budget
from engine.chips.chip import Chip, DomainLinks, Rate
from engine.chips.library import load_chip
from engine.control import QUIET, Control
from engine.cost.imports import ImportedCosts
from engine.errors import UsageError
from engine.ir.module import Module
from engine.schedule.errors import Infeasible
from engine.session.edits import with_options
from engine.session.evaluation import Evaluator
from engine.session.plan import MachineSpec, Plan, plain_plan
from engine.timeline.timeline import Metrics


class Quantity(StrEnum):
    """What a sweep runs over."""

    BUDGET = "budget"
    LINK_BANDWIDTH = "link-bandwidth"
    RING = "ring"
    UNROLL = "unroll"
    PARTITIONS = "partitions"


MOST_POINTS = 256
"""Values of one sweep: each is a plan that is made, put in order and simulated."""


@dataclass(frozen=True, slots=True)
class Range:
    """A quantity and its values, as the user writes them: ``budget=1..16``, ``link-bandwidth=0.25..4``,
    ``unroll=1,2``, ``ring=one,both``. Link bandwidths are factors on the chip's."""

    quantity: Quantity
    values: tuple[str, ...]

    @staticmethod
    def parse(text: str) -> Range:
        """Raises UsageError for a quantity that is unknown or values that do not fit it."""
        name, equals, values = (part.strip() for part in text.partition("="))
        known = [quantity.value for quantity in _VALUES]
        if not equals or name not in known:
            names = ", ".join(known)
            raise UsageError(
                f"a sweep is written NAME=RANGE, with a NAME of {names}, or {Quantity.PARTITIONS} alone, with a FILE "
                f"for each number; '{text}' is not"
            )
        quantity = Quantity(name)
        found = tuple(_VALUES[quantity](values))
        _check_count(len(found), text)
        return Range(quantity, found)

    def __str__(self) -> str:
        return f"{self.quantity}={','.join(self.values)}"


@dataclass(frozen=True, slots=True)
class Row:
    """One value of a sweep."""

    value: str
    metrics: Metrics | None
    """Of the plan; None where no order fits, for the reason in `problem`."""
    base: Metrics
    """Of the module as loaded on the same machine."""
    problem: str = ""
    budget: str = ""
    """What may be in flight; empty where no order fits."""
    unlike: tuple[str, ...] = ()
    """What `Variant.priced_unlike` found between the plan and the module as loaded."""

    @property
    def gain(self) -> float:
        """How many times faster than as loaded; 0 where no order fits."""
        return self.base.makespan / self.metrics.makespan if self.metrics and self.metrics.makespan else 0.0


def sweep(
    module: Module,
    spec: MachineSpec,
    plan: Plan,
    over: Range,
    imports: tuple[ImportedCosts, ...] = (),
    control: Control = QUIET,
) -> tuple[Row, ...]:
    """Evaluate `plan` for every value of `over`.

    Raises UsageError where the plan does not decompose and `over` changes how it would, and for partitions, which a
    module has a fixed number of: `sweep_partitions` takes several modules.
    """
    if over.quantity == Quantity.PARTITIONS:
        raise UsageError("a module has a fixed number of partitions: give one file for each number")
    if over.quantity in (Quantity.RING, Quantity.UNROLL) and "decompose" not in plan.passes:
        raise UsageError(
            f"{over.quantity} is an option of the pass decompose, which is not in the plan '{plan.passes}'"
        )
    evaluator = Evaluator(module, spec, imports)
    rows: list[Row] = []
    for number, value in enumerate(over.values):
        part = control.part(number / len(over.values), (number + 1) / len(over.values))
        part.step(0.0, f"{over.quantity} {value}")
        chosen = plan
        if over.quantity == Quantity.BUDGET:
            chosen = replace(plan, budget=_in_place_of(plan.budget, Budget.parse(value)))
        elif over.quantity == Quantity.LINK_BANDWIDTH:
            evaluator = Evaluator(module, spec, imports, with_bandwidth(load_chip(spec.chip), float(value)))
        else:
            chosen = with_options(plan, "decompose", {over.quantity.value: value})
        rows.append(_row(evaluator, value, chosen, part))
    return tuple(rows)


def sweep_partitions(
    modules: Sequence[Module], spec: MachineSpec, plans: Sequence[Plan], control: Control = QUIET
) -> tuple[Row, ...]:
    """Evaluate modules of one program on several numbers of devices, each with its plan; the value is that number."""
    rows: list[Row] = []
    for number, (module, plan) in enumerate(zip(modules, plans, strict=True)):
        part = control.part(number / len(modules), (number + 1) / len(modules))
        rows.append(_row(Evaluator(module, spec), str(module.header.devices), plan, part))
    return tuple(rows)


_ENOUGH = 1.01
"""Times the shortest makespan of a sweep: what is as fast as that."""


def knee(rows: Sequence[Row]) -> Row | None:
    """The first row within 1 % of the shortest makespan: of a sweep over budgets, the one that is enough."""
    found = [row for row in rows if row.metrics is not None]
    best = min((row.metrics.makespan for row in found if row.metrics), default=0)
    return next((row for row in found if row.metrics and row.metrics.makespan <= best * _ENOUGH), None)


def with_bandwidth(chip: Chip, factor: float) -> Chip:
    """`chip` with all its links `factor` times as fast."""
    network = chip.network
    if isinstance(network, DomainLinks):
        network = replace(network, link=_scaled(network.link, factor), network=_scaled(network.network, factor))
    else:
        network = replace(network, link=_scaled(network.link, factor))
    return replace(chip, network=network)


def _scaled(rate: Rate, factor: float) -> Rate:
    return Rate(rate.usable * factor, rate.nominal * factor)


def _row(evaluator: Evaluator, value: str, plan: Plan, control: Control) -> Row:
    base = evaluator.evaluate(plain_plan(evaluator.module), control=control.part(0.0, 0.3))
    try:
        made = evaluator.evaluate(plan, control=control.part(0.3, 1.0))
    except Infeasible as error:
        return Row(value, None, base.metrics, str(error))
    budget, unlike = str(made.schedule.budget), made.priced_unlike(base)
    return Row(value, made.metrics, base.metrics, budget=budget, unlike=unlike)


def _check_count(count: int, text: str) -> None:
    if count > MOST_POINTS:
        shown = text if len(text) <= 40 else f"{text[:39]}…"
        raise UsageError(
            f"a sweep has at most {MOST_POINTS} points, but '{shown}' has {count:,}: "
            "name fewer, as budget=1,2,4,8,16 does"
        )


def _budgets(text: str) -> Iterable[str]:
    if found := re.fullmatch(r"(\d+)\s*\.\.\s*(\d+)", text):
        first, last = int(found[1]), int(found[2])
        if not 1 <= first <= last:
            raise UsageError(f"budgets run upwards from at least 1, as in budget=1..16; '{text}' does not")
        _check_count(last - first + 1, text)
        return [str(budget) for budget in range(first, last + 1)]
    return [str(Budget.parse(part)) for part in text.split(",")]


def _in_place_of(given: Budget | None, swept: Budget) -> Budget:
    """`swept`, a total alone beside the limits by kind of the plan's own budget."""
    return replace(given, total=swept.total) if given is not None and swept.by_kind == () and swept.total else swept


def _factors(text: str) -> Iterable[str]:
    ends = [_factor(part) for part in (text.split("..") if ".." in text else text.split(","))]
    if ".." not in text:
        return [f"{factor:g}" for factor in ends]
    if len(ends) != 2 or ends[0] > ends[1]:
        raise UsageError(f"bandwidths run upwards, as in link-bandwidth=0.25..4; '{text}' does not")
    values = [ends[0]]
    while values[-1] * 2 < ends[1] * 0.999:
        values.append(values[-1] * 2)
    if ends[1] > ends[0]:
        values.append(ends[1])
    return [f"{value:g}" for value in values]


def _factor(text: str) -> float:
    try:
        factor = float(text)
    except ValueError:
        factor = 0.0
    if not 0 < factor < 1e6:
        raise UsageError(f"link-bandwidth takes factors on the chip's own, such as 0.5; '{text.strip()}' is none")
    return factor


def _choices(*allowed: str) -> Callable[[str], Iterable[str]]:
    def parse(text: str) -> Iterable[str]:
        values = [part.strip() for part in text.replace("..", ",").split(",")]
        for value in values:
            if value not in allowed:
                raise UsageError(f"'{value}' is none of {', '.join(allowed)}")
        return values

    return parse


_VALUES: dict[Quantity, Callable[[str], Iterable[str]]] = {
    Quantity.BUDGET: _budgets,
    Quantity.LINK_BANDWIDTH: _factors,
    Quantity.RING: _choices("auto", "one", "both"),
    Quantity.UNROLL: _choices("auto", "1", "2"),
}
