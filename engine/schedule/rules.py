"""The bottom-up scheduler's priority list: which of two candidates is placed next, later in the program first.

The order and the names follow the ready-set comparison of XLA's latency hiding scheduler (openxla/xla,
xla/service/latency_hiding_scheduler.cc, ``ReadySetLt``). The first rule in which two candidates differ decides. Every
rule is a score, of which the smaller wins. *Static* rules score a node once: all of them together are one number by
which a heap is ordered. *Dynamic* rules depend on the clock or on what has been placed: they compare the heads of a
few heaps. Rules whose input does not exist here are listed with the reason.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto

import numpy as np
import numpy.typing as npt

from engine.chips.budget import Kind
from engine.ir.graph import Ints
from engine.schedule.facts import Facts
from engine.schedule.instance import DONE, PLAIN, START, TOTAL
from engine.schedule.problem import Hint
from engine.schedule.state import State

Static = Callable[[Facts], Ints]
Dynamic = Callable[[State, int], int]


class Policy(Enum):
    """Which rules a scheduler's options turn on."""

    ALWAYS = auto()
    AGGRESSIVE = auto()
    """`BottomUp.aggressive`, as on GPUs."""
    DEPTH_FIRST = auto()
    """`aggressive` and `depth_over_stall`."""
    STALL_FIRST = auto()
    """`aggressive` without `depth_over_stall`."""
    LATE_STARTS = auto()
    RELEASE_STARTS = auto()
    MEMORY = auto()
    """Where there is a memory cap and more than half of it is in use."""
    NEVER = auto()


@dataclass(frozen=True)
class Rule:
    """One line of the priority list."""

    number: str
    """In XLA's list; ours have a letter."""
    name: str
    meaning: str
    """What wins, in words: ends the sentence ``placed since …``."""
    policy: Policy = Policy.ALWAYS
    static: Static | None = None
    dynamic: Dynamic | None = None

    @property
    def always(self) -> bool:
        """Whether it is dynamic and may decide at any step, not only when memory or budget are short."""
        return self.dynamic is not None and self.policy in (Policy.AGGRESSIVE, Policy.RELEASE_STARTS)


def _column(holds: npt.NDArray[np.bool_]) -> Ints:
    column: Ints = holds.astype(np.int64)
    return column


def is_free(facts: Facts) -> Ints:
    """0 for what takes no time and moves nothing: it is placed at once, since it may unlock others."""
    instance = facts.instance
    idle = (facts.duration == 0) & (facts.role == PLAIN)
    idle[list(instance.held)] = False
    return _column(~idle)


def force_early(facts: Facts) -> Ints:
    late = (facts.hint & Hint.LATE) != 0
    wide_done = ((facts.hint & Hint.WIDE) != 0) & (facts.role == DONE)
    return _column(~(late | wide_done))


def force_delay(facts: Facts) -> Ints:
    wide_start = ((facts.hint & Hint.WIDE) != 0) & (facts.role == START)
    return _column(((facts.hint & Hint.EARLY) != 0) | wide_start)


def delay_priority(facts: Facts) -> Ints:
    return facts.delay_priority


def late_starts(facts: Facts) -> Ints:
    return _column(facts.role == START)


def schedule_done(facts: Facts) -> Ints:
    return _column(facts.role != DONE)


def delay_done_of_delayed_start(facts: Facts) -> Ints:
    delayed = force_delay(facts)
    partner = np.array(facts.instance.partner, np.int64)
    return np.where(facts.role == DONE, delayed[np.maximum(partner, 0)], 0)


def zero_depth_start(facts: Facts) -> Ints:
    return _column((facts.role == START) & (facts.async_depth == 0))


def async_depth(facts: Facts) -> Ints:
    return -facts.async_depth


def unlock_done(facts: Facts) -> Ints:
    return _column(~facts.reads_done)


def longest_path(facts: Facts) -> Ints:
    return -facts.depth


def original_order(facts: Facts) -> Ints:
    return -facts.position


def no_increase_over_cap(state: State, node: int) -> int:
    return max(0, state.increase(node)) if state.over_cap else 0


def decrease_over_cap(state: State, node: int) -> int:
    return state.increase(node) if state.over_cap else 0


def peak_over_cap(state: State, node: int) -> int:
    return int(state.live + state.peak(node) > state.cap)


def ready_start(state: State, node: int) -> int:
    instance = state.instance
    permute = instance.role[node] == START and instance.kind[node] == Kind.PERMUTE
    return -1 - state.ready_at[node] if permute else 0


def free_backed_up(state: State, node: int) -> int:
    instance = state.instance
    if instance.role[node] != START:
        return 1
    kind = instance.kind[node]
    flying, limit = state.flying, instance.limit
    if flying[TOTAL] >= limit[TOTAL]:
        return int(not any(state.waiting))
    return int(not (flying[kind] >= limit[kind] and state.waiting[kind]))


def avoid_waste(state: State, node: int) -> int:
    if not state.pending:
        return 0
    if state.instance.role[node] == START:
        return 1 << 62
    return abs(state.pending[0][0] - state.now - state.instance.duration[node])


def more_ready(state: State, node: int) -> int:
    left = state.left
    return -sum([left[p] == 1 for p in state.instance.predecessors[node]])


def decrease_memory(state: State, node: int) -> int:
    return state.increase(node)


RULES: tuple[Rule, ...] = (
    Rule("a", "Nop", "it takes no time and may unlock others", static=is_free),
    Rule("1", "ForceEarly", "the program asks for it as late as can be (scheduler_hint)", static=force_early),
    Rule("2", "ForceDelay", "the other one is asked for as early as can be", static=force_delay),
    Rule("3", "ForceDelayPriority", "its delay priority is lower", static=delay_priority),
    Rule("4", "Preference", "not applicable: modules carry no preference values", Policy.NEVER),
    Rule("5", "EarlyTarget", "not applicable: no target adds a rule of its own", Policy.NEVER),
    Rule(
        "6a",
        "NoIncreaseMemoryOverLimit",
        "memory is over the cap and it adds less",
        Policy.MEMORY,
        dynamic=no_increase_over_cap,
    ),
    Rule(
        "6a'",
        "DecreaseMemoryOverLimit",
        "memory is over the cap and it frees more",
        Policy.MEMORY,
        dynamic=decrease_over_cap,
    ),
    Rule(
        "6b", "MemoryPeakOverLimit", "the other one would go over the memory cap", Policy.MEMORY, dynamic=peak_over_cap
    ),
    Rule("7", "ForceDelayAfterTarget", "not applicable: no target adds a rule of its own", Policy.NEVER),
    Rule("8", "DelayStarts", "the other one is a start", Policy.LATE_STARTS, static=late_starts),
    Rule(
        "9",
        "ScheduleDone",
        "it is a done: the more is placed before it, the more hides its transfer",
        static=schedule_done,
    ),
    Rule(
        "10",
        "DelayDoneOfForceDelayedStart",
        "the other one's start is asked for early",
        static=delay_done_of_delayed_start,
    ),
    Rule("11", "ReleaseNonextendable", "not applicable: no operation must end by a given time", Policy.NEVER),
    Rule(
        "12",
        "ScheduleStart",
        "it is a permute's start whose transfer is hidden",
        Policy.RELEASE_STARTS,
        dynamic=ready_start,
    ),
    Rule(
        "13",
        "StartAtZeroDepth",
        "the other one is a start that waits for no transfer",
        Policy.DEPTH_FIRST,
        static=zero_depth_start,
    ),
    Rule("14", "LessStall", "the other one's transfer is not yet hidden"),
    Rule("15", "LessSerialResourceConflict", "not applicable: nothing but the compute stream is serial", Policy.NEVER),
    Rule(
        "16",
        "StartAtZeroDepth",
        "the other one is a start that waits for no transfer",
        Policy.STALL_FIRST,
        static=zero_depth_start,
    ),
    Rule("17", "FreeBackedupResource", "it frees a place in flight that a done waits for", dynamic=free_backed_up),
    Rule("18", "AsyncDepth", "more transfers lie on a path to it", Policy.AGGRESSIVE, static=async_depth),
    Rule(
        "19",
        "AvoidWaste",
        "it fills the time until the next start is ready better",
        Policy.AGGRESSIVE,
        dynamic=avoid_waste,
    ),
    Rule("20", "UnlockDone", "it reads a done, which can then be placed", static=unlock_done),
    Rule("21", "Target", "not applicable: no target adds a rule of its own", Policy.NEVER),
    Rule("22", "NotValuableForSelectiveOverlap", "not applicable: compute slows no transfer selectively", Policy.NEVER),
    Rule("23", "CreatesMoreReadyNodes", "it makes more instructions ready", Policy.AGGRESSIVE, dynamic=more_ready),
    Rule("24", "DecreaseMemory", "it adds less memory", Policy.MEMORY, dynamic=decrease_memory),
    Rule("b", "LongestPath", "the longest path from the beginning to it is longer", static=longest_path),
    Rule("25", "OriginalOrder", "it comes later in the input order", static=original_order),
)
"""In order of precedence. Rule 14 is kept by structure: what is ready is taken before what would stall."""
