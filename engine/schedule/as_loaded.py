"""The module's own order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from engine.control import Control
from engine.schedule.problem import Order, Problem


@dataclass(frozen=True)
class AsLoaded:
    """The schedule that the module carries; without one, its instructions in the order of the file.

    It is taken as it is, also where it is over the budget or the memory cap.
    """

    name: ClassVar[str] = "as-loaded"

    def schedule(self, problem: Problem, control: Control) -> Order:
        graph = problem.graph
        return Order(np.arange(len(graph), dtype=np.int64) if graph.order is None else graph.order)
