"""The production TPU compiler's own estimates, which its HLO carries."""

from __future__ import annotations

import re

from engine.hlo.hlo_pb2 import HloInstructionProto

_CYCLES = re.compile(rb'"estimated_cycles":"?(\d+)')


def estimated_cycles(instruction: HloInstructionProto) -> int | None:
    """`window_config.estimated_cycles` of the backend config, in cycles of the chip's clock; None where there is none.

    A search instead of a JSON parser: large modules carry tens of thousands of these configs, each over a kilobyte.
    """
    config = instruction.backend_config
    if b"estimated_cycles" not in config:
        return None
    found = _CYCLES.search(config)
    cycles = int(found[1]) if found else 0
    return cycles or None
