"""What `lapstrake tune` says: what was tried, what won, over what, by whose costs, and what became of the bundle."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator

from app.cli import tables
from app.cli.console import note
from engine.export.bundle import DECOMPOSES_NOTHING
from engine.export.captured import Capture
from engine.export.tuned import Bundled
from engine.ir.module import Module
from engine.quantities import gain_text, time_text
from engine.session.judging import Judgement
from engine.session.plan import plan_text
from engine.session.tuning import Tuning, without_decomposition
from engine.session.variant import UNLIKE, collectives_in, costs_in_words, gain_in_words, unlike_in_words


def show(arguments: Namespace, found: Tuning, judgement: Judgement | None) -> None:
    """Notes, what was tried, the variants, and what a compiler says of them."""
    for text in found.best.notes:
        note(arguments, f"note: {text}")
    by_cycles = [] if judgement is None else [r for r in judgement.rulings if r.plan is not None]
    alike = found.trials if len(found.trials) >= len(by_cycles) else by_cycles
    possible = [t for t in alike if t.makespan]
    stopped = "" if found.finished else ", stopped at the time limit"
    searched = f" over {', '.join(found.dimensions)}" if found.dimensions else ""
    plans = "1 plan" if len(alike) == 1 else f"{len(alike)} plans"
    print(f"{plans} tried{searched}, {len(alike) - len(possible)} not possible{stopped}")
    tables.show_trials(found)
    tables.show_variants(list(dict.fromkeys((found.base, found.against, found.best))))
    if judgement is None:
        for text in _uncounted(found):
            print(text)
    if judgement is not None:
        tables.show_rulings(judgement)


def show_nothing_faster(found: Tuning, judgement: Judgement | None, name: str) -> None:
    """Why no bundle is written; `name` is the option that names a plan."""
    if nothing_possible(found):
        print(f"nothing to tune: {_none_possible(found)}; no bundle was written")
        return
    if not collectives_in(found.base.program.module):
        print("nothing to tune: the module has no collectives; no bundle was written")
        return
    print(_nothing_faster(found, judgement))
    print(f"no bundle was written: name a plan with {name} to have one, or take --bundle-anyway for the best of these")


def nothing_possible(found: Tuning) -> bool:
    """Whether none of the plans that were tried can be: there is then no best of them either."""
    return bool(found.trials) and all(trial.metrics is None for trial in found.trials)


def show_best(found: Tuning, judgement: Judgement | None, *, faster: bool) -> None:
    """The plan that is bundled, and what it gains over what its compiler does by itself; `faster` whether it does."""
    best, against = found.best, found.against
    if not faster:
        print(_nothing_faster(found, judgement))
    named = "plan" if len(found.trials) == 1 and judgement is None else "best"
    print(f"{named if faster else 'bundled all the same'}: {plan_text(best.plan)} | {best.schedule.budget}")
    before, after, loaded = (v.metrics.makespan for v in (against, best, found.base))
    whose = costs_in_words([found.base, against, best])
    also = "" if against is found.base else f"; as loaded {time_text(loaded)} ({gain_in_words(found.base, best)})"
    change = f"{time_text(before)} → {time_text(after)} ({gain_in_words(against, best)})"
    print(f"{against.name} {change}{also}, predicted by {whose}")
    if judgement is not None and judgement.base.cycles and judgement.best.cycles:
        fewer = gain_text(judgement.base.cycles, judgement.best.cycles)
        print(
            f"{judgement.base.name} {judgement.base.cycles:,} → {judgement.best.cycles:,} cycles ({fewer}), predicted "
            f"by the compiler for {judgement.target}"
        )
    whole = without_decomposition(found.trials)
    if whole is None or whole.makespan is None or best.plan.passes == whole.plan.passes:
        return
    if after < whole.makespan < before:
        print(
            f"the best that decomposes nothing takes {time_text(whole.makespan)} "
            f"({gain_text(before, whole.makespan)}): {plan_text(whole.plan)}"
        )


def show_bundle(made: Bundled, module: Module, capture: Capture | None) -> None:
    """Whether the plan was verified, what its compiler may undo, where the bundle is and how its job is recognised."""
    print(made.verdict)
    for text in made.warnings:
        print(text if text == DECOMPOSES_NOTHING else f"may be undone: {text}")
    if not made.written:
        print("No bundle was written: a plan that changes the numbers is no plan.")
        return
    print(f"bundle: {made.path}")
    if capture is None and module.is_scheduled:
        print(
            "made from what a compiler had scheduled, which no job can be compared with: the job runs its own step. "
            "Make it from a dump right after partitioning, or from what lapstrake capture wrote"
        )
    elif capture is None:
        print("made from a bare dump: the job compiles its step once more at its start, to compare it")


def _uncounted(found: Tuning) -> Iterator[str]:
    """Plans that take less time than what is to be beaten, but are not priced alike."""
    limit = found.against.metrics.makespan
    unlike = [t for t in found.trials if t.unlike and t.makespan is not None and t.makespan < limit]
    if unlike:
        best = min(unlike, key=lambda trial: trial.makespan or 0)
        plans = f"1 plan that takes less time than {found.against.name} counts"
        if len(unlike) > 1:
            plans = f"{len(unlike)} plans that take less time than {found.against.name} count"
        yield (
            f"{UNLIKE} {plans} as no gain{'' if len(unlike) == 1 else '; of the fastest'}, "
            f"{time_text(best.makespan or 0)}: {unlike_in_words(best.unlike)}"
        )


def _none_possible(found: Tuning) -> str:
    tried = "the plan is not" if len(found.trials) == 1 else f"none of the {len(found.trials)} plans that were tried is"
    reasons = list(dict.fromkeys(trial.why_not for trial in found.trials))
    return f"{tried} possible" + (f": {reasons[0]}" if len(reasons) == 1 else "")


def _nothing_faster(found: Tuning, judgement: Judgement | None) -> str:
    against, best = found.against, found.best
    if judgement is not None:
        return f"nothing found is faster than the module {judgement.base.name}, by the compiler for {judgement.target}"
    base, whose = f"the module {against.name}, {time_text(against.metrics.makespan)}", costs_in_words([best, against])
    if against is not found.base:
        base = f"{base}, which is what its compiler makes of it"
    if len(found.trials) != 1:
        return f"nothing found is faster than {base}, predicted by {whose}"
    loss = best.metrics.makespan - against.metrics.makespan
    change = f"{time_text(loss)} slower" if loss > 0 else "no faster"
    if loss <= 0 and best.priced_unlike(against):
        return f"the plan is not priced as the module {against.name} is: what it saves by {whose} is no gain"
    return f"the plan is {change} than {base}, predicted by {whose}"
