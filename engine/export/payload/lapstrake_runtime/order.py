"""The order that a compiler is asked for, through jax's hook on what its scheduler made."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import math
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax

from . import jax_private
from .mismatch import Mismatch, in_words

log = logging.getLogger("lapstrake")
TAG = re.compile(r"lapstrake=([\w.\-]+)")
"""What instructions of the tuned module say in their op_name: their names there."""
DECIDING = threading.RLock()
"""Held while a plan is compared and compiled: compilers' hooks and cache keys are those of the whole process."""
_JAXLIB = jax_private.VERSIONS["jaxlib"]
_FORGETS_DONATION = tuple(int(part) for part in _JAXLIB.split(".")[:2]) < (0, 12)
"""Whether what goes through a scheduler hook is compiled without its aliases: seen in jaxlib 0.10.2, not in 0.12."""
_UNORDERED = ("copy", "bitcast", "parameter", "get-tuple-element", "tuple")


@dataclasses.dataclass(eq=False)
class OrderHook:
    """Puts the instructions of one module into a chosen order, after the compiler has scheduled it."""

    module: str
    ranks: Mapping[str, int]
    """The tag that an instruction carries → its place in the order; with a `check`, its name → its place."""
    platform: str
    mark: str
    """Keeps what is compiled under the hook apart in the persistent cache."""
    donates: bool
    check: Callable[[Any], None] | None = None
    """For `install`: raises Mismatch for another module than the plan's."""
    fired: int = 0
    problem: str = ""

    def compiled(self, lowered: Any, options: Mapping[str, Any]) -> Any:
        """A lowered function, compiled with the hook on where this jax has one; `problem` says why it was not asked."""
        hits: list[str] = []  # what comes from the persistent cache, which hooks are not asked about

        def listen(event: str, **_: Any) -> None:
            hits.extend([event] * event.endswith("/cache_hits"))

        with contextlib.ExitStack() as until_compiled:
            try:
                until_compiled.callback(self.register())
            except Mismatch as reason:
                self.problem = str(reason)
            jax.monitoring.register_event_listener(listen)
            until_compiled.callback(jax.monitoring.unregister_event_listener, listen)
            compiled = lowered.compile(dict(options) or None)
        if not (self.problem or self.fired or hits):
            self.problem = f"jax took a hook for {self.platform}, but its compiler did not ask for it"
        return compiled

    def register(self) -> Callable[[], None]:
        """From now on compilers ask, until what is returned is called. Raises Mismatch where this jax cannot do it."""
        if jax_private.MOVED:
            raise Mismatch(jax_private.MOVED)
        if self.donates and _FORGETS_DONATION and self.platform != "cpu":  # where runs are trials, memory matters less
            raise Mismatch(
                f"the scheduler hook of jaxlib {_JAXLIB} makes compilers forget donation, which would cost more memory "
                "than an order gains: jaxlib 0.12 keeps both"
            )
        try:
            import jax.extend.xla as xla

            where: Any = {"stage": xla.PipelineStage.POST_SCHEDULER, "platforms": self.platform}
            xla.register_hlo_module_transformation(self._call, name=self.mark, **where)
        except Exception as error:
            raise Mismatch(
                f"jax {jax.__version__} has no scheduler hook ({in_words(error)}): use 0.10.2 or later"
            ) from None
        cache_key = jax_private.cache_key
        before = cache_key.custom_hook
        cache_key.custom_hook = lambda: f"{before()} lapstrake {self.mark}"

        def unregister() -> None:
            cache_key.custom_hook = before
            xla.clear_hlo_module_transformation(self.mark, **where)

        return unregister

    def outcome(self) -> str:
        """For `install`: whether the compiler asked."""
        if self.fired:
            others = f"; another module of this name keeps its own: {self.problem}" * bool(self.problem)
            return f"order: applied to {self.module} ({len(self.ranks)} instructions){others}"
        if self.problem:
            return f"order: not applied, {self.problem}"
        return (
            f"order: the compiler has not asked for it; {self.module} was not compiled since it was installed, or "
            "came from the compilation cache, where only what was compiled under this plan is found"
        )

    def _call(self, serialised: bytes) -> bytes | None:
        try:
            module = jax_private.hlo.HloModule.from_serialized_hlo_module_proto(serialised)
            if module.name.partition(".")[0] != self.module.partition(".")[0]:
                return None
            self._reorder(module)
            result: bytes = module.as_serialized_hlo_module_proto()
        except Exception as error:  # it would fail the job's compilation
            self.problem = in_words(error)
            log.warning("lapstrake: order not applied: %s", self.problem)
            return None
        self.fired += 1
        return result

    def _reorder(self, module: Any) -> None:
        if self.check:
            self.check(module)
        schedule = module.schedule()
        for computation in module.computations():
            try:
                sequence = list(schedule.sequence(computation))
            except (RuntimeError, LookupError):
                continue  # part of a fusion: it has no order of its own
            schedule.set_sequence(computation, _sorted_by(sequence, [self._rank(i) for i in sequence]))
        schedule.verify()
        module.set_schedule(schedule)

    def _rank(self, instruction: Any) -> int | None:
        return self.ranks.get(instruction.name) if self.check else rank_in_line(instruction.to_string(), self.ranks)


def rank_in_line(line: str, ranks: Mapping[str, int]) -> int | None:
    """Place in the plan of the instruction on a line of HLO text, by the last tag in its op_name."""
    tags = TAG.findall(line)
    opcode = re.search(r" ([a-z][a-z0-9\-]*)\(", line.partition(" = ")[2])
    if not tags or opcode is None or opcode[1] in _UNORDERED:
        return None
    end = opcode[1].rpartition("-")[2]
    if end in ("start", "done"):
        return ranks.get(f"{tags[-1]}/{end}", ranks.get(tags[-1]))
    # A compiler without asynchronous transfers does the whole where the plan starts it.
    return ranks.get(tags[-1], ranks.get(f"{tags[-1]}/start"))


def _sorted_by(sequence: Sequence[Any], ranks: Sequence[int | None]) -> list[Any]:
    """By rank; what has none goes right before the first that needs it, else last, in turn.

    Nothing gets a greater key than what needs it, so that a stable sort keeps the topological order one.
    """
    at = {instruction.name: number for number, instruction in enumerate(sequence)}
    keys = [math.inf if rank is None else rank for rank in ranks]
    for number in reversed(range(len(sequence))):
        controls = getattr(sequence[number], "control_predecessors", tuple)  # not in every jaxlib
        for needed in (*sequence[number].operands(), *controls()):
            if needed.name in at:
                keys[at[needed.name]] = min(keys[at[needed.name]], keys[number])
    return [sequence[number] for number in sorted(range(len(sequence)), key=keys.__getitem__)]
