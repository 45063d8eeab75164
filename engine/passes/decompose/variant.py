"""In which form a site is decomposed, and which forms its ring and its shapes allow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Variant:
    """One form of a decomposition (technique §1 and §2)."""

    form: Literal["rolled", "unrolled"] = "unrolled"
    """A `while` loop, or the straight line."""
    unroll: Literal[1, 2] = 1
    """2: two buffers (gather), two accumulation chains (scatter)."""
    ring: Literal["one", "both"] = "one"
    """Whether shards travel in both directions at once."""
    chains: Literal["stride", "halves"] = "stride"
    """What the two chains of a scatter unrolled by 2 are: every other iteration, or half of the result shard each."""
    shards: int = 1
    """Chains only: how many shards one einsum takes."""

    def __str__(self) -> str:
        parts = [self.form]
        if self.unroll == 2:
            parts.append("unroll=2")
        parts.append(f"ring={self.ring}")
        if self.unroll == 2 and self.chains == "halves":
            parts.append("chains=halves")
        if self.shards > 1:
            parts.append(f"shards={self.shards}")
        return ", ".join(parts)


def refuse_ring(variant: Variant, size: int) -> str | None:
    """Why a ring of `size` positions cannot run `variant`; None where it can."""
    if variant.ring == "both" and size == 2:
        return "both directions of a ring of 2 are the same link: one einsum would be left, and nothing overlaps"
    return None


def einsum_count(variant: Variant, size: int) -> int:
    """Einsums that the decomposition of one einsum over `size` shards runs (technique §1: the counts to hold)."""
    if variant.ring == "one":
        return size
    return size // 2 if size % 2 == 0 else (size + 1) // 2
