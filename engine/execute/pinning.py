"""Forces an order on a module that a compiler is about to schedule: each instruction waits for the one before it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from engine.errors import UnsupportedError
from engine.hlo.hlo_pb2 import HloComputationProto, HloModuleProto

_FIRST = ("parameter", "constant")

UNTIMED = frozenset({*_FIRST, "get-tuple-element", "bitcast", "tuple"})
"""Opcodes that take no time and are not chained. The compiler takes some of them away after scheduling; a dependency
on one would pass to its operand then, and could close a cycle."""


class Pin:
    """A transform that forces orders on modules that have exactly the instructions named, and keeps count."""

    def __init__(self) -> None:
        self.orders: Mapping[str, Sequence[str]] = {}
        """Computation name → all its instructions in the order wanted; empty to leave modules alone."""
        self.pinned: list[str] = []
        """Computations whose order was forced since `orders` was set."""
        self.refused: UnsupportedError | None = None
        """Why not: an error raised inside of the compiler would be its own."""

    def ask(self, orders: Mapping[str, Sequence[str]]) -> None:
        self.orders, self.pinned, self.refused = orders, [], None

    def __call__(self, serialised: bytes) -> bytes | None:
        if not self.orders:
            return None
        proto = HloModuleProto.FromString(serialised)
        for computation in proto.computations:
            order = self.orders.get(computation.name)
            if order is None:
                continue
            try:
                force(proto, computation, order)
            except UnsupportedError as refusal:
                self.refused = refusal
                return None
            self.pinned.append(computation.name)
        return proto.SerializeToString() if self.pinned else None


def force(proto: HloModuleProto, computation: HloComputationProto, order: Sequence[str]) -> None:
    """Chain what takes time in one computation by control dependencies and write the order as its schedule.

    Raises UnsupportedError where the instructions are not those of `order`.
    """
    known = {instruction.name: instruction for instruction in computation.instructions}
    if known.keys() != set(order):
        strange = sorted(known.keys() ^ set(order))[0]
        raise UnsupportedError(
            f"the compiler made other instructions of {computation.name} than in the run whose order is to be kept: "
            f"{strange} is only in one of them"
        )
    wanted = [known[name] for name in order]
    previous = None
    for instruction in wanted:
        if instruction.opcode in UNTIMED:
            continue
        del instruction.control_predecessor_ids[:]
        if previous is not None:
            instruction.control_predecessor_ids.append(previous.id)
        previous = instruction
    # Protos list instructions after what they depend on, control dependencies included.
    sequence = sorted(wanted, key=lambda i: i.opcode not in _FIRST)
    copies = [type(i).FromString(i.SerializeToString()) for i in sequence]
    del computation.instructions[:]
    computation.instructions.extend(copies)
    if computation.id in proto.schedule.sequences:
        del proto.schedule.sequences[computation.id].instruction_ids[:]
        proto.schedule.sequences[computation.id].instruction_ids.extend(i.id for i in copies)
