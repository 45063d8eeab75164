"""Times that do not come from the model, by instruction: what decides by prices takes them as the simulator does."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from engine.chips.budget import Kind
from engine.cost.costs import Origin
from engine.cost.program import Program


class GivenTime(NamedTuple):
    """A time that replaces the model's for one instruction."""

    time: int
    """Picoseconds of one execution: of a transfer where the instruction moves data, else of compute."""
    origin: Origin


NOTHING_GIVEN: Mapping[int, GivenTime] = MappingProxyType({})


def given_times(program: Program) -> Mapping[int, GivenTime]:
    """Times of `program` of a higher origin than the model's, by instruction id; of asynchronous pairs the start's."""
    found: dict[int, GivenTime] = {}
    for id_, graph in program.graphs.items():
        costs = program.costs[id_]
        for node in np.flatnonzero(costs.origin > Origin.MODEL).tolist():
            if graph.opcodes[node].endswith(("-done", "-update")):
                continue
            times = costs.compute if costs.kind[node] == Kind.COMPUTE else costs.transfer
            found[int(graph.ids[node])] = GivenTime(int(times[node]), Origin(int(costs.origin[node])))
    return found
