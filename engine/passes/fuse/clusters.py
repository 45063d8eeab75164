"""Instructions gathered into clusters, each to become one fusion; what a cluster accepts is XLA's kind of rules.

A member's users all lie in its cluster, but for the results'. While the root is the only result no cluster can be part
of a cycle; `merging` then gives some more. What einsums take is what the TPU compiler's do (libtpu 0.0.51, by compiling
small programs).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from engine.ir.opcodes import ELEMENTWISE
from engine.passes.fuse.body import Body
from engine.passes.fuse.roles import REPEATABLE, Role

MOST_MEMBERS = 256
"""Instructions of one fusion, with those that are done again in it."""
MOST_OPERANDS = 64
"""Arrays that one fusion reads."""
MOST_COPIES = 4
"""Readers for which an instruction is done again rather than written to memory."""

_AFTER_EINSUM = ("slice", "reshape", "bitcast")
"""Indexing that an einsum's result may pass through inside its fusion; where a dynamic slice lies is known too late."""
BEFORE_EINSUM = ELEMENTWISE | {
    "bitcast", "broadcast", "dynamic-slice", "iota", "pad", "reshape", "reverse", "slice", "transpose"
}  # fmt: skip
"""What an einsum's operand may be made by inside its fusion, for every tile that reads it anew."""


@dataclass
class Cluster:
    """Instructions that become one fusion."""

    number: int
    root: int
    members: list[int]
    """Descending positions, the root first, until `merging` adds readers."""
    reads: int = 0
    """Operands of all that it computes, each as often as it is read."""
    einsum: int = -1
    further: list[int] = field(default_factory=list)
    """Other members that are needed outside."""
    copies: dict[int, None] = field(default_factory=dict)
    """Instructions outside that are done again inside."""
    epilogue: set[int] = field(default_factory=set)
    """Members from which only element-wise work leads to the root: an einsum may feed these."""
    prologue: set[int] = field(default_factory=set)
    """Members that the einsum reads, directly or through each other."""

    def __len__(self) -> int:
        return len(self.members) + len(self.copies)

    @property
    def results(self) -> tuple[int, ...]:
        """Members that are needed outside, the root first."""
        return self.root, *self.further


class Clusters:
    """A partition of a body under construction. Instructions are offered in reverse order: users before operands."""

    def __init__(self, body: Body) -> None:
        self.body = body
        self.of: list[int] = [-1] * len(body)
        """Cluster of each node, -1 for none; a node that is only copied into its readers has none."""
        self.all: dict[int, Cluster] = {}
        self.holders: dict[int, list[int]] = {}
        """For a node that is only copied into its readers, the numbers of their clusters."""

    def alone(self, node: int) -> Cluster:
        """Begin a cluster with `node` as its root."""
        role = self.body.roles[node]
        cluster = Cluster(node, node, [node], len(self.body.operands[node]), node if role is Role.EINSUM else -1)
        if role in (Role.ELEMENTWISE, Role.UPDATE) or self._passes_einsum(node):
            cluster.epilogue.add(node)
        if role is Role.EINSUM:
            cluster.prologue.add(node)
        self.all[node] = cluster
        self.of[node] = node
        return cluster

    def join(self, node: int, cluster: Cluster) -> None:
        """Take `node` in; `refusal` has been asked."""
        cluster.members.append(node)
        cluster.reads += len(self.body.operands[node])
        self.of[node] = cluster.number
        self._mark(node, cluster)

    def copy_into(self, node: int, clusters: list[Cluster]) -> None:
        """Let `node` be done again inside each of `clusters` instead of on its own."""
        self.holders[node] = [c.number for c in clusters]
        for cluster in clusters:
            cluster.copies[node] = None
            cluster.reads += len(self.body.operands[node])
            self._mark(node, cluster)

    def absorb(self, cluster: Cluster, reader: Cluster) -> None:
        """Make `reader`, which reads results of `cluster`, part of it; what nothing else needs is no result then."""
        del self.all[reader.number]
        for member in reader.members:
            self.of[member] = cluster.number
        twice = cluster.copies.keys() & reader.copies.keys()
        cluster.reads += reader.reads - sum(len(self.body.operands[copied]) for copied in twice)
        cluster.members.extend(reader.members)
        cluster.copies |= reader.copies
        cluster.epilogue |= reader.epilogue
        for copied in reader.copies:
            others = [n for n in self.holders[copied] if n not in (reader.number, cluster.number)]
            self.holders[copied] = [*others, cluster.number]
        results = [r for r in (*cluster.results, *reader.results) if self._is_needed(r, cluster)]
        cluster.root, cluster.further = results[0], results[1:]

    def holding(self, node: int) -> list[int]:
        """Numbers of the clusters that compute `node`."""
        return [self.of[node]] if self.of[node] >= 0 else self.holders.get(node, [])

    def _is_needed(self, node: int, cluster: Cluster) -> bool:
        """Whether anything outside reads it, or nothing at all does: what is dead is a result like another."""
        users = self.body.users[node]
        return node == self.body.root or not users or any(self.holding(u) != [cluster.number] for u in users)

    def readers(self, node: int) -> list[Cluster] | None:
        """The clusters that read `node`; None where something outside any cluster does, or nothing does."""
        found: dict[int, Cluster] = {}
        if node == self.body.root or not self.body.users[node]:
            return None
        for user in self.body.users[node]:
            if self.of[user] >= 0:
                found[self.of[user]] = self.all[self.of[user]]
                continue
            if user not in self.holders:
                return None
            found.update((number, self.all[number]) for number in self.holders[user])
        return list(found.values())

    def refusal(self, node: int, cluster: Cluster) -> str | None:
        """Why `node` may not join `cluster`, which holds all its users; None when it may."""
        role = self.body.roles[node]
        users = [u for u in self.body.users[node] if u in cluster.epilogue or self._within(u, cluster)]
        if len(cluster) >= MOST_MEMBERS:
            return f"the fusion has {MOST_MEMBERS} instructions already"
        if self._reads_with(node, cluster) > MOST_OPERANDS:
            return f"the fusion would read more than {MOST_OPERANDS} arrays"
        if role is Role.REDUCE:
            return "a reduction ends its fusion"
        if role is Role.UPDATE:
            return "an update in place ends its fusion"
        if role is Role.EINSUM:
            return self._refuse_einsum(node, users, cluster)
        if any(u in cluster.prologue for u in users):
            if self._ends_einsum[node]:
                return "it is part of the fusion of the einsum before it"
            opcode = self.body.instructions[node].opcode
            if opcode not in BEFORE_EINSUM:
                return f"{opcode} would be computed again for every tile of the einsum"
            if any(self.body.instructions[u].opcode == "pad" for u in users):
                return "an einsum pads what comes from memory"
        if self._reads_updated(node, cluster):
            return "it reads the array that the fusion updates in place"
        return None

    def operands(self, cluster: Cluster) -> dict[int, None]:
        """What the cluster reads from outside, in order of first use; scalar constants are carried inside."""
        inside = {*cluster.members, *cluster.copies}
        found: dict[int, None] = {}
        for member in sorted(inside):
            for operand in self.body.operands[member]:
                if operand not in inside and not self.body.constants[operand]:
                    found[operand] = None
        return found

    def _reads_with(self, node: int, cluster: Cluster) -> int:
        """How many arrays the cluster would read with `node` in it, or a number that is not too small if few enough."""
        own = len(self.body.operands[node])
        most = own + cluster.reads
        return most if most <= MOST_OPERANDS else own + len(self.operands(cluster))

    def copyable(self, node: int, clusters: list[Cluster]) -> bool:
        """Whether `node` is cheap enough to be done once in each of `clusters`, and each takes it."""
        if len(clusters) > MOST_COPIES or self.body.instructions[node].opcode not in REPEATABLE:
            return False
        if self._ends_einsum[node]:
            return False
        return all(self.refusal(node, c) is None for c in clusters)

    @cached_property
    def _ends_einsum(self) -> Sequence[bool]:
        """By node, whether element-wise work leads to it from an einsum that nothing else reads: it is done there."""
        body, found = self.body, [False] * len(self.body)
        for node, role in enumerate(body.roles):
            if role is Role.ELEMENTWISE:
                found[node] = any(
                    (found[o] or body.roles[o] is Role.EINSUM) and body.users[o] == [node] for o in body.operands[node]
                )
        return found

    def _refuse_einsum(self, node: int, users: list[int], cluster: Cluster) -> str | None:
        if cluster.einsum >= 0:
            return f"it already has an einsum, {self.body.instructions[cluster.einsum].name}"
        for user in users:
            if user not in cluster.epilogue:
                return f"{self.body.instructions[user].opcode} cannot be computed on an einsum's tiles"
            if self.body.roles[user] is Role.UPDATE and self.body.operands[user][0] == node:
                return "the array that is updated in place would not exist"
        return None

    def _reads_updated(self, node: int, cluster: Cluster) -> bool:
        updated = {self.body.operands[m][0] for m in cluster.members if self.body.roles[m] is Role.UPDATE}
        return not updated.isdisjoint(self.body.operands[node])

    def _mark(self, node: int, cluster: Cluster) -> None:
        role = self.body.roles[node]
        users = [u for u in self.body.users[node] if self._within(u, cluster)]
        if (role is Role.ELEMENTWISE or self._passes_einsum(node) or role is Role.UPDATE) and all(
            u in cluster.epilogue for u in users
        ):
            cluster.epilogue.add(node)
        if role is Role.EINSUM:
            cluster.einsum = node
            cluster.prologue.add(node)
        elif any(u in cluster.prologue for u in users):
            cluster.prologue.add(node)

    def _within(self, node: int, cluster: Cluster) -> bool:
        return self.of[node] == cluster.number or node in cluster.copies

    def _passes_einsum(self, node: int) -> bool:
        return self.body.instructions[node].opcode in _AFTER_EINSUM
