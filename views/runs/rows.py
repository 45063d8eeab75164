"""The table of the pane Runs: one row a variant, gathered without Qt."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from engine.execute.devices import Platform
from engine.execute.verifying import Verification
from engine.quantities import bytes_text, time_text
from engine.session.given import RecordingKind
from engine.session.session import Entry, Session
from engine.session.variant import Variant
from views.runs.runner import Outcome, Wish

CPU_ORIGIN = "proves numbers and structure, never overlap"
_NAMES = {"cpu": "CPU", "gpu": "GPU", "tpu": "TPU"}


@dataclass(frozen=True, slots=True)
class Row:
    """One variant that was run, as text."""

    key: str
    title: str
    median: str = ""
    spread: str = ""
    ratio: str = ""
    """Median over that of the base, timed in the same run."""
    told_apart: bool | None = None
    """Whether the medians differ by more than the times of either spread; None where there is no ratio."""
    equal: bool | None = None
    """None where it was not verified."""
    verdict: str = ""
    error: str = ""
    """Worst error against its tolerance."""
    place: str = ""
    """Where it is; or why there is no verdict."""
    order: str = ""
    """Whether the executable kept the chosen order."""


def waiting_text(session: Session) -> str:
    """Why nothing can be run yet: what is waited for, or that it has ended without a result."""
    pending = [entry.key for entry in session.entries if entry.pending]
    if pending:
        return f"Waiting for {', '.join(pending)}."
    return "No variant has a result." if session.entries else "Waiting for the first variant."


def runnable(session: Session) -> tuple[Entry, ...]:
    """Entries of the active module that show plans: profiles show the module of one of these, and the module in a
    compiler's schedule is not the one that the compiler ends with."""
    active = session.active_entry
    return tuple(
        entry
        for entry in session.entries
        if active is not None
        and entry.module == active.module
        and entry.variant is not None
        and not entry.stale
        and entry.recording is None
    )


def usual_choice(session: Session) -> frozenset[str]:
    """Keys of what is run unless the user says otherwise: base and active."""
    return frozenset((session.base, run_key(session)))


def run_key(session: Session) -> str:
    """Key of what is run for the active entry: its own; where it shows a profile, that of the measured plan."""
    active = session.active_entry
    if active is None or active.recording is None or active.recording.kind != RecordingKind.PROFILE:
        return session.active
    return next((entry.key for entry in runnable(session) if entry.plan == active.plan), session.active)


def rows_of(session: Session, outcome: Callable[[Variant], Outcome | None]) -> tuple[Row, ...]:
    """A row for every variant that was run or verified; the base, with which times are compared, comes first."""
    found = [
        (entry, known)
        for entry in runnable(session)
        if entry.variant is not None and (known := outcome(entry.variant)) is not None
    ]
    found.sort(key=lambda pair: pair[0].key != session.base)
    base = found[0][1] if found and found[0][0].key == session.base else None
    return tuple(_row(entry, known, base) for entry, known in found)


def _row(entry: Entry, known: Outcome, base: Outcome | None) -> Row:
    timing = known.timing
    verification = known.verification
    return Row(
        key=entry.key,
        title=entry.title,
        median=time_text(timing.median) if timing is not None else "",
        spread=time_text(timing.spread) if timing is not None else "",
        ratio=_ratio(known, base),
        told_apart=_told_apart(known, base),
        equal=verification.equal if verification is not None else None,
        verdict=_verdict(known),
        error=_error(verification) if verification is not None else "",
        place=_place(verification) if verification is not None else known.trouble,
        order=str(timing.order) if timing is not None and timing.order is not None else "",
    )


def _ratio(known: Outcome, base: Outcome | None) -> str:
    if known.timing is None or base is None or base.timing is None:
        return ""
    if known is base:
        return "base"
    if known.run != base.run:
        return "another run"
    return f"{known.timing.median / base.timing.median:.3f} ×" if base.timing.median else ""


def _told_apart(known: Outcome, base: Outcome | None) -> bool | None:
    if known.timing is None or base is None or base.timing is None or known is base or known.run != base.run:
        return None
    return abs(known.timing.median - base.timing.median) > max(known.timing.spread, base.timing.spread)


def _verdict(known: Outcome) -> str:
    if known.verification is None:
        return "not run" if known.trouble else ""
    return "equal" if known.verification.equal else "NOT EQUAL"


def _error(verification: Verification) -> str:
    worst = verification.worst
    if worst is None:
        return "no results"
    return f"{worst.error:.2g} of {worst.tolerance:.2g}"


def _place(verification: Verification) -> str:
    worst = verification.worst
    return "" if worst is None else worst.place if worst.error else "exactly as expected everywhere"


def platform_title(platform: Platform) -> str:
    """As the list of platforms offers it."""
    name = _NAMES.get(platform.name, platform.name)
    if platform.name == "cpu" and not platform.problem:
        return "CPU devices"
    if platform.problem:
        return f"{name}: none"
    return f"{platform.count} × {platform.kind or name}"


def platform_facts(platform: Platform) -> str:
    """What is known of a platform, in a line."""
    if platform.problem:
        return "none here"
    parts = [f"{platform.count} attached"] if platform.name != "cpu" else ["as many as the module needs, on this host"]
    if platform.memory is not None:
        parts.append(f"{bytes_text(platform.memory)} each")
    if platform.version and platform.version != platform.name:
        parts.append(platform.version)
    return " · ".join(parts)


def shortage(session: Session, platform: Platform | None, wish: Wish) -> str:
    """Why a platform has too few devices for the active module; empty where it has enough."""
    needed = devices_needed(session)
    if platform is None or platform.name == "cpu" or wish.alone or needed <= platform.count:
        return ""
    name = _NAMES.get(platform.name, platform.name)
    if platform.problem:
        return f"There are no {name} devices here: {platform.problem.removeprefix(f'no {platform.name} devices: ')}"
    attached = f"only {platform.count} {'is' if platform.count == 1 else 'are'} attached"
    return f"The module runs on {needed} devices, but {attached}."


def devices_needed(session: Session) -> int:
    """How many devices the active module is partitioned for."""
    return session.facts.partitions if session.facts is not None else 0


def origin_of(outcomes: Sequence[Outcome]) -> str:
    """Where times and numbers come from, with what they cannot say."""
    found = dict.fromkeys(outcome.origin for outcome in outcomes if outcome.origin)
    checked = dict.fromkeys(
        devices_text(o.verification.platform, o.verification.devices) for o in outcomes if o.verification is not None
    )
    parts = [f"measured on {', '.join(found)}"] if found else []
    if checked:
        parts.append(f"verified on {', '.join(checked)}")
    if any("CPU" in place for place in (*found, *checked)):
        parts.append(CPU_ORIGIN)
    return " — ".join(parts)


def devices_text(platform: str, count: int, *, alone: bool = False) -> str:
    """``8 CPU devices``."""
    name = _NAMES.get(platform, platform)
    if alone:
        return f"one {name} device, its compute alone"
    return f"{count} {name} device{'s' if count != 1 else ''}"
