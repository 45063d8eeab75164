"""A profile as a variant beside the prediction: its timeline, and instruction by instruction how far off we were."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median_low

import numpy as np

from engine.control import QUIET, Control
from engine.cost.program import Program
from engine.errors import InputError, UsageError
from engine.hlo.hlo_pb2 import HloInstructionProto
from engine.ir.graph import Ints
from engine.profile.profile import ALONE, RUN_AS_JOB, Profile
from engine.session.measured_timeline import Step, step_metrics, step_timeline
from engine.session.variant import Variant
from engine.timeline.statistics import times_by_instruction
from engine.timeline.timeline import LaneKind

SYNCHRONOUS = (
    "CPU devices run starts and dones synchronously: times of single operations are measured, overlap is not shown."
)


@dataclass(frozen=True, slots=True)
class Observation:
    """One instruction, predicted and measured. Times in picoseconds of all its executions in one step."""

    instruction: int
    """Id."""
    name: str
    transfer: bool
    """Whether the times are those of a transfer from start to done, or of a blocking collective."""
    executions: int
    """Measured, in one step on one device."""
    predicted: int
    measured: int
    """Mean over devices and the profile's steps."""

    @property
    def error(self) -> float | None:
        """(predicted - measured) / measured; None where nothing was measured."""
        return (self.predicted - self.measured) / self.measured if self.measured else None


@dataclass(frozen=True, slots=True)
class Unmatched:
    """A name of the profile that no instruction of the module has."""

    name: str
    count: int
    """Events, on all devices."""
    time: int
    """Picoseconds of all of them."""


@dataclass(frozen=True, eq=False)
class Measured:
    """What a profile says of a variant's module."""

    variant: Variant
    """`source` is MEASURED: the timeline is one execution on one device, the metrics are its. It shares the program,
    plan and schedule of `predicted`. What profiles do not tell (memory, operations in flight, a lower bound) is 0."""
    predicted: Variant
    observations: tuple[Observation, ...]
    """Every instruction that was measured or predicted to take time, longest measured first."""
    unmatched: tuple[Unmatched, ...]
    """Longest first; empty where every event belongs to an instruction."""
    events: int
    """Of the profile's program."""
    matched: int
    """Of those, how many belong to an instruction of the module."""
    executions: int
    """Steps in the profile, on the device that ran most."""
    platform: str = ""
    """``cpu``, ``gpu`` or ``tpu``; empty where the profile does not tell."""
    notes: tuple[str, ...] = ()

    @property
    def overlaps(self) -> bool:
        """Whether transfers could run beside compute: not on CPU devices, where starts and dones are synchronous."""
        return self.platform != "cpu"


def measured_variant(
    predicted: Variant,
    profile: Profile,
    *,
    device: int = 0,
    execution: int | None = None,
    name: str = "measured",
    control: Control = QUIET,
) -> Measured:
    """`profile` as a variant beside `predicted`, whose module was run.

    The timeline shows one `execution` (None: the one of median length) on one `device` (number among the profile's).
    Raises InputError where no event of the profile belongs to the module, UsageError for a device or an execution that
    it does not have.
    """
    control.step(0.0, f"matching {profile.source}")
    matching = _Matching(predicted.program, profile)
    rows, others = matching.rows()
    steps = matching.steps(rows)
    devices = profile.devices
    if not 0 <= device < len(devices):
        raise UsageError(f"{profile.source}: devices 0 to {len(devices) - 1} are in the profile, but {device} came")
    control.step(0.4, "laying out the timeline")
    own = {number: found for (on, number), found in steps.items() if on == device}
    if not own:
        raise UsageError(
            f"{profile.source}: device {device} ({devices[device]}) ran nothing of {predicted.program.module.name}"
        )
    if execution is None:
        lengths = {number: _length(profile, found) for number, found in own.items()}
        execution = next(n for n, length in lengths.items() if length == median_low(lengths.values()))
    if execution not in own:
        raise UsageError(
            f"{profile.source}: executions 0 to {max(own)} are on {devices[device]}, but {execution} was asked for"
        )
    step = Step(profile, predicted.program, own[execution], matching.instruction, matching.executed)
    timeline = step_timeline(step, overlaps=profile.platform != "cpu")
    control.step(0.8, "comparing")
    counts = [number for _, number in steps]
    executions = max(counts) + 1
    notes = [*profile.notes, *others]
    if profile.platform == "cpu":
        chip = predicted.program.machine.chip.name
        notes += [
            SYNCHRONOUS,
            f"Predicted times are of {chip}, not of this CPU: beside its own they show no error of the model.",
        ]
    notes.append(
        f"Shown is execution {execution} of {executions} on {devices[device]}; compared are means over all of "
        f"them{'' if len(devices) == 1 else f' and {len(devices)} devices'}."
    )
    unmatched = matching.unmatched(rows)
    return Measured(
        variant=replace(
            predicted,
            name=name,
            timeline=timeline,
            metrics=step_metrics(step, timeline, predicted),
            notes=tuple(notes),
            held=(),
            proven=None,
        ),
        predicted=predicted,
        observations=_observations(matching, predicted, steps),
        unmatched=unmatched,
        events=len(rows),
        matched=len(rows) - sum(u.count for u in unmatched),
        executions=executions,
        platform=profile.platform,
        notes=tuple(notes),
    )


def best_match(variants: Sequence[Variant], profile: Profile) -> Variant:
    """The variant whose module has the most events of `profile`, the first of them: the one that was run.

    Raises InputError where none has any.
    """
    found = [_Matching(variant.program, profile) for variant in variants]
    counts = [int((matching.instruction >= 0).sum()) for matching in found]
    best = counts.index(max(counts))
    found[best].rows()
    return variants[best]


class _Matching:
    """Which instruction each event of a profile belongs to."""

    def __init__(self, program: Program, profile: Profile) -> None:
        self.program, self.profile = program, profile
        known = {name: instruction.id for name, instruction in program.module.by_name.items()}
        known |= _dones(program)
        ids = np.array([known.get(name, -1) for name in profile.names], dtype=np.int64)
        self.instruction: Ints = ids[profile.name] if len(profile) else np.zeros(0, dtype=np.int64)
        """Instruction id by event, -1 for none."""
        self.executed = _executed(program)
        device_of = {name: k for k, name in enumerate(profile.devices)}
        lines = np.array([device_of[line.device] for line in profile.lines], dtype=np.int64)
        self.device: Ints = lines[profile.line] if len(profile) else np.zeros(0, dtype=np.int64)

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


def _length(profile: Profile, rows: Ints) -> int:
    return int((profile.start[rows] + profile.duration[rows]).max() - profile.start[rows].min())


def _observations(
    matching: _Matching, predicted: Variant, steps: Mapping[tuple[int, int], Ints]
) -> tuple[Observation, ...]:
    profile, module = matching.profile, predicted.program.module
    totals: dict[int, int] = {}
    counts: dict[int, int] = {}
    for rows in steps.values():
        for id_, events in _by_instruction(matching, rows).items():
            totals[id_] = totals.get(id_, 0) + sum(int(profile.duration[row]) for row in events)
            parts = len({int(profile.part[row]) for row in events})
            counts[id_] = counts.get(id_, 0) + len(events) // parts
    model = times_by_instruction(predicted.timeline)
    found = []
    for id_ in {*totals, *(i for i, t in model.items() if t.compute or t.transfer)}:
        instruction = module.instructions.get(id_)
        if instruction is None or instruction.opcode in _FRAMES:
            continue
        times = model.get(id_)
        transfer = times is not None and times.transfer > 0
        if transfer and ALONE in profile.notes:
            continue
        found.append(
            Observation(
                instruction=id_,
                name=instruction.name,
                transfer=transfer,
                executions=round(counts.get(id_, 0) / len(steps)),
                predicted=0 if times is None else times.transfer if transfer else times.compute,
                measured=round(totals.get(id_, 0) / len(steps)),
            )
        )
    return tuple(sorted(found, key=lambda o: (-o.measured, -o.predicted, o.name)))


_FRAMES = frozenset({"while", "call", "conditional"})
"""Their time is that of what they run."""


def _by_instruction(matching: _Matching, rows: Ints) -> Mapping[int, Sequence[int]]:
    """Events of one execution that make up the time of each instruction that runs.

    Of a fusion that is run as a call its own event counts, which holds those inside. Of a transfer that has a line of
    its own, that counts; what the compute line shows of it is its issue and its wait.
    """
    profile, module = matching.profile, matching.program.module
    own: dict[int, list[int]] = {}
    inside: dict[int, list[int]] = {}
    flying: dict[int, list[int]] = {}
    for row in rows.tolist():
        if profile.copies[row]:
            continue
        id_ = int(matching.instruction[row])
        runs = matching.executed[id_]
        if profile.lines[profile.line[row]].kind is LaneKind.TRANSFER:
            flying.setdefault(runs, []).append(row)
        else:
            (own if id_ == runs else inside).setdefault(runs, []).append(row)
    found = {**inside, **own, **flying}
    return {id_: events for id_, events in found.items() if not _is_done(module.instructions[id_])}


def _is_done(instruction: HloInstructionProto) -> bool:
    """Whether what is measured of an instruction is only waiting."""
    return instruction.opcode.endswith(("-done", "-update"))
