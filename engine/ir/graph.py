"""One computation as ids and CSR arrays: what schedulers, the simulator and the layout work on.

Node k is the k-th instruction of the computation in the proto's (topological) order. A CSR pair ``(starts, items)``
lists, for node k, ``items[starts[k]:starts[k + 1]]``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


class Csr(NamedTuple):
    """A list of node numbers for each node."""

    starts: Ints
    items: Ints

    def of(self, node: int) -> Ints:
        """The entries of `node`."""
        return self.items[self.starts[node] : self.starts[node + 1]]


@dataclass(frozen=True, eq=False)
class Graph:
    """A computation's data-flow graph. All arrays are read-only; n nodes, numbered in a topological order."""

    computation: int
    """Id of the computation."""
    name: str
    ids: Ints
    """Instruction ids, shape [n]."""
    names: tuple[str, ...]
    opcodes: tuple[str, ...]
    operands: Csr
    """Operands in order, with repetitions."""
    users: Csr
    """Distinct users, ascending."""
    controls: Csr
    """Control predecessors."""
    predecessors: Csr
    """Distinct operands and control predecessors: every edge a schedule must honour."""
    successors: Csr
    """The inverse of `predecessors`."""
    called: Csr
    """Ids of called computations (not node numbers), in order: body and condition of a while, branches, callee."""
    partner: Ints
    """For an asynchronous start its done, for a done its start, else -1. Shape [n]."""
    root: int
    """Node number of the root."""
    order: Ints | None = None
    """The module's own schedule as node numbers, when it carries one. Shape [n]."""

    def __len__(self) -> int:
        return len(self.names)

    def is_start(self, node: int) -> bool:
        """Whether `node` is an asynchronous start that has a done."""
        return bool(self.partner[node] > node)
