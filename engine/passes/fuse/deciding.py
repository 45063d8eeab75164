"""Which instructions become one fusion, under a policy and the user's own choices.

`default` is greedy, as a compiler that does not think of overlap: whatever may join the fusion of its only reader does,
and of two einsums that an add reads the nearer one takes it (Wang et al., Figure 11a). `overlap` keeps an einsum out of
a fusion that waits for a transfer the einsum does not need, so that it can run while the transfer does; the add then
goes to the einsum that waits anyway (Figure 11b), or stays apart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from engine.passes.fuse.body import Body
from engine.passes.fuse.clusters import Cluster, Clusters
from engine.passes.fuse.merging import merge
from engine.passes.fuse.roles import Role

Judge = Callable[[int, tuple[int, ...]], bool]
"""(einsum, dones): whether the einsum had better stay out of a fusion that waits for these dones."""


@dataclass(frozen=True)
class Choices:
    """What the user decided, by instruction name."""

    together: Mapping[str, str] = field(default_factory=dict)
    """Reader → the einsum that joins its fusion; no other may."""
    apart: frozenset[str] = frozenset()
    """Instructions that begin a fusion of their own instead of joining their reader's."""


@dataclass(frozen=True, slots=True)
class Contest:
    """An einsum that could join a fusion which waits for transfers it does not need."""

    einsum: int
    reader: int
    """The instruction of the fusion that reads the einsum."""
    dones: tuple[int, ...]
    """Positions of the dones it would wait for."""
    joined: bool


@dataclass(frozen=True)
class Decided:
    """Clusters of one body and what was weighed on the way."""

    clusters: Clusters
    contests: tuple[Contest, ...]


def decide(body: Body, keep_out: Judge, choices: Choices) -> Decided:
    """Gather a body's instructions into clusters. Linear in the body but for the paths between a fusion's results."""
    clusters = Clusters(body)
    contests: list[Contest] = []
    for node in range(len(body) - 1, -1, -1):
        if body.roles[node] is Role.BARRIER or body.constants[node]:
            continue
        readers = clusters.readers(node)
        if readers is None or body.instructions[node].name in choices.apart:
            clusters.alone(node)
        elif body.roles[node] is Role.EINSUM:
            _place_einsum(body, clusters, node, readers, keep_out, choices, contests)
        elif len(readers) == 1 and clusters.refusal(node, readers[0]) is None:
            clusters.join(node, readers[0])
        elif len(readers) > 1 and clusters.copyable(node, readers):
            clusters.copy_into(node, readers)
        else:
            clusters.alone(node)
    merge(body, clusters, choices.apart)
    return Decided(clusters, tuple(contests))


def _place_einsum(
    body: Body,
    clusters: Clusters,
    node: int,
    readers: list[Cluster],
    keep_out: Judge,
    choices: Choices,
    contests: list[Contest],
) -> None:
    # With several readers it is written out; those that take it element by element may still join it (`merging`),
    # slices that take it apart do not.
    wanted = _wanted(body, node, choices)
    if len(readers) > 1 or wanted is False or clusters.refusal(node, readers[0]) is not None:
        clusters.alone(node)
        return
    reader = readers[0]
    dones = _foreign_arrivals(body, clusters, node, reader)
    joins = wanted is True or not dones or not keep_out(node, dones)
    if dones:
        contests.append(Contest(node, body.users[node][0], dones, joins))
    if joins:
        clusters.join(node, reader)
    else:
        clusters.alone(node)


def _wanted(body: Body, node: int, choices: Choices) -> bool | None:
    """What the user said about this einsum and its readers; None for nothing."""
    name = body.instructions[node].name
    said = [choices.together.get(body.instructions[u].name) for u in body.users[node]]
    if name in said:
        return True
    return False if any(s is not None for s in said) else None


def _foreign_arrivals(body: Body, clusters: Clusters, node: int, reader: Cluster) -> tuple[int, ...]:
    """Dones that the reader waits for by way of other operands, and on which `node` does not depend."""
    found: dict[int, None] = {}
    for operand in clusters.operands(reader):
        if operand != node:
            found.update(dict.fromkeys(body.arrivals_at(operand)))
    return tuple(d for d in found if not body.depends_on(node, d))
