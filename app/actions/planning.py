"""What the menu Plan has: variants, the budget, and what is forced or forbidden."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from app.actions.action import Action, Scope, opened
from engine.session import edits
from engine.session.session import Session

if TYPE_CHECKING:
    from app.explorer import Explorer


def _active(explorer: Explorer, label: str, change: Callable[[Session, str], Session]) -> None:
    session = explorer.store.state
    explorer.store.become(f"{label} {session.active}", change(session, session.active))


def _recorded(session: Session) -> bool:
    entry = session.active_entry
    return entry is not None and entry.recording is not None


def _several(session: Session) -> bool:
    return len(session.entries) > 1


PLAN: tuple[Action, ...] = (
    Action(
        "duplicate",
        "Add a variant like this one",
        "Plan",
        lambda e: e.duplicate(),
        ("Ctrl+D",),
        enabled=opened,
        tip="A copy of the active variant, to be changed in the plan line",
    ),
    Action(
        "plan-form",
        "A variant from all options …",
        "Plan",
        lambda e: e.show_plan_form(),
        ("Ctrl+Shift+D",),
        enabled=opened,
        tip="Every option of every pass and scheduler, as a form",
    ),
    Action(
        "remove",
        "Remove the variant",
        "Plan",
        lambda e: _active(e, "Remove", edits.removed),
        ("Ctrl+Backspace",),
        enabled=_several,
    ),
    Action("rename", "Name the variant …", "Plan", lambda e: e.ask_name(), ("F2",), enabled=opened),
    Action(
        "base",
        "Compare others with this one",
        "Plan",
        lambda e: _active(e, "Compare with", edits.based),
        ("B",),
        Scope.TIMELINE,
        opened,
    ),
    Action(
        "fold",
        "Fold or open",
        "Plan",
        lambda e: _active(e, "Fold or open", edits.folded),
        ("Z",),
        Scope.TIMELINE,
        opened,
    ),
    Action(
        "move-up",
        "Move up",
        "Plan",
        lambda e: _active(e, "Move", lambda s, k: edits.moved(s, k, -1)),
        ("Alt+Up",),
        enabled=_several,
    ),
    Action(
        "move-down",
        "Move down",
        "Plan",
        lambda e: _active(e, "Move", lambda s, k: edits.moved(s, k, 1)),
        ("Alt+Down",),
        enabled=_several,
    ),
    Action(
        "next-variant",
        "Next variant",
        "Plan",
        lambda e: e.step_variant(1),
        ("Ctrl+Down",),
        enabled=_several,
        separated=True,
    ),
    Action(
        "previous-variant", "Previous variant", "Plan", lambda e: e.step_variant(-1), ("Ctrl+Up",), enabled=_several
    ),
    Action(
        "budget-up",
        "Larger budget",
        "Plan",
        lambda e: e.step_budget(1),
        ("Ctrl+Right",),
        enabled=opened,
        separated=True,
    ),
    Action("budget-down", "Smaller budget", "Plan", lambda e: e.step_budget(-1), ("Ctrl+Left",), enabled=opened),
    Action(
        "use-as-costs",
        "Use its times as costs",
        "Plan",
        lambda e: e.imports.use_as_costs(),
        enabled=_recorded,
        tip="Price every plan with the times of the active profile or schedule",
    ),
    Action(
        "force",
        "Force the picked collectives",
        "Plan",
        lambda e: e.window.collectives.override("force"),
        enabled=opened,
        separated=True,
    ),
    Action(
        "forbid",
        "Forbid the picked collectives",
        "Plan",
        lambda e: e.window.collectives.override("forbid"),
        enabled=opened,
    ),
    Action(
        "gate",
        "Leave the picked collectives to the gate",
        "Plan",
        lambda e: e.window.collectives.override(None),
        enabled=opened,
    ),
)
