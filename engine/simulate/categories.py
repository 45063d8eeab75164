"""What each node is drawn as, and on which lane its transfer lies."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from engine.chips.budget import Kind
from engine.hlo.hlo_pb2 import HloComputationProto
from engine.ir.graph import Graph
from engine.ir.module import Module
from engine.simulate.work import Work
from engine.timeline.timeline import Category

_EINSUMS = frozenset({"dot", "convolution", "ragged-dot"})
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


@lru_cache(maxsize=256)
def compute_categories(module: Module, graph: Graph) -> npt.NDArray[np.uint8]:
    """`Category` of what each node does on the compute stream, shape [n]."""
    categories = np.full(len(graph), Category.ELEMENTWISE, dtype=np.uint8)
    for node, opcode in enumerate(graph.opcodes):
        if opcode in _EINSUMS:
            categories[node] = Category.EINSUM
        elif opcode in _LAYOUT:
            categories[node] = Category.COPY
        elif opcode == "fusion":
            categories[node] = _of_fusion(module.computations[int(graph.called.of(node)[0])])
        elif opcode == "custom-call":
            target = module.instructions[int(graph.ids[node])].custom_call_target
            if any(part in target for part in _EINSUM_CALLS):
                categories[node] = Category.EINSUM
    categories.flags.writeable = False
    return categories


def _of_fusion(computation: HloComputationProto) -> Category:
    opcodes = {instruction.opcode for instruction in computation.instructions}
    if opcodes & _EINSUMS:
        return Category.EINSUM
    return Category.COPY if opcodes - _SILENT <= _LAYOUT and opcodes & _LAYOUT else Category.ELEMENTWISE


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
