"""Which shard is where at which step: the index arithmetic of the rings, free of any HLO.

A plan lists steps; in each, every position computes with the shards that its streams hold there, named by their offset
from its own position. Emission reads a plan as a straight line or folds its uniform part into a loop. All offsets are
modulo N. Hops count to the left: a shift by 1 sends from position r to r-1, a negative one to the right.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Slot:
    """One shard in one step."""

    stream: int
    """Number of the buffer that holds the shard (gather), or of the accumulation chain it is added to (scatter)."""
    offset: int
    """The shard is that of position r + offset, for a device at position r."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Steps that may become iterations of a loop: `trips` times `period` steps from `first`."""

    first: int
    period: int
    trips: int

    @property
    def stop(self) -> int:
        """The first step after the loop."""
        return self.first + self.period * self.trips


@dataclass(frozen=True, slots=True)
class GatherPlan:
    """Streams of shards that move past; a stream shifts between two steps that use it."""

    size: int
    entries: tuple[int, ...]
    """Hops from the own shard to what each stream holds first; 0 is the own shard itself."""
    hops: tuple[int, ...]
    """Hops of each stream's shifts."""
    steps: tuple[tuple[Slot, ...], ...]
    loop: Stretch
    """Its steps are followed by a shift of every stream; at least one step comes after it."""

    def shifts(self) -> tuple[tuple[int, int], ...]:
        """(hops, how often a shard is sent so), prologue included."""
        entries = tuple((hops, 1) for hops in self.entries if hops)
        return entries + tuple((hops, _visits(self.steps, k) - 1) for k, hops in enumerate(self.hops))


@dataclass(frozen=True, slots=True)
class ScatterPlan:
    """Accumulation chains that move towards the owner; a chain shifts between each two of its steps."""

    size: int
    hops: tuple[int, ...]
    """Hops of each chain's shifts."""
    steps: tuple[tuple[Slot, ...], ...]
    ends: tuple[int, ...]
    """Hops from where each chain ends to the owner."""
    loop: Stretch
    """Its steps use the same chains over and over, each of which has been started before it."""
    lanes: int = 1
    """Parts of the result shard. Each has its own chains; all chains of a step belong to one."""
    early: frozenset[int] = frozenset()
    """Chains that shift right after a step, and so arrive before the iteration that adds to them next begins. The
    others shift right before a step. In a straight line both are the same."""

    def lane(self, stream: int) -> int:
        """Which part of the result shard a chain sums up."""
        return stream * self.lanes // len(self.hops)

    def is_last(self, step: int, stream: int) -> bool:
        """Whether a chain is at its end after a step outside the loop."""
        return all(slot.stream != stream for slots in self.steps[step + 1 :] for slot in slots)

    def shifts(self) -> tuple[tuple[int, int], ...]:
        """(hops, how often an accumulator is sent so), epilogue included."""
        ends = tuple((hops, 1) for hops in self.ends if hops)
        return ends + tuple((hops, max(0, _visits(self.steps, k) - 1)) for k, hops in enumerate(self.hops) if hops)


def gather_plan(size: int, *, both: bool = False, unroll: int = 1, rolled: bool = False) -> GatherPlan:
    """A ring of `size` positions, in one direction or in both, whose loop body takes `unroll` steps.

    Both directions: for an even size a prologue brings the right neighbour's stream; for an odd one the first step
    works on the own shard alone (Wang et al. §5.4.2).
    """
    steps: tuple[tuple[Slot, ...], ...]
    if not both:
        steps = tuple((Slot(0, i),) for i in range(size))
        return GatherPlan(size, (0,), (1,), steps, _loop(0, size - 1, unroll, rolled))
    if size % 2 == 0:
        steps = tuple((Slot(0, j), Slot(1, -1 - j)) for j in range(size // 2))
        return GatherPlan(size, (0, -1), (1, -1), steps, _loop(0, len(steps) - 1, unroll, rolled))
    pairs = tuple((Slot(0, j), Slot(1, -j)) for j in range(1, size // 2 + 1))
    return GatherPlan(size, (0, -1), (1, -1), ((Slot(0, 0),), *pairs), _loop(1, len(pairs), unroll, rolled))


def scatter_plan(
    size: int, *, both: bool = False, strides: int = 1, lanes: int = 1, rolled: bool = False
) -> ScatterPlan:
    """A ring of `size` positions, in one direction or both, with `strides` (1 or 2) chains a direction that take turns,
    or in one direction with one chain for each of `lanes` (1 or 2) parts of the result shard.

    Chains that take turns shift two hops a visit (Wang et al. §5.4.1 and §5.4.2).
    """
    steps: tuple[tuple[Slot, ...], ...]
    if not both:
        count = strides * lanes
        steps = tuple((Slot(i % strides if lanes == 1 else k, i + 1),) for i in range(size) for k in range(lanes))
        last = {slot.stream: slot.offset for slots in steps for slot in slots}
        ends = tuple(size - last[k] for k in range(count))
        loop, early = _scatter_loop(steps, len(steps), count, rolled)
        return ScatterPlan(size, (strides,) * count, steps, ends, loop, lanes, early)
    half = size // 2
    reach = half - 1 if size % 2 == 0 else half  # of the right-moving chains; theirs include the own shard for even N
    distances = [(half - j, reach - j) for j in range(half)]
    pairs = [(Slot(a % strides, -a), Slot(strides + b % strides, b)) for a, b in distances]
    steps = tuple(pairs)
    hops = (strides,) * strides + (-strides,) * strides
    last = {slot.stream: slot.offset for slots in steps for slot in slots}
    ends = tuple(-last.get(k, 0) for k in range(2 * strides))
    loop, early = _scatter_loop(steps, half, strides, rolled)
    if size % 2:
        own = Slot(2 * strides, 0)
        return ScatterPlan(size, (*hops, 0), (*steps, (own,)), (*ends, 0), loop, early=early)
    return ScatterPlan(size, hops, steps, ends, loop, early=early)


def _scatter_loop(
    steps: tuple[tuple[Slot, ...], ...], stop: int, period: int, rolled: bool
) -> tuple[Stretch, frozenset[int]]:
    """The loop over the first `stop` steps, which take turns in `period` sets of chains, and the chains that are early.

    A compiler fuses an einsum with the add after it, and no transfer crosses from one iteration into the next. So if
    all chains were sent at the beginning of an iteration, its first einsum would wait for its chain with nothing
    running. Sent on right after its add instead, that chain travels while the other's einsum runs, and the other one
    while this one's does (Wang et al., Figure 8). It must be wanted again after the loop; where a ring is too short
    for that, no chain is early.
    """
    if period > 1:
        staggered = _loop(period, stop - 1, period, rolled)
        if staggered.trips:
            return staggered, frozenset(slot.stream for slot in steps[period])
    return _loop(period, stop, period, rolled), frozenset()


def _loop(first: int, stop: int, period: int, rolled: bool) -> Stretch:
    return Stretch(first, period, max(0, (stop - first) // period) if rolled else 0)


def _visits(steps: tuple[tuple[Slot, ...], ...], stream: int) -> int:
    return sum(slot.stream == stream for slots in steps for slot in slots)
