"""A profile as a variant beside the prediction: its timeline, and instruction by instruction how far off we were."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median_low

from engine.control import QUIET, Control
from engine.errors import UsageError
from engine.hlo.hlo_pb2 import HloInstructionProto
from engine.ir.graph import Ints
from engine.ir.graphs import SEQUENTIAL
from engine.profile.profile import ALONE, Profile
from engine.session.attribution import Attribution, Unmatched
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
    attribution = Attribution(predicted.program, profile)
    rows, others = attribution.rows()
    steps = attribution.steps(rows)
    control.step(0.4, "laying out the timeline")
    execution = _execution(attribution, steps, device, execution)
    step = Step(profile, predicted.program, steps[device, execution], attribution.instruction, attribution.executed)
    timeline = step_timeline(step, overlaps=profile.platform != "cpu")
    control.step(0.8, "comparing")
    executions = max(number for _, number in steps) + 1
    devices = profile.devices
    shown = (
        f"Shown is execution {execution} of {executions} on {devices[device]}; compared are means over all of "
        f"them{'' if len(devices) == 1 else f' and {len(devices)} devices'}."
    )
    notes = (*profile.notes, *others, *_platform_notes(predicted, profile), shown)
    unmatched = attribution.unmatched(rows)
    metrics = step_metrics(step, timeline, predicted)
    return Measured(
        variant=replace(predicted, name=name, timeline=timeline, metrics=metrics, notes=notes, held=(), proven=None),
        predicted=predicted,
        observations=_observations(attribution, predicted, steps),
        unmatched=unmatched,
        events=len(rows),
        matched=len(rows) - sum(u.count for u in unmatched),
        executions=executions,
        platform=profile.platform,
        notes=notes,
    )


def _execution(
    attribution: Attribution, steps: Mapping[tuple[int, int], Ints], device: int, execution: int | None
) -> int:
    """The execution that is shown of a device: the one asked for, else the one of median length.

    Raises UsageError for a device or an execution that is not there.
    """
    profile = attribution.profile
    if not 0 <= device < len(profile.devices):
        last = len(profile.devices) - 1
        raise UsageError(f"{profile.source}: devices 0 to {last} are in the profile, but {device} came")
    where = profile.devices[device]
    lengths = {number: _length(profile, rows) for (on, number), rows in steps.items() if on == device}
    if not lengths:
        raise UsageError(
            f"{profile.source}: device {device} ({where}) ran nothing of {attribution.program.module.name}"
        )
    if execution is None:
        return next(n for n, length in lengths.items() if length == median_low(lengths.values()))
    if execution not in lengths:
        raise UsageError(
            f"{profile.source}: executions 0 to {max(lengths)} are on {where}, but {execution} was asked for"
        )
    return execution


def _platform_notes(predicted: Variant, profile: Profile) -> tuple[str, ...]:
    if profile.platform != "cpu":
        return ()
    chip = predicted.program.machine.chip.name
    return (
        SYNCHRONOUS,
        f"Predicted times are of {chip}, not of this CPU: beside its own they show no error of the model.",
    )


def best_match(variants: Sequence[Variant], profile: Profile) -> Variant:
    """The variant whose module has the most events of `profile`, the first of them: the one that was run.

    Raises InputError where none has any.
    """
    found = [Attribution(variant.program, profile) for variant in variants]
    counts = [int((attribution.instruction >= 0).sum()) for attribution in found]
    best = counts.index(max(counts))
    found[best].rows()
    return variants[best]


def _length(profile: Profile, rows: Ints) -> int:
    return int((profile.start[rows] + profile.duration[rows]).max() - profile.start[rows].min())


def _observations(
    attribution: Attribution, predicted: Variant, steps: Mapping[tuple[int, int], Ints]
) -> tuple[Observation, ...]:
    profile, module = attribution.profile, predicted.program.module
    totals: dict[int, int] = {}
    counts: dict[int, int] = {}
    for rows in steps.values():
        for id_, events in _by_instruction(attribution, rows).items():
            totals[id_] = totals.get(id_, 0) + sum(int(profile.duration[row]) for row in events)
            parts = len({int(profile.part[row]) for row in events})
            counts[id_] = counts.get(id_, 0) + len(events) // parts
    model = times_by_instruction(predicted.timeline)
    found = []
    for id_ in {*totals, *(i for i, t in model.items() if t.compute or t.transfer)}:
        instruction = module.instructions.get(id_)
        if instruction is None or instruction.opcode in SEQUENTIAL:
            continue  # Their time is that of what they run.
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


def _by_instruction(attribution: Attribution, rows: Ints) -> Mapping[int, Sequence[int]]:
    """Events of one execution that make up the time of each instruction that runs.

    Of a fusion that is run as a call its own event counts, which holds those inside. Of a transfer that has a line of
    its own, that counts; what the compute line shows of it is its issue and its wait.
    """
    profile, module = attribution.profile, attribution.program.module
    own: dict[int, list[int]] = {}
    inside: dict[int, list[int]] = {}
    flying: dict[int, list[int]] = {}
    for row in rows.tolist():
        if profile.copies[row]:
            continue
        id_ = int(attribution.instruction[row])
        runs = attribution.executed[id_]
        if profile.lines[profile.line[row]].kind is LaneKind.TRANSFER:
            flying.setdefault(runs, []).append(row)
        else:
            (own if id_ == runs else inside).setdefault(runs, []).append(row)
    found = {**inside, **own, **flying}
    return {id_: events for id_, events in found.items() if not _is_done(module.instructions[id_])}


def _is_done(instruction: HloInstructionProto) -> bool:
    """Whether what is measured of an instruction is only waiting."""
    return instruction.opcode.endswith(("-done", "-update"))
