"""How a search for a plan, or the making of its bundle, ended: in sentences, with what to do about it."""

from __future__ import annotations

from app.exporting import Found
from engine.control import Cancelled
from engine.errors import LapstrakeError
from engine.export.tuned import Bundled
from engine.quantities import gain_text, time_text
from engine.session.judging import Judgement
from engine.session.plan import Plan
from engine.session.tuning import without_decomposition
from engine.session.variant import UNLIKE
from views.export.port import Outcome, Progress


def nothing_faster(progress: Progress, found: Found | None, judgement: Judgement | None) -> Outcome:
    """No plan that was tried is faster than what it had to beat."""
    if progress.trials and all(trial.metrics is None for trial in progress.trials):
        return Outcome(
            good=False,
            said=f"Nothing to tune: no plan that was tried is possible; no bundle was written.{_stopped(found)}",
            way_out="The table says why; name another budget, a larger memory cap or more to search.",
        )
    whose = progress.costs if judgement is None else f"the compiler for {judgement.target}"
    name = "as loaded" if found is None or found.against is None else found.against[0]
    return Outcome(
        good=False,
        said=f"Nothing that was tried is faster than the module {name}, by {whose}; no bundle was "
        f"written.{_stopped(found)}",
        way_out="Give it more time, a larger memory cap or more to search, or bundle a plan of the table.",
    )


def bundled(made: Bundled, plan: Plan, progress: Progress, found: Found | None, judgement: Judgement | None) -> Outcome:
    """A bundle was written, or refused because the plan changes the numbers."""
    if not made.written:
        return Outcome(
            good=False,
            said=f"No bundle was written: a plan that changes the numbers is no plan. {made.verdict}",
            way_out="Bundle another plan of the table, or forbid its sites in the list of collectives.",
        )
    said = f"{made.path}: {_gain(plan, progress, found, judgement)} {made.verdict[:1].upper()}{made.verdict[1:]}."
    return Outcome(good=True, said=said, warnings=made.warnings)


def failed(error: LapstrakeError, progress: Progress, way_out: str) -> Outcome:
    """A job ended without what it was to make; `way_out` is for what the user did not end."""
    if not isinstance(error, Cancelled):
        return Outcome(good=False, said=str(error), way_out=way_out)
    tried = any(trial.metrics for trial in progress.trials)
    kept = "Bundle the best so far, or tune again." if tried else "Tune again."
    return Outcome(good=False, said="Stopped; no bundle was written.", way_out=kept)


def not_written(error: LapstrakeError) -> Outcome:
    """A file was not written."""
    if isinstance(error, Cancelled):
        return Outcome(good=False, said="Cancelled; nothing was written.", way_out="Export again.")
    return Outcome(good=False, said=str(error), way_out="Name another file, or export again.")


def _gain(plan: Plan, progress: Progress, found: Found | None, judgement: Judgement | None) -> str:
    trial = next((t for t in progress.trials if t.plan == plan), None)
    base = progress.base
    said = "bundled."
    if trial is not None and trial.makespan is not None and base is not None:
        name, before = (found and found.against) or ("as loaded", base)
        change = gain_text(before, trial.makespan) + (f" {UNLIKE}" if trial.unlike else "")
        also = "" if before == base else f"; as loaded {time_text(base)} ({gain_text(base, trial.makespan)})"
        said = (
            f"{name} {time_text(before)} → {time_text(trial.makespan)} ({change}){also}, predicted by {progress.costs}."
        )
        whole = without_decomposition(progress.trials)
        other = whole is not None and whole.plan.passes != plan.passes
        if whole is not None and whole.makespan is not None and other and whole.makespan < before:
            said += (
                f" The best that decomposes nothing takes {time_text(whole.makespan)} "
                f"({gain_text(before, whole.makespan)})."
            )
    if judgement is not None and judgement.base.cycles and judgement.best.cycles:
        cycles = gain_text(judgement.base.cycles, judgement.best.cycles)
        said += f" By the compiler for {judgement.target}: {judgement.best.cycles:,} cycles ({cycles})."
    return said + _stopped(found)


def _stopped(found: Found | None) -> str:
    return "" if found is None or found.finished else " The time limit ended the search."
