"""Equal all-gathers merged, and their einsums split into those that share a loop and those that come after it.

Einsums on the same gathered data that do not depend on each other share one loop. One that depends on another of them
(the backward pass often) cannot: it reads the array that the loop puts together again, or gathers a second time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from engine.ir import shapes
from engine.ir.flow import Flow
from engine.ir.groups import Groups
from engine.passes.decompose.find.collectives import Collective
from engine.passes.decompose.find.readers import Readers
from engine.passes.decompose.site import EinsumUse, GatherSite

_LONGEST_PATH = 100
"""Instructions that are seen through to tell equal values."""


@dataclass(frozen=True, eq=False, slots=True)
class Gather:
    """One all-gather that einsums read."""

    collective: Collective
    groups: Groups
    dim: int
    readers: Readers


@dataclass(frozen=True, eq=False)
class GatherClass:
    """All-gathers of equal data whose first einsums do not depend on each other: one loop."""

    site: GatherSite
    """`rebuild` says whether anything but einsums reads the gathered array."""
    later: tuple[EinsumUse, ...]
    """Einsums that read one of these gathers and depend on einsums of `site`."""
    needed_before: str
    """The einsum that depends on another reader of the gathered array, by name; empty where none does. A loop would
    then wait for itself."""

    def without(self, einsums: Iterable[int]) -> GatherClass | None:
        """The class when `einsums` are done elsewhere, or stay whole, and read the array; None if none is left."""
        gone = set(einsums)
        uses = tuple(u for u in self.site.uses if u.instruction not in gone)
        later = tuple(u for u in self.later if u.instruction not in gone)
        if not uses:
            return None
        lost = len(uses) + len(later) < len(self.site.uses) + len(self.later)
        site = replace(self.site, uses=uses, rebuild=self.site.rebuild or lost)
        return replace(self, site=site, later=later)


def read_twice(flow: Flow, gathers: Iterable[Gather]) -> frozenset[int]:
    """Einsums whose operands are both gathers of the same data: while one has a shard, it needs all of the other."""
    seen: dict[object, set[int]] = {}
    twice: set[int] = set()
    for gather in gathers:
        einsums = {use.instruction for use in gather.readers.uses}
        others = seen.setdefault(_key(flow, gather), set())
        twice |= einsums & others
        others |= einsums
    return frozenset(twice)


class Dependences:
    """Which of the einsums and readers around gathers depend on which, per computation."""

    def __init__(self, flow: Flow, marked: Mapping[int, Iterable[int]]) -> None:
        self._bit: dict[int, int] = {}
        self._above: dict[int, int] = {}
        for computation, ids in marked.items():
            ordered = tuple(dict.fromkeys(ids))
            self._bit.update({id_: 1 << k for k, id_ in enumerate(ordered)})
            self._above.update(flow.ancestors(computation, ordered))

    def depends(self, instruction: int, on: int) -> bool:
        """Whether `instruction` depends on the marked instruction `on` of the same computation."""
        return bool(self._above[instruction] & self._bit[on])

    def depends_on_any(self, instruction: int, on: Iterable[int]) -> bool:
        return any(self.depends(instruction, other) for other in on)


def dependences_of(flow: Flow, gathers: Sequence[Gather]) -> Dependences:
    """What depends on the einsums and other readers of `gathers`."""
    marked: dict[int, list[int]] = {}
    for gather in gathers:
        of = marked.setdefault(gather.collective.computation, [])
        of.extend(u.instruction for u in gather.readers.uses)
        of.extend(gather.readers.other_ids)
    return Dependences(flow, marked)


def gather_classes(flow: Flow, gathers: Sequence[Gather], dependences: Dependences) -> list[GatherClass]:
    """The loops that `gathers` can become, in the module's order."""
    equal: dict[object, list[Gather]] = {}
    for gather in gathers:
        equal.setdefault(_key(flow, gather), []).append(gather)
    found = [c for same in equal.values() for c in _classes(flow, same, dependences)]
    return sorted(found, key=lambda c: flow.order[c.site.collectives[0]])


def _classes(flow: Flow, same: Sequence[Gather], dependences: Dependences) -> list[GatherClass]:
    """Equal gathers by level: an einsum's level is one above those it depends on."""
    uses = sorted(
        ((use, gather) for gather in same for use in gather.readers.uses),
        key=lambda pair: flow.order[pair[0].instruction],
    )
    level: dict[int, int] = {}
    for use, _ in uses:
        before = [k for v, k in level.items() if dependences.depends(use.instruction, v)]
        level[use.instruction] = max(before, default=-1) + 1
    begins = {g.collective.id: min(level[u.instruction] for u in g.readers.uses) for g in same}
    found = []
    for current in sorted(set(begins.values())):
        members = [g for g in same if begins[g.collective.id] == current]
        ids = {g.collective.id for g in members}
        here = tuple(
            use
            for use, gather in uses
            if level[use.instruction] == current
            and (gather.collective.id in ids or begins[gather.collective.id] < current)
        )
        joined = {u.instruction for u in here}
        later = tuple(
            use
            for use, gather in uses
            if gather.collective.id in ids
            and use.instruction not in joined
            and level[use.instruction] not in begins.values()
        )
        others = [o for g in members for o in g.readers.other_ids]
        first = members[0]
        needed = next((u.instruction for u in here if dependences.depends_on_any(u.instruction, others)), None)
        site = GatherSite(
            computation=first.collective.computation,
            collectives=tuple(g.collective.id for g in members),
            operand=flow.operands[first.collective.start][0],
            dim=first.dim,
            groups=first.groups,
            uses=here,
            rebuild=any(g.readers.others for g in members),
        )
        found.append(GatherClass(site, later, "" if needed is None else flow.name(needed)))
    return found


def _key(flow: Flow, gather: Gather) -> object:
    collective = gather.collective
    operand = flow.operands[collective.start][0]
    return collective.computation, gather.groups, gather.dim, _value(flow, operand)


def _value(flow: Flow, id_: int) -> object:
    """What a value is, seen through instructions that a compiler may have left twice."""
    path: list[object] = []
    while len(path) < _LONGEST_PATH:
        instruction = flow.instructions[id_]
        if instruction.opcode in ("convert", "reshape", "transpose"):
            path.append((instruction.opcode, shapes.text(instruction.shape), tuple(instruction.dimensions)))
        elif instruction.opcode != "copy" or not shapes.is_array(instruction.shape):
            break
        id_ = flow.operands[id_][0]
    return id_, tuple(path)
