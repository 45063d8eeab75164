"""Which array lives how long in one computation: what memory-aware schedulers and the memory curve share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.ir.graph import Csr, Ints


@dataclass(frozen=True, eq=False)
class Buffers:
    """Buffers of one computation; b buffers over n nodes. Read-only.

    A buffer comes to life with its defining node and dies after its last reader (a node that reads it directly or
    through an alias: get-tuple-element, tuple, bitcast, an in-place update, a while's carried state, a done). What the
    caller gives away is there before anything runs, wherever its parameter stands in an order; that parameter counts
    among its readers.
    """

    size: Ints
    """Bytes, shape [b]."""
    node: Ints
    """Defining node, shape [b]."""
    readers: Csr
    """Distinct reading nodes of each buffer, ascending."""
    touches: Csr
    """The inverse: for each node, the buffers it defines or reads."""
    live_in: npt.NDArray[np.bool_]
    """Whether it is live throughout: the caller owns it (a parameter that is not donated, a result of a call or of a
    conditional's branch) or it is a constant. Shape [b]."""
    live_out: npt.NDArray[np.bool_]
    """Whether it is part of the result: it is live to the end. Shape [b]."""
    overwrites: Csr | None = None
    """For each node that updates a buffer in place, the nodes that read what it overwrites and must have run before
    it (for a start, its done); None where there are none. Following them and the proto's order makes no cycle."""
    given: npt.NDArray[np.bool_] | None = None
    """Whether it is live from the start although it is not throughout: a donated or aliased argument of the entry,
    whose memory may be used anew after its last reader. Shape [b]; None where there are none."""
