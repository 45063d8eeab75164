"""Parts of an outline by dependence: what is n hops from some instructions, and all paths between two."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from engine.errors import UsageError
from engine.ir.graph import Bools, Ints
from engine.layout.outline import Kind, Outline

_COUNTED = 1_000_000
"""Paths up to which their number is told: it grows with every branch."""
MOST_AROUND = 600
"""Instructions that are shown around others or between two."""


@dataclass(frozen=True, eq=False)
class Part:
    """Instructions of an outline, and a sentence about what they are and whether some were left out."""

    items: Ints
    said: str
    capped: bool = False


def neighbourhood(outline: Outline, items: Sequence[int], hops: int) -> Part:
    """Operands and users of `items`, and theirs, `hops` times. Nearest first where there are too many."""
    reached = np.zeros(len(outline), np.bool_)
    front = np.array(sorted(set(items)), np.int64)
    reached[front] = True
    done, capped = 0, False
    for _ in range(hops):
        near = np.concatenate([_step(outline, front, forward=True), _step(outline, front, forward=False)])
        front = np.unique(near[~reached[near]]) if len(near) else near
        if not len(front):
            break
        room = MOST_AROUND - int(reached.sum())
        capped = len(front) > room
        front = front[: max(0, room)]
        reached[front] = True
        done += 1
        if capped:
            break
    found = np.flatnonzero(reached)
    where = f"{_counted(len(found), 'instruction')} within {_counted(hops, 'hop')}"
    more = f"; more than {MOST_AROUND:,} at {done}, the rest is left out" if capped else ""
    return Part(found, f"{where}{more}", capped)


def paths_between(outline: Outline, one: int, two: int) -> Part:
    """Every instruction on a path from one item to the other, whichever way the data flow.

    Where they are in different computations the callers stand for them. Raises UsageError where there is no path.
    """
    one, two = _together(outline, one, two)
    if one == two:
        raise UsageError("paths lead from one instruction to another of the same computation: select two")
    ahead, back = _distances(outline, one, forward=True), _distances(outline, two, forward=False)
    if ahead[two] < 0:
        one, two = two, one
        ahead, back = _distances(outline, one, forward=True), _distances(outline, two, forward=False)
    if ahead[two] < 0:
        raise UsageError(f"no path leads from {outline.names[one]} to {outline.names[two]}, nor back")
    on_path = np.flatnonzero((ahead >= 0) & (back >= 0))
    number = count_paths(outline, one, two, on_path)
    said = f"{_counted(number, 'path')} from {outline.names[one]} to {outline.names[two]}"
    if len(on_path) <= MOST_AROUND:
        return Part(on_path, f"{said}, through {_counted(len(on_path), 'instruction')}")
    length = (ahead + back)[on_path]
    longest = int(np.sort(length)[MOST_AROUND - 1])
    kept = on_path[length < longest] if int((length <= longest).sum()) > MOST_AROUND else on_path[length <= longest]
    if not len(kept):
        kept = _one_path(outline, two, ahead)
    return Part(
        kept, f"{said}; {len(on_path):,} instructions lie on them, those of the shortest are shown", capped=True
    )


def count_paths(outline: Outline, one: int, two: int, within: Ints) -> int:
    """How many different paths lead from one item to another inside a set."""
    inside = np.zeros(len(outline), np.bool_)
    inside[within] = True
    wires = np.flatnonzero(inside[outline.source] & inside[outline.target])
    users: dict[int, list[int]] = {}
    waits: dict[int, int] = {}
    for a, b in zip(outline.source[wires].tolist(), outline.target[wires].tolist(), strict=True):
        users.setdefault(a, []).append(b)
        waits[b] = waits.get(b, 0) + 1
    ways = {one: 1}
    ready = [one]
    while ready:
        item = ready.pop()
        for user in users.get(item, ()):
            ways[user] = ways.get(user, 0) + ways[item]
            waits[user] -= 1
            if not waits[user]:
                ready.append(user)
    return ways.get(two, 0)


def part_of(outline: Outline, items: Ints) -> Outline:
    """An outline of these instructions alone, side by side, with what lies in them."""
    kept: Bools = np.zeros(len(outline), np.bool_)
    kept[0] = True
    tops = []
    for item in sorted(items.tolist()):
        if not kept[item]:  # not inside one before it
            tops.append(item)
            kept[item : outline.end[item]] = True
    old = np.flatnonzero(kept)
    new = np.full(len(outline) + 1, -1, np.int64)
    new[old] = np.arange(len(old))
    parent = np.where(np.isin(old, np.array(tops, np.int64)), 0, new[outline.parent[old]])
    parent[0] = -1
    end = parent * 0
    end[0] = len(old)
    end[1:] = new[old[1:]] + (outline.end[old[1:]] - old[1:])
    wires = np.flatnonzero(kept[outline.source] & kept[outline.target])
    source, target = new[outline.source[wires]], new[outline.target[wires]]
    inner = kept[outline.edge_source] & kept[outline.edge_target]
    inner &= ~np.isin(outline.edge_source, np.array(tops, np.int64))
    top_wires = (parent[source] == 0) & (parent[target] == 0)
    names = [outline.names[item] for item in old.tolist()]
    return replace(
        outline,
        parent=parent,
        end=end,
        kind=outline.kind[old],
        instruction=outline.instruction[old],
        names=tuple(names),
        details=tuple(outline.details[item] for item in old.tolist()),
        paths=tuple(outline.paths[item] for item in old.tolist()),
        sides=outline.sides[old],
        changed=outline.changed[old],
        look=outline.look[old],
        source=source,
        target=target,
        wire_sides=outline.wire_sides[wires],
        edge_source=np.concatenate([source[top_wires], new[outline.edge_source[inner]]]),
        edge_target=np.concatenate([target[top_wires], new[outline.edge_target[inner]]]),
        edge_wires=np.concatenate([np.ones(int(top_wires.sum()), np.int64), outline.edge_wires[inner]]),
        edge_sides=np.concatenate([outline.wire_sides[wires][top_wires], outline.edge_sides[inner]]),
    )


def _step(outline: Outline, items: Ints, *, forward: bool) -> Ints:
    found = [
        outline.target[outline.user_wires(item, item + 1)]
        if forward
        else outline.source[outline.operand_wires(item, item + 1)]
        for item in items.tolist()
    ]
    return np.concatenate(found) if found else np.empty(0, np.int64)


def _distances(outline: Outline, start: int, *, forward: bool) -> Ints:
    """Hops from an item along its users (or operands), -1 where it does not reach."""
    distance = np.full(len(outline), -1, np.int64)
    front = np.array([start], np.int64)
    hops = 0
    while len(front):
        distance[front] = hops
        near = _step(outline, front, forward=forward)
        front = np.unique(near[distance[near] < 0])
        hops += 1
    return distance


def _one_path(outline: Outline, stop: int, ahead: Ints) -> Ints:
    """A shortest path, walked back from its end."""
    found = [stop]
    while ahead[found[-1]] > 0:
        near = _step(outline, np.array(found[-1:], np.int64), forward=False)
        found.append(int(near[ahead[near] == ahead[found[-1]] - 1][0]))
    return np.array(sorted(found), np.int64)


def _together(outline: Outline, one: int, two: int) -> tuple[int, int]:
    """The two, or the instructions that call the computations they are in, so that both are in the same one."""
    first, second = _callers(outline, one), _callers(outline, two)
    homes = {home: caller for caller, home in first}
    for caller, home in second:
        if home in homes:
            return homes[home], caller
    return one, two


def _callers(outline: Outline, item: int) -> list[tuple[int, int]]:
    """An instruction and its callers, each with the item that holds its computation, innermost first."""
    found = []
    at = item
    while at > 0:
        above = int(outline.parent[at])
        while above > 0 and outline.instruction[above] < 0 and not _is_computation(outline, above):
            above = int(outline.parent[above])
        found.append((at, above))
        while above > 0 and outline.instruction[above] < 0:
            above = int(outline.parent[above])
        at = above
    return found


def _is_computation(outline: Outline, item: int) -> bool:
    return int(outline.kind[item]) == Kind.COMPUTATION


def _counted(number: int, word: str) -> str:
    if number > _COUNTED:
        return f"more than {_COUNTED:,} {word}s"
    return f"{number:,} {word}{'s' if number != 1 else ''}"
