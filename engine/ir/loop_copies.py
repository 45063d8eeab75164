"""Which elements of a loop's state have to be copied once an iteration, given the order its body runs in.

An element has one place in memory for the whole loop. Its next value can be written there at once only if the present
one is not read any more; else it is made elsewhere and copied into place. Source: the rule of XLA's copy insertion,
that two values of one buffer must not be live at the same time, applied to a body in a given order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from engine.hlo.hlo_pb2 import HloComputationProto, HloInstructionProto
from engine.ir import aliasing, shapes
from engine.ir.graph import Graph, Ints
from engine.ir.module import Module
from engine.ir.opcodes import ELEMENTWISE

IN_PLACE = ELEMENTWISE | {"bitcast-convert", "map"}
"""Opcodes that may write their result over an operand of the same size."""

ELSEWHERE_IN_FUSION = frozenset(
    {
        "batch-norm-grad", "batch-norm-inference", "batch-norm-training", "cholesky", "convolution", "dot", "fft",
        "gather", "ragged-dot", "reduce", "reduce-window", "reverse", "scaled-dot", "scan", "select-and-scatter",
        "sort", "topk", "transpose", "triangular-solve",
    }
)  # fmt: skip
"""What a fusion must not hold to write over what it reads: it takes elements from elsewhere than where it writes."""

WITHOUT_COPIES = "lapstrake_without_loop_copies"
"""Frontend attribute of modules that carry an order but not the copies that a compiler would have put into it."""


def shows_copies(module: Module) -> bool:
    """Whether the module holds its loop-carried copies itself, as one that a compiler scheduled does."""
    return module.is_scheduled and WITHOUT_COPIES not in module.proto.frontend_attributes.map


@dataclass(frozen=True, slots=True)
class LoopCopy:
    """One array that is copied at the end of every iteration."""

    element: int
    """Index into the loop's state."""
    node: int
    """Node of the body whose value is copied."""
    bytes: int
    """Size of the array; a copy reads and writes it once."""


def loop_copies(module: Module, graph: Graph, order: Ints) -> tuple[LoopCopy, ...]:
    """Copies in the loop body that `graph` is, when its nodes run in `order` (node numbers, shape [n]).

    In ascending order of state elements. Empty for a body whose state is no tuple.
    """
    return _Body(module, graph, order).copies()


class _Body:
    def __init__(self, module: Module, graph: Graph, order: Ints) -> None:
        self.graph = graph
        self.computations: Callable[[int], HloComputationProto] = module.computations.__getitem__
        self.nodes = [module.instructions[int(i)] for i in graph.ids]
        self.number = {i.id: k for k, i in enumerate(self.nodes)}
        self.position = [0] * len(graph)
        for place, node in enumerate(order.tolist()):
            self.position[node] = place

    def copies(self) -> tuple[LoopCopy, ...]:
        root = self.nodes[self.graph.root]
        if root.opcode != "tuple":
            return ()
        found = []
        placed: set[int] = set()
        for element, operand in enumerate(root.operand_ids):
            value = self._behind(self.number[operand])
            size = shapes.byte_count(self.nodes[value].shape)
            if size and (value in placed or self._collides(element, value)):
                found.append(LoopCopy(element, value, size))
            placed.add(value)
        return tuple(found)

    def _collides(self, element: int, value: int) -> bool:
        """Whether `value` would be written where the present value of `element` is still needed."""
        source = self._element(value)
        if source is not None:
            return source != element
        birth, maker = self._birth(value)
        if self._element(maker) == element:
            return False
        last, reader = self._last_read(element)
        if last < birth:
            return False
        return not (last == birth and reader == maker and self._works_in_place(maker, element))

    def _birth(self, value: int) -> tuple[int, int]:
        """When memory of `value` is first written, and by which node: an update in place continues its operand."""
        while True:
            value = self._behind(value)
            instruction = self.nodes[value]
            if instruction.opcode.endswith("-done"):
                value = self.number[instruction.operand_ids[0]]
            target = self._updated(value)
            if target is None:
                return self.position[value], value
            value = target

    def _updated(self, node: int) -> int | None:
        """The operand that `node` updates in place, if nobody reads it afterwards."""
        in_place, must = aliasing.in_place_operands(self.nodes[node], self.computations)
        if () not in in_place:
            return None
        target = self.number[self.nodes[node].operand_ids[in_place[()][0]]]
        later = (self._until(u) for u in self._readers(self._behind(target)) if u != node)
        return target if must or all(place < self.position[node] for place in later) else None

    def _last_read(self, element: int) -> tuple[int, int]:
        """Position up to which the present value of `element` is needed, and the node that reads it then."""
        last, reader = -1, -1
        for node, instruction in enumerate(self.nodes):
            if self._element(node) == element and instruction.opcode == "get-tuple-element":
                for user in self._readers(node):
                    if self._until(user) > last:
                        last, reader = self._until(user), user
        return last, reader

    def _readers(self, node: int) -> list[int]:
        """Nodes that read a value, also through what only gives it another shape. The root is no reader."""
        found = []
        work = [node]
        while work:
            for user in self.graph.users.of(work.pop()).tolist():
                if self._forwards(user):
                    work.append(user)
                elif user != self.graph.root:
                    found.append(user)
        return found

    def _until(self, reader: int) -> int:
        """Up to where a reader needs what it reads: an asynchronous start up to its done."""
        return self.position[int(self.graph.partner[reader])] if self.graph.is_start(reader) else self.position[reader]

    def _works_in_place(self, node: int, element: int) -> bool:
        instruction = self.nodes[node]
        if instruction.opcode == "fusion":
            body = self.computations(instruction.called_computation_ids[0])
            return not any(i.opcode in ELSEWHERE_IN_FUSION for i in body.instructions)
        operands = [self.number[o] for o in instruction.operand_ids]
        same = (o for o in operands if self._element(self._behind(o)) == element)
        size = shapes.byte_count(instruction.shape)
        return instruction.opcode in IN_PLACE and all(shapes.byte_count(self.nodes[o].shape) == size for o in same)

    def _element(self, node: int) -> int | None:
        """Which element of the state a node is as it came in; None for any other value."""
        instruction = self.nodes[node]
        if instruction.opcode != "get-tuple-element":
            return None
        return (
            instruction.tuple_index
            if self.nodes[self.number[instruction.operand_ids[0]]].opcode == "parameter"
            else None
        )

    def _behind(self, node: int) -> int:
        while self._forwards(node):
            node = self.number[self.nodes[node].operand_ids[0]]
        return node

    def _forwards(self, node: int) -> bool:
        instruction: HloInstructionProto = self.nodes[node]
        if instruction.opcode in aliasing.FORWARDING:
            return True
        return instruction.opcode == "reshape" and aliasing.relabels(
            instruction, self.nodes[self.number[instruction.operand_ids[0]]]
        )
