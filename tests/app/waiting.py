"""What tests of the whole window with real workers wait for, and look at then."""

from __future__ import annotations

from pytestqt.qtbot import QtBot

from app.explorer import Explorer
from engine.session.session import Entry

LONG = 60_000
"""Milliseconds after which a test gives up."""


def wait(qtbot: QtBot, explorer: Explorer) -> None:
    """Until a module is there, no job runs, and no entry waits for a result."""

    def settled() -> bool:
        session = explorer.store.state
        idle = not explorer.documents.replacing and not any(job.state == "running" for job in explorer.jobs())
        return idle and session.facts is not None and not any(entry.pending for entry in session.entries)

    qtbot.waitUntil(settled, timeout=LONG)


def active(explorer: Explorer) -> Entry:
    """The entry that the window shows."""
    entry = explorer.store.state.active_entry
    assert entry is not None
    return entry
