"""Random computations with transfers: what benchmarks and tests of schedulers run on besides real modules."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from engine.chips.budget import Budget, Kind
from engine.ir.buffers import Buffers
from engine.ir.graph import Csr, Graph, Ints
from engine.schedule.problem import Problem

DENSITIES = {"light": (2, 4), "medium": (3, 6), "heavy": (5, 8)}
"""Least and most transfers in a body of 20 to 40 instructions."""

MICROSECOND = 1_000_000

UNBOUNDED = Budget()
FOUR = Budget(4)


@dataclass
class Sketch:
    """A computation being put together; nodes are numbered in the order they are added."""

    operands: list[list[int]] = field(default_factory=list)
    controls: list[list[int]] = field(default_factory=list)
    opcodes: list[str] = field(default_factory=list)
    compute: list[int] = field(default_factory=list)
    transfer: list[int] = field(default_factory=list)
    kind: list[Kind] = field(default_factory=list)
    partner: list[int] = field(default_factory=list)
    size: list[int] = field(default_factory=list)
    held: list[int] = field(default_factory=list)
    group: list[int] = field(default_factory=list)

    def add(
        self,
        operands: Sequence[int] = (),
        *,
        compute: int = 0,
        size: int = 1,
        opcode: str = "fusion",
        controls: Sequence[int] = (),
        kind: Kind = Kind.COMPUTE,
        transfer: int = 0,
        held: int = 0,
        group: int = -1,
    ) -> int:
        """One instruction that takes `compute` picoseconds and makes a buffer of `size` bytes."""
        self.operands.append(list(operands))
        self.controls.append(list(controls))
        self.opcodes.append(opcode)
        self.compute.append(compute)
        self.transfer.append(transfer)
        self.kind.append(kind)
        self.partner.append(-1)
        self.size.append(size)
        self.held.append(held)
        self.group.append(group)
        return len(self.operands) - 1

    def send(
        self,
        operands: Sequence[int],
        transfer: int,
        *,
        compute: int = 0,
        size: int = 1,
        kind: Kind = Kind.PERMUTE,
        group: int = -1,
    ) -> tuple[int, int]:
        """A start and its done."""
        start = self.add(
            operands,
            opcode="collective-permute-start",
            compute=compute,
            kind=kind,
            transfer=transfer,
            size=size,
            group=group,
        )
        return start, self.finish(start)

    def finish(self, start: int, controls: Sequence[int] = (), *, compute: int = 0) -> int:
        """The done of `start`."""
        done = self.add(
            [start],
            opcode="collective-permute-done",
            compute=compute,
            kind=self.kind[start],
            size=0,
            controls=controls,
            group=self.group[start],
        )
        self.partner[start], self.partner[done] = done, start
        return done

    def graph(self) -> Graph:
        n = len(self.operands)
        edges = [sorted({*o, *c}) for o, c in zip(self.operands, self.controls, strict=True)]
        return Graph(
            computation=1,
            name="synthetic",
            ids=np.arange(n, dtype=np.int64),
            names=tuple(f"{opcode}.{k}" for k, opcode in enumerate(self.opcodes)),
            opcodes=tuple(self.opcodes),
            operands=_csr(self.operands),
            users=_inverse([sorted(set(o)) for o in self.operands]),
            controls=_csr(self.controls),
            predecessors=_csr(edges),
            successors=_inverse(edges),
            called=_csr([[] for _ in range(n)]),
            partner=np.array(self.partner, np.int64),
            root=n - 1,
        )

    def problem(self, budget: Budget = UNBOUNDED, memory_cap: int | None = None) -> Problem:
        graph = self.graph()
        held = np.zeros((len(graph), len(Kind)), np.int64)
        held[:, Kind.PERMUTE] = self.held
        return Problem(
            graph=graph,
            compute=np.array(self.compute, np.int64),
            transfer=np.array(self.transfer, np.int64),
            kind=np.array(self.kind, np.uint8),
            held=held,
            buffers=self.buffers(graph),
            budget=budget,
            memory_cap=memory_cap,
            group=np.array(self.group, np.int64) if any(g >= 0 for g in self.group) else None,
        )

    def buffers(self, graph: Graph) -> Buffers:
        """One buffer a node of nonzero size; a done passes its start's on and holds the start's operands."""
        owner = [k for k, size in enumerate(self.size) if size]
        number = {node: b for b, node in enumerate(owner)}
        readers: list[set[int]] = [set() for _ in owner]
        source = [p if 0 <= p < k else k for k, p in enumerate(self.partner)]
        for node, operands in enumerate(self.operands):
            read = {source[o] for o in operands}
            if source[node] != node:
                read |= {source[o] for o in self.operands[source[node]]}
            for o in read:
                if o in number:
                    readers[number[o]].add(node)
        touched = [[] if k not in number else [number[k]] for k in range(len(graph))]
        for b, nodes in enumerate(readers):
            for node in nodes:
                touched[node].append(b)
        live_out = np.zeros(len(owner), np.bool_)
        if source[graph.root] in number:
            live_out[number[source[graph.root]]] = True
        return Buffers(
            size=np.array([self.size[k] for k in owner], np.int64),
            node=np.array(owner, np.int64),
            readers=_csr([sorted(r) for r in readers]),
            touches=_csr([sorted(t) for t in touched]),
            live_in=np.array([self.opcodes[k] == "parameter" for k in owner], np.bool_),
            live_out=live_out,
        )


def random_body(seed: int, density: str = "medium", budget: Budget = FOUR) -> Problem:
    """A loop body of 20 to 40 instructions; `density` says how many transfers it has (`DENSITIES`)."""
    rng = random.Random(f"{density} {seed}")
    count = rng.randint(20, 40)
    transfers = rng.randint(*DENSITIES[density])
    sends = set(rng.sample(range(2, count - transfers), transfers))
    return random_sketch(rng, count - transfers, sends, reach=rng.choice((6, 10, 16))).problem(budget)


def random_module(seed: int, count: int, budget: Budget = FOUR, width: int = 60) -> Problem:
    """A computation of about `count` instructions, one in fifty of them a transfer."""
    rng = random.Random(f"module {seed}")
    sends = {k for k in range(2, count) if rng.random() < 0.02}
    return random_sketch(rng, count - len(sends), sends, reach=width).problem(budget)


def random_sketch(rng: random.Random, steps: int, sends: set[int], reach: int) -> Sketch:
    """Each of `steps` instructions reads a few of the last `reach`; those in `sends` are start and done pairs."""
    sketch = Sketch()
    recent: list[int] = []
    for step in range(steps):
        several = rng.choice((1, 1, 2, 2, 3))
        operands = sorted(rng.sample(recent, min(len(recent), several))) if rng.random() < 0.9 else []
        size = rng.choice((1, 4, 16, 64)) << 20
        if step in sends and recent:
            made = sketch.send(operands[:1] or [rng.choice(recent)], rng.randint(20, 200) * MICROSECOND, size=size)[1]
        else:
            made = sketch.add(operands, compute=rng.choice((0, 1, 5, 20, 50, 100)) * MICROSECOND, size=size)
        recent = [*recent, made][-reach:]
    used = {o for operands in sketch.operands for o in operands}
    sketch.add([k for k in range(len(sketch.operands)) if k not in used], opcode="tuple", size=0)
    return sketch


def _csr(rows: Sequence[Sequence[int]]) -> Csr:
    starts = np.zeros(len(rows) + 1, np.int64)
    np.cumsum([len(r) for r in rows], out=starts[1:])
    items: Ints = np.array([item for row in rows for item in row], np.int64)
    return Csr(starts, items)


def _inverse(rows: Sequence[Sequence[int]]) -> Csr:
    inverse: list[list[int]] = [[] for _ in rows]
    for k, row in enumerate(rows):
        for item in row:
            inverse[item].append(k)
    return _csr(inverse)
