"""Which groups are open, in a form that holds across modules: stepping through passes keeps them open."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from engine.layout.outline import Kind, Outline

Key = tuple[int, str, int]
FIRST = 60
"""Nodes up to which groups are opened before anyone asked."""


def key_of(outline: Outline, item: int) -> Key:
    """Of an instruction its id; of a group its kind and path, of a stretch where it begins."""
    instruction = int(outline.instruction[item])
    if instruction >= 0:
        return (Kind.INSTRUCTION, "", instruction)
    kind = int(outline.kind[item])
    if kind == Kind.RUN:
        inside = outline.instruction[item : outline.end[item]]
        return (kind, "", int(inside[inside >= 0][0]))
    return (kind, outline.paths[item] or outline.names[item], 0)


def items_of(outline: Outline, keys: Iterable[Key]) -> frozenset[int]:
    """The groups of an outline that have one of these keys."""
    wanted = frozenset(keys)
    if not wanted:
        return frozenset()
    groups = np.flatnonzero(outline.end > np.arange(len(outline)) + 1).tolist()
    return frozenset(item for item in groups if key_of(outline, item) in wanted)


def first_opened(outline: Outline) -> frozenset[int]:
    """The largest groups, while few nodes are shown: what is seen before anything was opened."""
    opened: frozenset[int] = frozenset()
    refused: set[int] = set()
    while True:
        closed = [i for i in outline.shown(opened).tolist() if i and i not in opened and i not in refused]
        closed = [i for i in closed if outline.is_group(i) and _worth_opening(outline, i)]
        if not closed:
            return opened
        largest = max(closed, key=lambda i: int(outline.end[i]) - i)
        if outline.count_shown(opened | {largest}) > FIRST:
            refused.add(largest)
        else:
            opened |= {largest}


def _worth_opening(outline: Outline, item: int) -> bool:
    return outline.instruction[item] < 0 or outline.details[item].startswith(("while", "call", "conditional"))


def with_descendants(outline: Outline, opened: frozenset[int], item: int, most: int) -> tuple[frozenset[int], bool]:
    """`item` and the groups in it opened, outer ones first, until `most` nodes are shown. And whether all were."""
    found = opened | {item}
    count = outline.count_shown(found)
    for inner in range(item + 1, int(outline.end[item])):
        if not outline.is_group(inner) or inner in found or int(outline.parent[inner]) not in found:
            continue
        count += len(outline.children(inner)) - 1
        if count > most:
            return found, False
        found |= {inner}
    return found, True
