"""What tests of the whole window with real workers wait for, and look at then."""

from __future__ import annotations

from pathlib import Path

from pytestqt.qtbot import QtBot

from app.explorer import Explorer
from engine.session.session import Entry, Session
from tests.patience import LONG as LONG


def drawn(explorer: Explorer) -> bool:
    """Whether every entry shows what it is asked for, or a problem is told. Jobs behind that may go on."""
    session = explorer.store.state
    if explorer.documents.replacing:
        return False
    return bool(session.problem) or (session.facts is not None and not any(e.pending for e in session.entries))


def settled(explorer: Explorer) -> bool:
    """Whether no job runs or is about to, nothing is being read, and no entry waits for a result."""
    idle = not any(job.state == "running" for job in explorer.jobs()) and not explorer.pruning.is_due
    return idle and not explorer.documents.replacing and not any(e.pending for e in explorer.store.state.entries)


def wait(qtbot: QtBot, explorer: Explorer) -> None:
    """Until a module is there and all is settled."""
    qtbot.waitUntil(lambda: explorer.store.state.facts is not None and settled(explorer), timeout=LONG)


def opened(qtbot: QtBot, explorer: Explorer, *paths: Path) -> Session:
    """Open files, and wait until all is settled."""
    explorer.open(*map(str, paths))
    qtbot.waitUntil(lambda: settled(explorer), timeout=LONG)
    return explorer.store.state


def active(explorer: Explorer) -> Entry:
    """The entry that the window shows."""
    entry = explorer.store.state.active_entry
    assert entry is not None
    return entry
