"""Orders of small peak memory: what the other schedulers start from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from engine.control import Control
from engine.schedule.instance import DONE, Instance
from engine.schedule.problem import Order, Problem


@dataclass(frozen=True)
class Memory:
    """The order of the smallest peak memory among the methods tried."""

    name: ClassVar[str] = "memory"

    def schedule(self, problem: Problem, control: Control) -> Order:
        return Order(np.array(post_order(Instance.of(problem)), np.int64))


def post_order(instance: Instance) -> list[int]:
    """Depth first from the root, operands in order; a start directly before its done."""
    order: list[int] = []
    state = bytearray(len(instance))
    roots = [instance.problem.graph.root]
    roots += [n for n in range(len(instance)) if not instance.successors[n]]
    for root in roots:
        stack = [root]
        while stack:
            node = stack[-1]
            if state[node]:
                stack.pop()
                if state[node] == 1:
                    state[node] = 2
                    order.append(node)
                continue
            state[node] = 1
            before = [p for p in instance.predecessors[node] if not state[p]]
            if instance.role[node] == DONE and instance.partner[node] in before:
                before.remove(instance.partner[node])
                before.insert(0, instance.partner[node])
                stack.append(before[0])
                stack.extend(reversed(before[1:]))
            else:
                stack.extend(reversed(before))
    return order
