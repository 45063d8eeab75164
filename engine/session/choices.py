"""One point of the search for plans, and the dimensions along which it moves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from engine import options
from engine.chips.budget import Budget
from engine.chips.chip import Chip
from engine.errors import UsageError
from engine.passes.rows import Row
from engine.session.plan import Plan

SITES = "sites"
"""The dimension whose values are verdicts for rows of sites; what rows there are depends on the rest."""
_OVERRIDES = ("force", "forbid", "losing")


@dataclass(frozen=True, slots=True)
class Choices:
    """What a plan decides, dimension by dimension."""

    flatten: str = "none"
    """What `flatten` merges before anything is decomposed; ``none`` leaves the pass out."""
    decompose: tuple[tuple[str, str], ...] = ()
    """Options of `decompose` that differ from their defaults, as (name, value)."""
    force: frozenset[str] = frozenset()
    """Rows of sites that are decomposed although the gate says no."""
    forbid: frozenset[str] = frozenset()
    """Rows of sites that stay whole although the gate says yes."""
    losing: frozenset[str] = frozenset()
    """Rows of sites that stay whole since they did not pay in the simulator."""
    kinds: str = "supported"
    """What `async-permute` makes asynchronous."""
    fuse: str = "overlap"
    """Policy of `fuse`; ``none`` leaves the pass out."""
    decided: tuple[tuple[str, str], ...] = ()
    """Other options of `fuse`: decisions that were made by hand."""
    scheduler: str = "bottom-up"
    budget: Budget | None = None

    @staticmethod
    def of(plan: Plan) -> Choices:
        """The point that a plan stands for; what it does not decompose or make asynchronous is chosen by default."""
        given = {name: dict(values) for name, values in options.split(plan.passes)}
        decompose, fuse = given.get("decompose", {}), given.get("fuse")
        force, forbid, losing = (frozenset(filter(None, decompose.pop(name, "").split(";"))) for name in _OVERRIDES)
        flatten = given.get("flatten")
        policy = "none" if fuse is None else fuse.pop("policy", "overlap")
        return Choices(
            "none" if flatten is None else flatten.get("indices", "contracting"),
            tuple(decompose.items()),
            force,
            forbid,
            losing,
            given.get("async-permute", {"kinds": "supported"}).get("kinds", "permute"),
            policy,
            tuple((fuse or {}).items()),
            plan.scheduler,
            plan.budget,
        )

    def plan(self, memory_cap: int | None) -> Plan:
        given = [*self.decompose, *((n, ";".join(sorted(rows))) for n, rows in self._overrides() if rows)]
        passes = [
            *([] if self.flatten == "none" else [_text("flatten", [("indices", self.flatten)])]),
            _text("decompose", given),
            _text("async-permute", [] if self.kinds == "permute" else [("kinds", self.kinds)]),
        ]
        if self.fuse != "none":
            passes.append(_text("fuse", [("policy", self.fuse), *self.decided]))
        return Plan(",".join(passes), self.scheduler, self.budget, memory_cap)

    def _overrides(self) -> tuple[tuple[str, frozenset[str]], ...]:
        return ("force", self.force), ("forbid", self.forbid), ("losing", self.losing)

    def turned(self, row: Row) -> Choices:
        """The same with the other verdict for one row of sites."""
        key, chosen = frozenset({row.key}), row.candidates[0].chosen
        if not chosen and row.key in self.losing:
            return replace(self, losing=self.losing - key)
        force = self.force - key if chosen else self.force | key
        forbid = self.forbid | key if chosen else self.forbid - key
        # An override that is taken back leaves the row to the gate.
        if chosen and row.key in self.force:
            forbid = self.forbid
        if not chosen and row.key in self.forbid:
            force = self.force
        return replace(self, force=force, forbid=forbid)

    def with_option(self, name: str, value: str) -> Choices:
        """The same with one option of `decompose` set; ``auto`` is its default."""
        rest = tuple(pair for pair in self.decompose if pair[0] != name)
        return replace(self, decompose=rest if value == "auto" else (*rest, (name, value)))


def _text(name: str, given: Iterable[tuple[str, str]]) -> str:
    inside = ",".join(f"{key}={value}" for key, value in given)
    return f"{name}{{{inside}}}" if inside else name


def _option(name: str, *values: str) -> Callable[[Choices], Iterator[Choices]]:
    return lambda at: (at.with_option(name, value) for value in values)


AXES: Mapping[str, Callable[[Choices], Iterator[Choices]]] = MappingProxyType(
    {
        "scheduler": lambda at: (replace(at, scheduler=s) for s in ("bottom-up", "top-down", "memory")),
        "fusion": lambda at: (replace(at, fuse=f) for f in ("overlap", "default", "auto", "none")),
        "async": lambda at: (replace(at, kinds=k) for k in ("supported", "permute")),
        "chain": _option("chain", "auto", "on", "off"),
        "ring": _option("ring", "auto", "one", "both"),
        "unroll": _option("unroll", "auto", "1", "2"),
        "form": _option("form", "auto", "rolled", "unrolled"),
        "budget": lambda at: (replace(at, budget=b) for b in (None, *(Budget(n) for n in (1, 2, 4, 8, 16)))),
    }
)
"""Dimension → the values that are tried along it, the rest being as it is; in the order in which they are tried."""

DIMENSIONS = (*AXES, SITES)
"""Everything that is searched."""


def is_allowed(budget: Budget | None, chip: Chip, given: Budget | None) -> bool:
    """Whether a search tries `budget`: the chip's own, the one that was `given`, and totals up to the higher of them.

    More than the chip has in flight by itself is promised by nobody, so it is tried only where it was asked for.
    """
    if budget is None or budget == given:
        return True
    most = [chip.default_budget.total, chip.budget(given).total]
    return None in most or (budget.total is not None and budget.total <= max(n for n in most if n is not None))


def parse_dimensions(text: str) -> frozenset[str]:
    """``ring,budget``. Raises UsageError for what is no dimension."""
    found = [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in found if name not in DIMENSIONS]
    if unknown or not found:
        came = f"'{unknown[0]}'" if unknown else "nothing"
        raise UsageError(f"dimensions to search are {', '.join(DIMENSIONS)}, separated by commas, but {came} came")
    return frozenset(found)
