"""Keeps a chosen order in a module that XLA compiles for CPU devices, and reads from the result whether it stands.

XLA's CPU pipeline always schedules anew. Two things make the order ours: passes that would merge, move or fuse
instructions are switched off, and what the scheduler made is permuted before buffers are assigned. Only the order is
touched, never an instruction: whole modules that are put in at that stage lack copies and layouts that CPU code relies
on, and compute wrong numbers without a word.
"""

from __future__ import annotations

import bisect
import heapq
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module

from engine.hlo.hlo_pb2 import HloComputationProto, HloInstructionProto, HloModuleProto
from engine.profile.attribution import own_tag

SWITCHED_OFF = (
    "algsimp",
    "call-inliner",
    "conditional-to-select",
    "constant_folding",
    "cpu-all-reduce-combiner",
    "cpu-parallel-task-assigner",
    "cse",
    "dot-library-rewriter",
    "fusion",
    "gemv-rewriter",
    "map-inline",
    "reshape-mover",
    "simplify-conditional",
    "simplify-while-loops",
    "small-while-loop-hoisting",
    "transpose-folding",
    "tuple-simplifier",
    "while-loop-constant-sinking",
    "while-loop-invariant-code-motion",
)
"""Passes of XLA's CPU pipeline that make other instructions of a module's own. Fusions of the module stay calls."""

Places = Mapping[str, tuple[str, int]]
"""Instruction name → the name of its computation, and its place in the order wanted there."""

_UNORDERED = frozenset({"parameter", "constant", "tuple", "get-tuple-element", "bitcast", "copy"})
"""What takes no part in an order: free, or for the compiler to place."""


@dataclass(frozen=True, slots=True)
class OrderKept:
    """The chosen order against the one of the executable, all its computations together."""

    kept: int
    """Instructions that stand in the chosen order."""
    moved: tuple[str, ...] = ()
    """Names of those that stand elsewhere."""
    gone: tuple[str, ...] = ()
    """Names of those that the compiler removed, or made part of others."""
    problem: str = ""
    """Why the order was not asked for, or not honoured at all."""

    @property
    def whole(self) -> bool:
        """Whether everything that the executable has of the order stands in it."""
        return not self.problem and not self.moved

    def __str__(self) -> str:
        total = self.kept + len(self.moved) + len(self.gone)
        if self.problem:
            return f"order not kept: {self.problem}"
        if not self.moved:
            gone = f", {len(self.gone)} replaced by the compiler" if self.gone else ""
            return f"order kept ({self.kept} of {total} instructions{gone})"
        return f"order kept in part ({self.kept} of {total} instructions; {', '.join(self.moved[:3])} stand elsewhere)"


class Reordering:
    """The function that XLA calls with each scheduled module: it permutes the schedule and counts its calls."""

    def __init__(self, places: Places) -> None:
        self.places = places
        self.fired = 0
        self.problem = ""

    @property
    def outcome(self) -> str:
        """Why no order was given; empty where it was."""
        return self.problem or ("" if self.fired else "the compiler did not ask for it")

    def __call__(self, serialised: bytes) -> bytes | None:
        self.fired += 1
        try:
            proto = HloModuleProto.FromString(serialised)
            reorder(proto, self.places)
            return proto.SerializeToString()
        except Exception as error:  # an exception inside of the compiler would end the process
            self.problem = f"{type(error).__name__}: {error}"
            return None


@contextmanager
def reordered(orders: Mapping[str, Sequence[str]], platform: str) -> Iterator[Reordering]:
    """Have every module that is compiled meanwhile put in the orders (computation name → instruction names).

    In worker processes only. Where this jax or this compiler has no such hook, the outcome says so.
    """
    reordering = Reordering(places_of(orders))
    try:
        xla = import_module("jax.extend.xla")
        stage = xla.PipelineStage.POST_SCHEDULER
        xla.register_hlo_module_transformation(reordering, name="lapstrake-order", stage=stage, platforms=platform)
    except Exception as error:
        reordering.problem = f"this jax has no scheduler hook for {platform} ({type(error).__name__}: {error})"
        yield reordering
        return
    try:
        yield reordering
    finally:
        xla.clear_hlo_module_transformation("lapstrake-order", stage, platforms=platform)


def places_of(orders: Mapping[str, Sequence[str]]) -> Places:
    """Instruction name → (computation, place in its order): names are unique within a module."""
    return {name: (computation, at) for computation, order in orders.items() for at, name in enumerate(order)}


def reorder(proto: HloModuleProto, places: Places) -> None:
    """Permute the schedule of `proto`, whose instructions carry tags, in place; dependencies come before places."""
    by_id = {c.id: c for c in proto.computations}
    for id_, sequence in proto.schedule.sequences.items():
        order = _sorted(by_id[id_], list(sequence.instruction_ids), places)
        del sequence.instruction_ids[:]
        sequence.instruction_ids.extend(order)


def order_kept(compiled: HloModuleProto, orders: Mapping[str, Sequence[str]], asked: Mapping[str, str]) -> OrderKept:
    """Compare the schedule of `compiled`, as XLA returns it, with `orders`.

    `asked`: opcode of each instruction that was given to the compiler, by name; what was not, and what takes no part
    in an order, does not count.
    """
    ends = {_key(i) for c in compiled.computations for i in c.instructions if i.opcode.endswith("-done")}
    wanted = [n for order in orders.values() for n in order if asked.get(n, "tuple") not in _UNORDERED or n in ends]
    places = {name: place for name, place in places_of(orders).items() if name in set(wanted)}
    by_id = {c.id: c for c in compiled.computations}
    seen, moved = set[str](), set[str]()
    for id_, sequence in compiled.schedule.sequences.items():
        ranks = _ranks(by_id[id_], places)
        found = {name: ranks[member][1] for member in sequence.instruction_ids if (name := _name(ranks, member))}
        seen |= found.keys()
        moved |= found.keys() - _longest_ascending(found)
    return OrderKept(
        len(seen - moved),
        tuple(name for name in wanted if name in moved),
        tuple(name for name in wanted if name not in seen),
    )


def _ranks(computation: HloComputationProto, places: Places) -> Mapping[int, tuple[str, int]]:
    """Instruction id → (name, place), for what has a place in the order of the computation that this one was.

    Compilers move constants into loops: what comes from elsewhere has no place here.
    """
    found: dict[int, tuple[str, str, int]] = {}
    homes: Counter[str] = Counter()
    for instruction in computation.instructions:
        name = _key(instruction)
        if name is not None and name in places and instruction.opcode not in _UNORDERED:
            home, place = places[name]
            found[instruction.id] = name, home, place
            homes[home] += 1
    own = max(homes, key=lambda home: homes[home], default="")
    return {id_: (name, place) for id_, (name, home, place) in found.items() if home == own}


def _key(instruction: HloInstructionProto) -> str | None:
    """As orders name it: a done goes by its start's name, which is what compilers that make pairs know."""
    name = own_tag(instruction)
    return f"{name}/done" if name is not None and instruction.opcode.endswith("-done") else name


def _name(ranks: Mapping[int, tuple[str, int]], instruction: int) -> str:
    return ranks[instruction][0] if instruction in ranks else ""


def _sorted(computation: HloComputationProto, sequence: Sequence[int], places: Places) -> list[int]:
    """A topological order by rank; what has none goes right before the first that needs it, else stays in turn."""
    by_id = {i.id: i for i in computation.instructions}
    at = {id_: k for k, id_ in enumerate(sequence)}
    needs = [{*by_id[id_].operand_ids, *by_id[id_].control_predecessor_ids} for id_ in sequence]
    users: list[list[int]] = [[] for _ in sequence]
    for k, before in enumerate(needs):
        for needed in before:
            users[at[needed]].append(k)
    ranks = _ranks(computation, places)
    keys = [float(ranks[id_][1]) if id_ in ranks else float("inf") for id_ in sequence]
    for k in range(len(sequence) - 1, -1, -1):
        if keys[k] == float("inf"):
            keys[k] = min((keys[user] for user in users[k]), default=float("inf"))
    missing = [len(before) for before in needs]
    ready = [(keys[k], k) for k in range(len(sequence)) if not missing[k]]
    heapq.heapify(ready)
    order = []
    while ready:
        _, k = heapq.heappop(ready)
        order.append(sequence[k])
        for user in users[k]:
            missing[user] -= 1
            if not missing[user]:
                heapq.heappush(ready, (keys[user], user))
    return order


def _longest_ascending(places: Mapping[str, int]) -> set[str]:
    """Names of a longest ascending subsequence of their places, in the mapping's order."""
    ends: list[int] = []
    at: list[str] = []
    before: dict[str, str | None] = {}
    for name, place in places.items():
        k = bisect.bisect_left(ends, place)
        before[name] = at[k - 1] if k else None
        ends[k : k + 1] = [place]
        at[k : k + 1] = [name]
    found: set[str] = set()
    last = at[-1] if at else None
    while last is not None:
        found.add(last)
        last = before[last]
    return found
