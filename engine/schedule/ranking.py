"""The priority list under a scheduler's options: static rules as one number a node, dynamic rules between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.ir.graph import Ints
from engine.schedule.facts import Facts
from engine.schedule.problem import positions
from engine.schedule.rules import RULES, Dynamic, Policy, Rule
from engine.schedule.state import State

Score = list[int] | Dynamic
"""One element of a candidate's key: a list by node, or a function of the state."""


@dataclass(frozen=True, eq=False)
class Ranking:
    """The rules in force. The smaller key is placed first; no two nodes have equal ones."""

    rank: list[int]
    """Place of each node by static rules alone."""
    node_of: list[int]
    """The inverse."""
    scores: tuple[Score, ...]
    """Static and dynamic rules in order; neighbouring static ones are one list of ranks."""
    columns: Ints
    """Score of each static rule, shape [rules, n]."""
    rules: npt.NDArray[np.int64]
    """Number in `RULES` of each row of `columns`."""
    dynamic: tuple[int, ...]
    """Number in `RULES` of each element of `scores`; -1 for the static ones."""

    @staticmethod
    def of(facts: Facts, policies: frozenset[Policy], rules: Sequence[Rule] = RULES) -> Ranking:
        columns: list[Ints] = []
        numbers: list[int] = []
        scores: list[Score] = []
        dynamic: list[int] = []
        run: list[Ints] = []
        for number, rule in enumerate(rules):
            if rule.policy not in policies:
                continue
            if rule.static is not None:
                column = rule.static(facts)
                columns.append(column)
                numbers.append(number)
                run.append(column)
            elif rule.dynamic is not None:
                if run:
                    scores.append(_dense(run))
                    dynamic.append(-1)
                    run = []
                scores.append(rule.dynamic)
                dynamic.append(number)
        scores.append(_dense(run))
        dynamic.append(-1)
        order = np.lexsort(columns[::-1])
        return Ranking(
            rank=positions(order).tolist(),
            node_of=order.tolist(),
            scores=tuple(scores),
            columns=np.array(columns, np.int64).reshape(len(columns), len(order)),
            rules=np.array(numbers, np.int64),
            dynamic=tuple(dynamic),
        )

    def key(self, state: State, node: int) -> list[int]:
        """What candidates are compared by where dynamic rules are in force."""
        return [score[node] if isinstance(score, list) else score(state, node) for score in self.scores]

    def deciding(self, key: list[int], other: list[int]) -> int:
        """Number in `RULES` of the dynamic rule that decides between two keys; -1 where a static one does."""
        for a, b, number in zip(key, other, self.dynamic, strict=True):
            if a != b:
                return number
        return -1

    def static_rules(self, chosen: Ints, beaten: Ints) -> Ints:
        """Number in `RULES` of the first static rule in which each chosen node differs from the one it beat."""
        differ = self.columns[:, chosen] != self.columns[:, beaten]
        found: Ints = self.rules[np.argmax(differ, axis=0)]
        return found


def _dense(columns: list[Ints]) -> list[int]:
    """One number a node that orders like the columns, first column first; equal where all are."""
    order = np.lexsort(columns[::-1])
    table = np.array(columns, np.int64)[:, order]
    steps = np.any(table[:, 1:] != table[:, :-1], axis=0)
    rank = np.zeros(len(order), np.int64)
    rank[order[1:]] = np.cumsum(steps)
    found: list[int] = rank.tolist()
    return found
