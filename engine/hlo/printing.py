"""HLO text of a module, by XLA's own printer."""

from __future__ import annotations

from engine.hlo.header import insert_header
from engine.hlo.xla import print_proto
from engine.ir.module import Module


def print_here(module: Module) -> str:
    """HLO text with constants in full and the header fields that the proto loses, printed in this process.

    XLA may abort the process on a proto that was not checked: the window prints in a worker. Raises XlaError when XLA
    refuses the proto.
    """
    return insert_header(print_proto(module.proto.SerializeToString()), module.header)
