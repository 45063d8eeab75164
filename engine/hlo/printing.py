"""HLO text of a module, by XLA's own printer."""

from __future__ import annotations

from engine import worker
from engine.control import QUIET, Control
from engine.hlo.header import insert_header
from engine.hlo.xla import print_proto
from engine.ir.module import Module


def print_here(module: Module) -> str:
    """HLO text with constants in full and the header fields that the proto loses, printed in this process.

    XLA may abort the process on a proto that was not checked: the window prints in a worker, see `print_module`.
    Raises XlaError when XLA refuses the proto.
    """
    return insert_header(print_proto(module.proto.SerializeToString()), module.header)


def print_module(module: Module, *, deadline: float = 300.0, control: Control = QUIET) -> str:
    """As `print_here`, in a worker process. Raises WorkerError when XLA aborts or takes over `deadline` seconds."""
    text = worker.call("engine.hlo.printing:print_in_worker", module, deadline=deadline, control=control)
    assert isinstance(text, str)
    return text


def print_in_worker(module: Module, *, control: Control) -> str:
    control.step(0.0, f"printing {module.name}")
    return print_here(module)
