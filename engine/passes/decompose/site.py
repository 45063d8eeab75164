"""What the finder hands to the emitter: a collective, the einsums it can overlap with, and how shards run through.

"Blocked along dimension d" means: the array is N equal contiguous blocks along d, block k being what ring position k
contributes (a gather) or keeps (a scatter).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from engine.ir.groups import Groups as Groups
from engine.ir.groups import Mode as Mode


class Case(StrEnum):
    """How the einsum uses the blocked dimension (Wang et al. §5.1)."""

    NON_CONTRACTING = "non-contracting"
    CONTRACTING = "contracting"
    BATCH = "batch"
    SCATTER = "scatter"


@dataclass(frozen=True, slots=True)
class Step:
    """A shape-only or element-wise instruction between collective and einsum that can be done block by block."""

    instruction: int
    """Its id. Its operand on the path is `operand`; other operands, if any, are scalars or broadcasts of scalars."""
    operand: int
    """Which operand lies on the path."""
    dim: int
    """Dimension of the RESULT along which it is blocked."""
    block: int
    """Elements of one block along `dim`."""


@dataclass(frozen=True, slots=True)
class EinsumUse:
    """One einsum (dot, or convolution that is a matmul) on the path of a collective."""

    instruction: int
    case: Case
    side: int
    """Operand index (0 lhs, 1 rhs) that is blocked: the gathered one; for a scatter the one that is sliced.
    Where a scatter runs over a batch dimension both operands are sliced, and `other_dim` is set."""
    dim: int
    """Dimension of operand `side` along which it is blocked (gather) or is to be sliced (scatter)."""
    other_dim: int | None
    """Dimension of the other operand to be sliced by block (contracting and batch cases), else None."""
    output_dim: int | None
    """Dimension of the einsum's result that is blocked (non-contracting, batch, scatter), else None."""
    steps: tuple[Step, ...] = ()
    """Gather: from the collective's result to the operand. Scatter: from the einsum's result to the collective's
    operand. In order of data flow."""
    valid: int | None = None
    """Elements along `dim` of the whole operand where the last blocks are partly padding (a slice follows the gather
    and is among `steps`; a pad precedes the scatter); None where N blocks fill it exactly."""


@dataclass(frozen=True, slots=True)
class GatherSite:
    """An all-gather and the einsums that read it; they do not depend on each other and share one loop."""

    computation: int
    collectives: tuple[int, ...]
    """Equal all-gathers (same operand, groups and dimension) that are merged; ids, first in order first. For an
    asynchronous form the id of the done."""
    operand: int
    """Id of the shard."""
    dim: int
    """Gathered dimension of the collective's result."""
    groups: Groups
    uses: tuple[EinsumUse, ...]
    rebuild: bool
    """Whether something else reads the gathered array, so that the loop must rebuild it."""
    positions: tuple[int, ...] = ()
    """Ring position r of every group contributes block positions[r] of the gathered array; empty for block r."""


@dataclass(frozen=True, slots=True)
class ScatterSite:
    """An einsum whose result is summed up and scattered: a reduce-scatter, or an all-reduce.

    Of an all-reduce each position keeps the slice that the program takes of it; where it is read whole, an all-gather
    puts the shards together again.
    """

    computation: int
    collective: int
    """Id of the reduce-scatter or all-reduce (of the done, for an asynchronous form)."""
    result: int
    """Id of the instruction that the decomposed result replaces: the collective, or the dynamic-slice."""
    groups: Groups
    positions: tuple[int, ...]
    """π: position r of every group keeps block π(r) of the result; the identity for a reduce-scatter."""
    dim: int
    """Scattered dimension of the collective's operand."""
    use: EinsumUse
    tail: tuple[Step, ...] = ()
    """Instructions between an all-reduce and the slice (reshape, convert, …) that are redone on the block."""
    gathered: bool = False
    """Whether an all-gather follows the loop."""


@dataclass(frozen=True, slots=True)
class MiddleStep:
    """One instruction between the einsums of a chain, done once per block."""

    instruction: int
    dim: int
    """Dimension of its result along which it is blocked."""
    block: int
    """Elements of one block along `dim`."""
    slices: tuple[int | None, ...]
    """For each operand the dimension along which it is blocked, None where it is used whole. A blocked operand that
    is an earlier step of the middle, or a first einsum, is there in blocks already; any other is a whole array,
    N equal blocks along that dimension, of which the step takes the one it works on."""


@dataclass(frozen=True, slots=True)
class ChainSite:
    """Gather → einsums → element-wise → einsum → scatter whose middle never becomes one array.

    Both ends act on the same groups, blocks are numbered alike (both `positions` are the same), and nothing outside
    reads the middle. Block k of the first einsums' results goes through `middle` and is operand
    `scatter.use.side` of the partial einsum for result block k.
    """

    computation: int
    gather: GatherSite
    """`uses` are the first einsums, all of case non-contracting or batch; `rebuild` is False."""
    middle: tuple[MiddleStep, ...]
    """In order of data flow; empty where a first einsum is the operand itself."""
    scatter: ScatterSite


@dataclass(frozen=True, slots=True)
class AllReduceSite:
    """A whole all-reduce between einsums, taken apart into a scatter after the one and a gather before the others.

    Position r keeps block `positions[r]` of the all-reduce's operand along `scatter.dim`; that shard is what the
    gather starts from. Neither end exists as an instruction: `scatter.result`, `gather.collectives` and
    `gather.operand` are all the all-reduce's id, and `gather.dim` is `scatter.dim`.
    """

    computation: int
    scatter: ScatterSite
    gather: GatherSite


Site = GatherSite | ScatterSite | ChainSite | AllReduceSite
