"""Costs as a profile that XLA takes (`ProfiledInstructionsProto` text, "PGLE").

On GPU XLA reads only `costs`, and looks an asynchronous pair up under its start's name, so transfers are written
there; `latencies` would be dropped without a word.
"""

from __future__ import annotations

from engine.cost.compiler_schedule import PREDICTED_TEXT
from engine.cost.program import Program

_PS_PER_US = 1_000_000


def costs_text(program: Program) -> str:
    """Text proto with one `costs` entry for every instruction that takes time, by name."""
    entries = [PREDICTED_TEXT]
    for computation, graph in program.graphs.items():
        costs = program.costs[computation]
        times = (costs.compute + costs.transfer).tolist()
        entries += [_entry(name, time) for name, time in zip(graph.names, times, strict=True) if time]
    return "\n".join(entries) + "\n"


def _entry(name: str, picoseconds: int) -> str:
    quoted = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'costs {{ name: "{quoted}" cost_us: {picoseconds / _PS_PER_US:.6f} }}'
