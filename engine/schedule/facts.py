"""What the static rules of the priority list look at."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.ir.graph import Ints
from engine.schedule.instance import DONE, Instance


@dataclass(frozen=True, eq=False)
class Facts:
    """Columns over the n nodes of an instance."""

    instance: Instance
    role: Ints
    duration: Ints
    depth: Ints
    """Longest path from the beginning through the node, transfers included, in picoseconds."""
    async_depth: Ints
    """Longest sum of transfers on a path to the node, in picoseconds."""
    reads_done: npt.NDArray[np.bool_]
    position: Ints
    """In the input order."""
    hint: npt.NDArray[np.uint8]
    delay_priority: Ints

    @staticmethod
    def of(instance: Instance, input_order: list[int]) -> Facts:
        n = len(instance)
        depth, async_depth, reads_done = [0] * n, [0] * n, [False] * n
        role, duration, latency, partner = instance.role, instance.duration, instance.latency, instance.partner
        position = [0] * n
        for place, node in enumerate(input_order):
            position[node] = place
            own = deepest = 0
            unlocks = False
            start, wait = (partner[node], latency[node]) if role[node] == DONE else (-1, 0)
            for p in instance.predecessors[node]:
                more = wait if p == start else 0
                here = depth[p] + more
                if here > own:
                    own = here
                here = async_depth[p] + more
                if here > deepest:
                    deepest = here
                if role[p] == DONE:
                    unlocks = True
            depth[node] = own + duration[node]
            async_depth[node] = deepest
            reads_done[node] = unlocks
        hints = instance.problem.hints
        return Facts(
            instance=instance,
            role=np.array(role, np.int64),
            duration=np.array(duration, np.int64),
            depth=np.array(depth, np.int64),
            async_depth=np.array(async_depth, np.int64),
            reads_done=np.array(reads_done, np.bool_),
            position=np.array(position, np.int64),
            hint=np.zeros(n, np.uint8) if hints is None else hints.flags,
            delay_priority=np.zeros(n, np.int64) if hints is None else hints.priority,
        )
