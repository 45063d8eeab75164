"""Options of the decompose pass as the parts that decide see them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Options:
    """What the user may choose; every choice left at ``auto`` is made by predicted gain."""

    gate: bool = True
    """Whether a site whose predicted gain is negative stays as it is; off: all that can be decomposed is."""
    form: Literal["auto", "rolled", "unrolled"] = "auto"
    """A loop or a straight line; auto: straight lines up to 16 positions and 100,000 instructions."""
    unroll: Literal["auto", "1", "2"] = "auto"
    """2: two buffers, or two accumulation chains."""
    ring: Literal["auto", "one", "both"] = "auto"
    """Directions in which shards travel; auto knows that GPUs keep one collective in flight per pair of devices."""
    chain: Literal["auto", "on", "off"] = "auto"
    """Whether gather → einsum → einsum → scatter becomes one sequence; on: wherever it can."""
    accumulate: Literal["same", "f32"] = "same"
    """The type in which partial results are added up."""
    blocks: Literal["auto", "joined", "stacked", "separate"] = "auto"
    """Blocks that are there at once, outside of chains. separate: an einsum for each. Else one takes both: joined, as
    one longer along their dimension, or stacked along a dimension of their own. Compilers lay out, and price, the last
    two differently; the gate does not, and auto stacks none."""
    force: tuple[str, ...] = ()
    """Collectives, by name, or rows of alike ones, that are decomposed whatever the gate says."""
    forbid: tuple[str, ...] = ()
    """Collectives or rows that stay as they are."""
    losing: tuple[str, ...] = ()
    """Collectives or rows that stay as they are since the whole plan is faster so in the simulator, whatever the gate
    says of them by itself; what `force` names is decomposed all the same."""
