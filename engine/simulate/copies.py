"""What loop-carried copies take: a compiler inserts them late, so a module shows them only once it is compiled."""

from __future__ import annotations

from engine.cost.compute import work_time
from engine.cost.program import Program
from engine.cost.work import Work
from engine.ir.loop_copies import loop_copies
from engine.schedule.problem import Order


def copy_time(program: Program, computation: int, order: Order) -> int:
    """Picoseconds of the copies at the end of each iteration of a loop body that runs in `order`; 0 for others.

    Each copied array is read and written once, where it lies. `Program.copies` overrides the analysis.
    """
    if computation in program.copies:
        return program.copies[computation]
    if program.shows_copies or computation not in program.loop_bodies:
        return 0
    graph = program.graphs[computation]
    return sum(_time(program, int(graph.ids[copy.node])) for copy in loop_copies(program.module, graph, order.nodes))


def _time(program: Program, instruction: int) -> int:
    work = Work()
    for _ in ("read", "written"):
        work.move(program.module.instructions[instruction].shape, 1.0)
    return work_time(work, program.machine.chip)
