"""Which instruction of a module each event of a profile belongs to, and which execution it is part of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from engine.cost.program import Program
from engine.errors import InputError
from engine.ir.graph import Ints
from engine.profile.profile import RUN_AS_JOB, Profile


@dataclass(frozen=True, slots=True)
class Unmatched:
    """A name of the profile that no instruction of the module has."""

    name: str
    count: int
    """Events, on all devices."""
    time: int
    """Picoseconds of all of them."""


class Attribution:
    """Which instruction each event of a profile belongs to."""

    def __init__(self, program: Program, profile: Profile) -> None:
        self.program, self.profile = program, profile
        known = {name: instruction.id for name, instruction in program.module.by_name.items()}
        known |= _dones(program)
        ids = np.array([known.get(name, -1) for name in profile.names], dtype=np.int64)
        self.instruction: Ints = ids[profile.name] if len(profile) else np.zeros(0, dtype=np.int64)
        """Instruction id by event, -1 for none."""
        self.executed = _executed(program)
        """Instruction id → id of the instruction that runs it: the fusion that it is in, else itself."""
        device_of = {name: k for k, name in enumerate(profile.devices)}
        lines = np.array([device_of[line.device] for line in profile.lines], dtype=np.int64)
        self.device: Ints = lines[profile.line] if len(profile) else np.zeros(0, dtype=np.int64)
        """Number of its device by event."""

    def rows(self) -> tuple[Ints, tuple[str, ...]]:
        """Events of the program that is this module, and notes about the others.

        Raises InputError where there is none.
        """
        profile = self.profile
        counts = np.zeros(len(profile.modules), dtype=np.int64)
        np.add.at(counts, profile.module[self.instruction >= 0], 1)
        if not counts.any():
            some = ", ".join(profile.names[:3])
            raise InputError(
                f"{profile.source}: operations of {self.program.module.name} were expected, but it has none of its "
                f"instructions, only others such as {some}: give the module that was run (the compiled one, for a "
                "profile of a job), and the plan that it was run with"
            )
        own = int(counts.argmax())
        others = sorted(name or "one without a name" for k, name in enumerate(profile.modules) if k != own)
        notes = [f"Other programs in the profile were left out: {', '.join(others)}."] if others else []
        name, wanted = profile.modules[own].partition("(")[0], self.program.module.name
        if name and name not in (wanted, RUN_AS_JOB):
            notes.append(f"The profile is of a program called {name}, but the module is called {wanted}.")
        return np.flatnonzero(profile.module == own), tuple(notes)

    def steps(self, rows: Ints) -> Mapping[tuple[int, int], Ints]:
        """(device, number of the execution) → its events that belong to an instruction."""
        rows = rows[self.instruction[rows] >= 0]
        numbers = self.profile.execution[rows]
        if (numbers < 0).any():
            numbers = self._counted(rows)
        found: dict[tuple[int, int], list[int]] = {}
        for row, device, number in zip(rows.tolist(), self.device[rows].tolist(), numbers.tolist(), strict=True):
            found.setdefault((device, number), []).append(row)
        return {key: np.array(found[key], dtype=np.int64) for key in sorted(found)}

    def _counted(self, rows: Ints) -> Ints:
        """Numbers of executions for a profile that has none: each instruction of the entry runs once in each.

        A new execution begins where the first of them comes again.
        """
        entry = self.program.module.proto.entry_computation_id
        home = self.program.module.computation_of
        profile = self.profile
        numbers = np.zeros(len(rows), dtype=np.int64)
        for device in np.unique(self.device[rows]).tolist():
            mine = np.flatnonzero(self.device[rows] == device)
            mine = mine[np.argsort(profile.start[rows[mine]], kind="stable")]
            once = [k for k in mine.tolist() if home[int(self.instruction[rows[k]])] == entry]
            if not once:
                continue
            first = rows[once[0]]
            mark = (int(self.instruction[first]), int(profile.part[first]))
            begins = [
                int(profile.start[rows[k]])
                for k in once
                if (int(self.instruction[rows[k]]), int(profile.part[rows[k]])) == mark
            ]
            at = np.searchsorted(begins, profile.start[rows[mine]], side="right") - 1
            numbers[mine] = np.maximum(at, 0)
        return numbers

    def unmatched(self, rows: Ints) -> tuple[Unmatched, ...]:
        """Names of events among `rows` that no instruction has, longest first."""
        profile = self.profile
        found: dict[str, list[int]] = {}
        for row in rows[self.instruction[rows] < 0].tolist():
            found.setdefault(profile.names[profile.name[row]], []).append(int(profile.duration[row]))
        listed = [Unmatched(name, len(times), sum(times)) for name, times in found.items()]
        return tuple(sorted(listed, key=lambda u: (-u.time, u.name)))


def _dones(program: Program) -> Mapping[str, int]:
    """``NAME/done`` → id of the done whose start is NAME: what a compiler made of one tagged transfer."""
    return {
        f"{graph.names[int(graph.partner[node])]}/done": int(graph.ids[node])
        for graph in program.graphs.values()
        for node in range(len(graph))
        if 0 <= graph.partner[node] < node
    }


def _executed(program: Program) -> Mapping[int, int]:
    """Instruction id → id of the instruction that runs it: the fusion that it is in, else itself."""
    module = program.module
    callers = {
        callee: i.id
        for i in module.instructions.values()
        for callee in i.called_computation_ids
        if callee not in program.graphs
    }
    found: dict[int, int] = {}
    for id_ in module.instructions:
        runs = id_
        while module.computation_of[runs] in callers:
            runs = callers[module.computation_of[runs]]
        found[id_] = runs
    return found
