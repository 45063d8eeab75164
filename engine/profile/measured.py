"""How long each instruction took in a measured profile, averaged over its executions and devices."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from engine.profile.profile import Profile
from engine.timeline.timeline import LaneKind

_ENDS = re.compile(r"-(start|done)\b")


@dataclass(frozen=True, slots=True)
class Measured:
    """What a profile says of each instruction, by name."""

    times: Mapping[str, int]
    """Picoseconds of one execution."""
    counts: Mapping[str, int]
    """How often it ran on one device."""


def measured_times(profile: Profile) -> Measured:
    """Times and counts of every instruction seen; none for a profile without HLO operations.

    A transfer lasts from its start to its done where the profile has a line for that. A GPU runs several kernels for
    one instruction: they add up. Copies that the compiler made of an instruction's value are left out.
    """
    flying = {
        (profile.lines[line].device, name)
        for line, name in zip(profile.line.tolist(), profile.name.tolist(), strict=True)
        if profile.lines[line].kind is LaneKind.TRANSFER
    }
    sums: dict[tuple[str, int, int], list[int]] = {}
    rows = zip(
        profile.line.tolist(), profile.name.tolist(), profile.part.tolist(), profile.duration.tolist(),
        profile.copies.tolist(), strict=True,
    )  # fmt: skip
    devices_with_transfers = {device for device, _ in flying}
    for number, name, part, duration, copy in rows:
        line = profile.lines[number]
        # What the compute line shows of a transfer that has a line of its own is only its issue and its wait.
        beside = line.kind is LaneKind.COMPUTE and line.device in devices_with_transfers
        part_of_transfer = (line.device, name) in flying or _ENDS.search(profile.names[name]) is not None
        if not copy and not (beside and part_of_transfer):
            sums.setdefault((line.device, name, part), []).append(duration)
    return _averaged(profile, sums)


def _averaged(profile: Profile, sums: Mapping[tuple[str, int, int], list[int]]) -> Measured:
    """Parts summed, then averaged over devices."""
    counts: dict[str, int] = {}
    on_device: dict[tuple[str, int], float] = {}
    for (device, name, _), durations in sums.items():
        title = profile.names[name]
        counts[title] = max(counts.get(title, 0), len(durations))
        key = device, name
        on_device[key] = on_device.get(key, 0.0) + sum(durations) / len(durations)
    values: dict[str, list[float]] = {}
    for (_, name), value in on_device.items():
        values.setdefault(profile.names[name], []).append(value)
    return Measured({name: round(sum(found) / len(found)) for name, found in values.items()}, counts)
