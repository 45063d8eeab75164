"""Costs of one computation's instructions as columns, each with where it came from."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from engine.ir.graph import Ints


class Origin(IntEnum):
    """Where a number came from. A higher one replaces a lower one."""

    NONE = 0
    """Costs nothing by definition (parameters, tuples, …)."""
    MODEL = 1
    COMPILER = 2
    MEASURED = 3
    TABLE = 4
    """The user's own table."""


@dataclass(frozen=True, eq=False)
class Costs:
    """Columns over the n nodes of one `Graph`. Read-only. Times are integer picoseconds of one execution.

    A `while`, `call` or `conditional` costs nothing here: its time is that of its callees under their schedule.
    """

    compute: Ints
    """Time on the compute stream, shape [n]; 0 for everything that costs nothing, and for starts and dones unless the
    compiler's schedule says what issuing them takes."""
    transfer: Ints
    """Time on the network when alone, shape [n]; nonzero on asynchronous starts and on blocking collectives."""
    kind: npt.NDArray[np.uint8]
    """`engine.chips.budget.Kind` of each node; a start and its done carry the kind of what they wrap. Shape [n]."""
    flops: Ints
    """Floating point operations, shape [n]."""
    hbm_bytes: Ints
    """Bytes moved to and from HBM, shape [n]."""
    origin: npt.NDArray[np.uint8]
    """`Origin` of each node's time, shape [n]."""
    load_start: Ints
    """Shape [n + 1]: node k's link loads are entries ``load_start[k]:load_start[k + 1]`` of the two arrays below."""
    load_link: Ints
    """Link numbers of `Machine.links`."""
    load_bytes: Ints
    """Bytes that the heaviest such link carries for this transfer."""
    scaled: frozenset[int] = frozenset()
    """Nodes that passes made of a loaded einsum whose time is of `origin`: theirs is the model's, scaled alike."""
