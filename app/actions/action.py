"""One thing that can be done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from engine.session.session import Session

if TYPE_CHECKING:
    from app.explorer import Explorer


class Scope(StrEnum):
    """Where an action's keys work."""

    WINDOW = "everywhere"
    TIMELINE = "in the timelines"
    """Single letters act only while a timeline has the focus, so that they can be typed elsewhere."""
    GRAPH = "in the graph"
    TEXT = "in the HLO text"


def always(session: Session) -> bool:
    return True


def opened(session: Session) -> bool:
    return bool(session.path) and not session.problem and not session.reading


@dataclass(frozen=True)
class Action:
    """`run` is what it does; `keys` in Qt's portable form, the first one is shown in menus."""

    id: str
    title: str
    menu: str
    run: Callable[[Explorer], None]
    keys: tuple[str, ...] = ()
    scope: Scope = Scope.WINDOW
    enabled: Callable[[Session], bool] = always
    tip: str = ""
    separated: bool = False
    """Whether a line goes above it in its menu."""
