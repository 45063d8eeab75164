"""What a module's frontend attributes ask of schedulers: groups to keep together, what should be early or late.

The names are XLA's: ``_scheduling_group_id`` (``scheduling_group_id`` where JAX writes it), ``scheduler_hint``,
``scheduler_delay_priority``, and ``force_earliest_schedule`` of a GPU's backend config.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.hlo.hlo_pb2 import HloInstructionProto
from engine.ir.graph import Ints
from engine.schedule.problem import Hint, Hints

_HINTS = {"force_early": Hint.LATE, "force_delay": Hint.EARLY, "force_delay_async": Hint.WIDE}
_GROUP = ("_scheduling_group_id", "scheduling_group_id")
_NO_GROUP = "noop"


def hints_of(instructions: Sequence[HloInstructionProto]) -> Hints | None:
    """Hints of a computation's instructions; None where there are none."""
    flags, priority = np.zeros(len(instructions), np.uint8), np.zeros(len(instructions), np.int64)
    found = False
    for node, instruction in enumerate(instructions):
        if b'"force_earliest_schedule":true' in instruction.backend_config.replace(b" ", b""):
            flags[node] |= Hint.EARLY
            found = True
        if not instruction.HasField("frontend_attributes"):
            continue
        attributes = instruction.frontend_attributes.map
        hint = _HINTS.get(attributes.get("scheduler_hint", ""))
        if hint is not None:
            flags[node] |= hint
            found = True
        delay = attributes.get("scheduler_delay_priority", "")
        if delay.lstrip("-").isdecimal():
            priority[node] = int(delay)
            found = True
    return Hints(flags, priority) if found else None


def groups_of(instructions: Sequence[HloInstructionProto]) -> Ints | None:
    """Scheduling group of each instruction, -1 for none; None where no instruction is in one.

    An id may carry the iteration it came from: groups of different iterations are apart.
    """
    group = np.full(len(instructions), -1, np.int64)
    numbers: dict[str, int] = {}
    for node, instruction in enumerate(instructions):
        if not instruction.HasField("frontend_attributes"):
            continue
        attributes = instruction.frontend_attributes.map
        name = next((attributes[key] for key in _GROUP if key in attributes), _NO_GROUP)
        if name != _NO_GROUP:
            group[node] = numbers.setdefault(name, len(numbers))
    return group if numbers else None
