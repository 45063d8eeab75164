"""Element types by the names that HLO text has for them."""

from __future__ import annotations

from engine.hlo import hlo_pb2
from engine.hlo.hlo_pb2 import PrimitiveType


def element_type(name: str) -> PrimitiveType:
    """Of ``bf16``, ``f8e4m3fn``, ``pred``."""
    found: PrimitiveType = getattr(hlo_pb2, name.upper())
    return found
