"""What the timelines tell the platform's accessibility interface: the visible headers and what is selected."""

from __future__ import annotations

from engine.quantities import bytes_text, gain_text, time_text
from engine.session.matching import shown_in
from engine.session.session import Session
from engine.session.variant import unlike_in_words
from views.inspector.facts import exposed_by
from views.timeline.scene import rows_of


def description_of(session: Session) -> str:
    """The stack in words: one sentence a variant, then the selection."""
    if not session.entries:
        return "No module is open."
    sentences = [describe_variant(session, entry.key) for entry in session.entries]
    if session.selection:
        sentences.append(_selection(session))
    return " ".join(sentences)


def describe_variant(session: Session, key: str) -> str:
    """One variant in a sentence."""
    entry = session.entry(key)
    assert entry is not None
    active = ", active" if key == session.active else ""
    title = session.title_of(entry)
    if entry.error:
        return f"{key}, {title}{active}: {entry.ending}, {entry.error}."
    if entry.variant is None:
        return f"{key}, {title}{active}: not there yet."
    metrics = entry.variant.metrics
    base = session.base_entry
    before = base.variant if base is not None and base is not entry and entry.compares_with(base) else None
    gain = ""
    if before is not None:
        gain = f", {gain_text(before.metrics.makespan, metrics.makespan)} against {session.base}"
        names = entry.variant.priced_unlike(before)
        gain += f", {unlike_in_words(names)}" if names else ""
    measured = entry.variant.is_measured
    end = "measured" if measured else f"peak memory {bytes_text(metrics.peak_memory)}"
    return f"{key}, {title}{active}: {time_text(metrics.makespan)}, {time_text(metrics.exposed)} exposed, {end}{gain}."


def _selection(session: Session) -> str:
    entry = session.active_entry
    if entry is None or entry.variant is None:
        return ""
    ids = shown_in(session, entry.key)
    rows = rows_of(entry.variant.timeline, ids)
    if not len(rows):
        return f"The selection does not run in {entry.key}."
    start = int(entry.variant.timeline.start[rows].min())
    waits = exposed_by(entry.variant, ids)
    exposed = f", compute waits {time_text(waits)} for it" if waits else ""
    return f"Selected in {entry.key}: {len(rows)} slices from {time_text(start)}{exposed}."
