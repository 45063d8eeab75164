"""Transfers that a loop carries in its state: started in one iteration, waited for in the next or after the loop.

A pipelined `send` or `recv` leaves the loop's body through its root tuple, comes back through the body's parameter, and
reaches the first iteration from a start that the caller put into the loop's initial state.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from engine.hlo.hlo_pb2 import HloInstructionProto
from engine.ir.graph import Graph
from engine.ir.module import Module
from engine.ir.opcodes import is_start

_SLOTS = -(1 << 40)
_LOOPS = -(1 << 50)
_MOST_SLOTS = 1 << 16


def slot_key(slot: int) -> int:
    """Owner of the transfer in element `slot` of a loop's state, inside the loop."""
    return _SLOTS - slot


def loop_key(node: int, slot: int) -> int:
    """Owner of the transfer in element `slot` of the state of the loop at `node`, in the computation that runs it."""
    return _LOOPS - node * _MOST_SLOTS - slot


def slot_of(owner: int, node: int) -> int | None:
    """The element of the state of the loop at `node` that `owner` stands for, None for other owners."""
    slot = loop_key(node, 0) - owner
    return slot if 0 <= slot < _MOST_SLOTS else None


@dataclass(frozen=True, eq=False)
class Carried:
    """What one computation does with transfers in loop state, by node."""

    takes: Mapping[int, int]
    """Done → element of the computation's own state that it waits for."""
    leaves: Mapping[int, int]
    """Start → element of the computation's result that it is."""
    enters: Mapping[int, Mapping[int, int]]
    """Loop → (start → element of the loop's initial state that it is)."""
    after: Mapping[int, tuple[int, int]]
    """Done → (loop, element of the loop's result that it waits for)."""


NOTHING = Carried({}, {}, {}, {})


def carried_of(module: Module, graph: Graph) -> Carried:
    """Find starts and dones that have no partner in their own computation and pass through loop state."""
    lone = [
        n
        for n, opcode in enumerate(graph.opcodes)
        if graph.partner[n] < 0 and (is_start(opcode) or opcode.endswith("-done"))
    ]
    if not lone:
        return NOTHING
    number = {int(id_): node for node, id_ in enumerate(graph.ids)}
    instructions = [module.instructions[int(id_)] for id_ in graph.ids]
    starts = {node for node in lone if is_start(graph.opcodes[node])}

    def elements(tuple_: HloInstructionProto) -> Mapping[int, int]:
        """Lone starts that are elements of a tuple, with their place in it."""
        if tuple_.opcode != "tuple":
            return {}
        places = ((number[operand], place) for place, operand in enumerate(tuple_.operand_ids))
        return {node: place for node, place in places if node in starts}

    takes: dict[int, int] = {}
    after: dict[int, tuple[int, int]] = {}
    for node in lone:
        if node in starts:
            continue
        element = instructions[number[instructions[node].operand_ids[0]]]
        if element.opcode != "get-tuple-element":
            continue
        source = number[element.operand_ids[0]]
        if graph.opcodes[source] == "parameter":
            takes[node] = element.tuple_index
        elif graph.opcodes[source] == "while":
            after[node] = (source, element.tuple_index)
    loops = (node for node, opcode in enumerate(graph.opcodes) if opcode == "while")
    enters = {loop: elements(instructions[number[instructions[loop].operand_ids[0]]]) for loop in loops}
    return Carried(takes, elements(instructions[graph.root]), {k: v for k, v in enters.items() if v}, after)
