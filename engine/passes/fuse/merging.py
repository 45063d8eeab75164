"""Fusions of several results: what is needed itself is written by the fusion that computes its readers too.

The TPU compiler (libtpu 0.0.51, by compiling small programs) lets element-wise readers of a result, and reductions of
it, join the fusion that makes it, an einsum's as well, whether or not anything else needs the result. `Clusters` have
one result, so that none is part of a cycle; here an order of all that runs is kept while clusters merge.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from engine.passes.fuse.body import Body
from engine.passes.fuse.clusters import MOST_MEMBERS, MOST_OPERANDS, Cluster, Clusters
from engine.passes.fuse.roles import Role

MOST_RESULTS = 4
"""Arrays that one fusion writes."""

_GAP = 1 << 60
"""Room between the numbers of two neighbours at first: what moves between them halves it at least."""

_REARRANGING = frozenset({"concatenate", "pad", "reverse", "transpose"})
"""What no fusion does beside a result."""


def merge(body: Body, clusters: Clusters, apart: Collection[str]) -> None:
    """Let clusters take in the readers of their results, where these wait for nothing else.

    `apart`: names of instructions that begin a fusion of their own.
    """
    running = _Running(body, clusters)
    for number in sorted(clusters.all):
        while number in clusters.all:
            cluster = clusters.all[number]
            joined = next((r for r in _readers(clusters, cluster) if running.joins(cluster, r, apart)), None)
            if joined is None:
                break
            clusters.absorb(cluster, joined)


def _readers(clusters: Clusters, cluster: Cluster) -> Iterator[Cluster]:
    """Other clusters that read a result, in the body's order."""
    found: dict[int, None] = {}
    for result in cluster.results:
        for user in clusters.body.users[result]:
            found.update(dict.fromkeys(clusters.holding(user)))
    yield from (clusters.all[number] for number in sorted(found) if number != cluster.number)


class _Running:
    """What runs, in an order in which operands come first: clusters by their numbers, other nodes by theirs."""

    def __init__(self, body: Body, clusters: Clusters) -> None:
        self._body, self._clusters = body, clusters
        self._at = [place * _GAP for place in range(len(body))]
        """What comes later has a higher number: with room between two, what moves touches nothing that stays."""
        self._previous = list(range(-1, len(body) - 1))
        self._next = list(range(1, len(body) + 1))
        """Neighbours in that order; what joined something else stays in it, and nothing asks for it."""

    def joins(self, cluster: Cluster, reader: Cluster, apart: Collection[str]) -> bool:
        """Whether `reader` may become part of `cluster`; the order is then one in which it has."""
        return (
            _fits(self._body, cluster, reader, apart)
            and self._waits_for_nothing_else(cluster, reader)
            and self._moves(cluster, reader)
        )

    def _waits_for_nothing_else(self, cluster: Cluster, reader: Cluster) -> bool:
        """Whether the cluster waits for every transfer anyway that the reader waits for."""
        body, own = self._body, (*cluster.members, *cluster.copies)
        last = max(own)
        found = {
            done
            for operand in self._clusters.operands(reader)
            if operand not in cluster.results
            for done in body.arrivals_at(operand)
        }
        return all(any(body.depends_on(m, done) for m in {last, *cluster.results}) for done in found)

    def _moves(self, cluster: Cluster, reader: Cluster) -> bool:
        """Put what the reader needs, and what lies behind the cluster, in front of it; False where that needs it."""
        first, last = self._at[cluster.number], self._at[reader.number]
        needed: set[int] = set()
        work = [reader.number]
        while work:
            for before in self._before(work.pop()):
                if before == cluster.number or not first < self._at[before] < last or before in needed:
                    continue
                needed.add(before)
                work.append(before)
        if any(cluster.number in self._before(other) for other in needed):
            return False
        self._put_before(cluster.number, sorted(needed, key=self._at.__getitem__))
        return True

    def _put_before(self, number: int, moved: Sequence[int]) -> None:
        """Take what is `moved`, in its order, from behind `number` and put it right in front of it."""
        previous, next_, at = self._previous, self._next, self._at
        for node in moved:
            next_[previous[node]] = next_[node]  # what comes before them is never the end: `number` does
            if next_[node] < len(at):
                previous[next_[node]] = previous[node]
        last = previous[number]
        low = at[last] if last >= 0 else at[number] - _GAP
        step = (at[number] - low) // (len(moved) + 1)
        for count, node in enumerate(moved, start=1):
            previous[node], at[node] = last, low + count * step
            if last >= 0:
                next_[last] = node
            last = node
        previous[number] = last
        if last >= 0:
            next_[last] = number
        if step == 0 and moved:
            self._space_out(number)

    def _space_out(self, number: int) -> None:
        """Number everything anew, from any one of it."""
        while self._previous[number] >= 0:
            number = self._previous[number]
        place = 0
        while number < len(self._at):
            self._at[number] = place * _GAP
            number, place = self._next[number], place + 1

    def _before(self, number: int) -> Iterator[int]:
        """Numbers of what one thing that runs reads, or follows by a control edge."""
        cluster = self._clusters.all.get(number)
        read = (*self._body.operands[number], *self._body.controls[number])
        for node in read if cluster is None else self._clusters.operands(cluster):
            holder = self._clusters.of[node]
            yield node if holder < 0 else holder


def _fits(body: Body, cluster: Cluster, reader: Cluster, apart: Collection[str]) -> bool:
    """Whether one fusion can compute both."""
    if reader.einsum >= 0:
        return False
    if apart and any(body.instructions[r].name in apart for r in (*cluster.results, reader.root)):
        return False
    if len(cluster) + len(reader) > MOST_MEMBERS or len(cluster.results) >= MOST_RESULTS:
        return False
    if cluster.reads + reader.reads > MOST_OPERANDS:
        return False
    if any(body.roles[r] not in (Role.ELEMENTWISE, Role.EINSUM, Role.REDUCE) for r in cluster.results):
        return False
    roots = [r for r in cluster.results if body.roles[r] is not Role.REDUCE]
    if cluster.einsum >= 0 and not all(r == cluster.einsum or r in cluster.epilogue for r in roots):
        return False
    extents = {tuple(body.instructions[r].shape.dimensions) for r in roots}
    return len(extents) == 1 and _follows(body, cluster, reader, extents.pop())


def _follows(body: Body, cluster: Cluster, reader: Cluster, extents: tuple[int, ...]) -> bool:
    """Whether what a reader makes of results is made element by element, a reduction at its end at most."""
    fed = set(cluster.results)
    for member in sorted({*reader.members, *reader.copies}):
        role, instruction = body.roles[member], body.instructions[member]
        if fed.isdisjoint(body.operands[member]):
            if role in (Role.REDUCE, Role.UPDATE) or instruction.opcode in _REARRANGING:
                return False
            continue
        fed.add(member)
        if role is Role.REDUCE:
            if any(tuple(body.instructions[o].shape.dimensions) != extents for o in body.operands[member] if o in fed):
                return False
        elif role is not Role.ELEMENTWISE or tuple(instruction.shape.dimensions) != extents:
            return False
    return reader.root in fed
