"""What each node is drawn as, and on which lane its transfer lies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from engine.chips.budget import Kind
from engine.hlo.hlo_pb2 import HloComputationProto, HloInstructionProto, PrimitiveType, ShapeProto
from engine.ir.graph import Graph
from engine.ir.module import Module
from engine.ir.opcodes import MATMULS
from engine.simulate.work import Work
from engine.timeline.timeline import Category

_EINSUM_CALLS = ("gemm", "matmul", "$dot", "conv")
"""Parts of the names of custom-call targets that are matrix products or convolutions."""
_LAYOUT = frozenset({"copy", "transpose", "reshape", "bitcast-convert", "copy-start", "copy-done"})
_SILENT = frozenset({"parameter", "constant", "tuple", "get-tuple-element", "bitcast"})
"""Opcodes that say nothing about what a fusion does."""

_TITLES: Mapping[Kind, str] = {
    Kind.PERMUTE: "permute",
    Kind.ALL_GATHER: "all-gather",
    Kind.REDUCE_SCATTER: "reduce-scatter",
    Kind.ALL_REDUCE: "all-reduce",
    Kind.ALL_TO_ALL: "all-to-all",
    Kind.COPY: "copies",
    Kind.OTHER: "other transfers",
    Kind.COMPUTE: "other transfers",
}


@dataclass(frozen=True, slots=True)
class Content:
    """What the computation of a fusion does."""

    category: Category
    dtype: str | None
    """XLA's name of the element type that it multiplies in; None where it has no products."""


_CONTENTS: WeakKeyDictionary[Module, dict[int, Content]] = WeakKeyDictionary()


def content_of(module: Module, computation: int) -> Content:
    """What a fusion's computation does; found out once a module."""
    known = _CONTENTS.setdefault(module, {})
    if computation not in known:
        known[computation] = _content(module, module.computations[computation])
    return known[computation]


def is_product(opcode: str) -> bool:
    """Whether an instruction multiplies matrices or convolves."""
    return opcode in MATMULS


def operand_dtype(module: Module, instruction: HloInstructionProto) -> str:
    """XLA's name of the element type of an instruction's first operand."""
    return dtype_name(module.instructions[instruction.operand_ids[0]].shape)


def dtype_name(shape: ShapeProto) -> str:
    """XLA's name of a shape's element type, for a tuple that of its first array."""
    while shape.tuple_shapes:
        shape = shape.tuple_shapes[0]
    return PrimitiveType.Name(shape.element_type).lower()


def compute_categories(module: Module, graph: Graph) -> npt.NDArray[np.uint8]:
    """`Category` of what each node does on the compute stream, shape [n]."""
    categories = np.full(len(graph), Category.ELEMENTWISE, dtype=np.uint8)
    for node, opcode in enumerate(graph.opcodes):
        if opcode in MATMULS:
            categories[node] = Category.EINSUM
        elif opcode in _LAYOUT:
            categories[node] = Category.COPY
        elif opcode == "fusion":
            categories[node] = content_of(module, int(graph.called.of(node)[0])).category
        elif opcode == "custom-call":
            target = module.instructions[int(graph.ids[node])].custom_call_target
            if any(part in target for part in _EINSUM_CALLS):
                categories[node] = Category.EINSUM
    categories.flags.writeable = False
    return categories


def _content(module: Module, computation: HloComputationProto) -> Content:
    opcodes = set()
    for instruction in computation.instructions:
        if instruction.opcode in MATMULS:
            return Content(Category.EINSUM, operand_dtype(module, instruction))
        opcodes.add(instruction.opcode)
    moves = opcodes - _SILENT <= _LAYOUT and opcodes & _LAYOUT
    return Content(Category.COPY if moves else Category.ELEMENTWISE, None)


def transfer_category(kind: int) -> Category:
    """`Category` of a transfer of this `Kind`."""
    if kind == Kind.PERMUTE:
        return Category.PERMUTE
    return Category.COPY if kind == Kind.COPY else Category.COLLECTIVE


def transfer_lane(work: Work, node: int, links: tuple[str, ...]) -> str:
    """Name of the lane on which a transfer is drawn; `links` are the names of the machine's link classes.

    Permutes lie on the link direction that they load most, other collectives on a lane of their kind and axes.
    """
    kind, load = Kind(work.kind[node]), work.loads[node].links
    if kind == Kind.PERMUTE and load:
        heaviest = max(load, key=lambda entry: (entry[1], -entry[0]))[0]
        return links[heaviest]
    places = sorted({_place(links[link]) for link, _ in load})
    return " ".join((_TITLES[kind], *places))


def _place(link: str) -> str:
    """The axis or network of a link class: ``x`` for ``ICI x+``, ``NVLink`` for ``NVLink out``."""
    network, _, direction = link.rpartition(" ")
    return direction.rstrip("+-") if direction[-1:] in "+-" else network
