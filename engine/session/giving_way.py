"""What became of a default plan, in words: its picture changes although nobody touched it, and says why."""

from __future__ import annotations

from collections.abc import Mapping

from engine.passes.rows import rows_of
from engine.quantities import counted_text, time_text
from engine.session import edits
from engine.session.variant import Variant


def change_in_words(before: Variant, now: Variant) -> str:
    """What `now`, which takes the place of `before`, does otherwise, and what that gains; empty where they are the same
    plan. It may lose where both were found by search, `before` on another machine."""
    if before.plan == now.plan:
        return ""
    saved = before.metrics.makespan - now.metrics.makespan
    had, has = edits.options_of(before.plan, "decompose"), edits.options_of(now.plan, "decompose")
    if had is None and has is None:
        if before.plan.scheduler != now.plan.scheduler:
            return f"in {now.plan.scheduler} order: {_gained(saved, before.plan.scheduler)}"
        return f"nothing decomposed: {_gained(saved)}"
    if had is None:
        return f"decomposed after all: {_gained(saved)}"
    if has is None:
        count = len(rows_of([c for c in before.candidates if c.chosen]))
        dropped = f"all {count} rows dropped" if count > 1 else "its row dropped" if count else "no decomposition"
        return f"{dropped}: {_gained(saved, 'decomposed')}"
    return f"{_rows(had, has, saved)}{_gained(saved)}"


def _gained(saved: int, over: str = "") -> str:
    """What `saved` picoseconds of a step are called, beside another plan if one is named."""
    if not saved:
        return f"as fast as {over}" if over else "as fast"
    said = f"{time_text(abs(saved))} {'faster' if saved > 0 else 'slower'}"
    return f"{said} than {over}" if over else said


def _rows(had: Mapping[str, str], has: Mapping[str, str], saved: int) -> str:
    """Which rows, if any, are left whole now and were not, or the other way round."""
    dropped, taken = len(_left(has) - _left(had)), len(_left(had) - _left(has))
    parts = [f"{counted_text(dropped, 'row')} dropped"] if dropped else []
    parts += [f"{counted_text(taken, 'row')} decomposed after all"] if taken else []
    parts += ["chains taken apart"] if has.get("chain") != had.get("chain") else []
    if len(parts) == 1 and dropped and saved >= 0:
        return f"{parts[0]}: no gain, without {'it' if dropped == 1 else 'them'} "
    return f"{', '.join(parts)}: " if parts else ""


def _left(options: Mapping[str, str]) -> frozenset[str]:
    """Rows, or sites of them, that the options leave whole for losing."""
    return frozenset(filter(None, options.get("losing", "").split(";")))
