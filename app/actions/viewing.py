"""What the menu View has: moving through the timelines, their lanes, and the look of the window."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from app.actions.action import Action, Scope, opened

if TYPE_CHECKING:
    from app.explorer import Explorer
    from views.timeline.view import TimelineView

_DIFFERENCE = "Of the active variant's text from the base's, which comes beside it"
_LANE = "The lane under the mouse, else that of the selected slice; lanes can also be dragged by their names"


def _timeline(
    id_: str, title: str, act: Callable[[TimelineView], object], *keys: str, tip: str = "", separated: bool = False
) -> Action:
    return Action(id_, title, "View", _on_view(act), keys, Scope.TIMELINE, opened, tip, separated)


def _text(id_: str, title: str, by: int, *keys: str, tip: str, separated: bool = False) -> Action:
    return Action(id_, title, "View", lambda e: e.text.step(by), keys, Scope.TEXT, opened, tip, separated)


def _on_view(act: Callable[[TimelineView], object]) -> Callable[[Explorer], None]:
    def run(explorer: Explorer) -> None:
        act(explorer.window.timelines.view)

    return run


VIEW: tuple[Action, ...] = (
    _timeline("zoom-in", "Zoom in", lambda v: v.moves.zoom_in(), "W", "+", "=", "Up"),
    _timeline("zoom-out", "Zoom out", lambda v: v.moves.zoom_out(), "S", "-", "Down"),
    _timeline("pan-left", "Earlier", lambda v: v.moves.pan_left(), "A", "Left"),
    _timeline("pan-right", "Later", lambda v: v.moves.pan_right(), "D", "Right"),
    _timeline("show-all", "Show all", lambda v: v.moves.show_all(), "0"),
    _timeline(
        "focus",
        "Focus the selection",
        lambda v: v.moves.focus_selection(),
        "F",
        tip="Centres it; pressed again, fits it",
    ),
    _timeline("next-slice", "Next on the lane", lambda v: v.moves.step_slice(1), ".", separated=True),
    _timeline("previous-slice", "Previous on the lane", lambda v: v.moves.step_slice(-1), ","),
    _timeline("to-user", "Follow to a user", lambda v: v.moves.follow_edges(forward=True), "]"),
    _timeline("to-operand", "Follow to an operand", lambda v: v.moves.follow_edges(forward=False), "["),
    _timeline(
        "measure",
        "Measure the selection",
        lambda v: v.moves.measure_selection(),
        "R",
        tip="Or drag over the lanes",
        separated=True,
    ),
    Action("mark", "Mark", "View", lambda e: e.mark(), ("M",), Scope.TIMELINE, opened),
    Action("note", "Mark with a note …", "View", lambda e: e.ask_note(), ("Shift+M",), Scope.TIMELINE, opened),
    _timeline("arrows", "Dependency arrows", lambda v: v.toggle_arrows(), "E", separated=True),
    _timeline("critical", "Critical path", lambda v: v.toggle_critical(), "C"),
    Action(
        "iteration",
        "Show an iteration …",
        "View",
        lambda e: e.iterations.ask(),
        ("Shift+I",),
        Scope.TIMELINE,
        opened,
        tip="Of the selected loop, or of the loop around the selection; one that is folded is unfolded first",
    ),
    _timeline("hide-lane", "Hide the lane under the mouse", lambda v: v.lanes.hide(), "H"),
    _timeline("all-lanes", "Show all lanes", lambda v: v.lanes.show_all(), "Shift+H"),
    _timeline("pin-lane", "Pin the lane, or let it go", lambda v: v.lanes.pin(), "Shift+P", tip=_LANE),
    _timeline("lane-up", "Move the lane up", lambda v: v.lanes.move(-1), "Shift+Up", tip=_LANE),
    _timeline("lane-down", "Move the lane down", lambda v: v.lanes.move(1), "Shift+Down", tip=_LANE),
    _text("next-difference", "Next difference in the HLO", 1, "F7", ".", tip=_DIFFERENCE, separated=True),
    _text("previous-difference", "Previous difference in the HLO", -1, "Shift+F7", ",", tip=_DIFFERENCE),
    Action("theme", "Light or dark", "View", lambda e: e.looks.toggle(), ("Ctrl+Shift+L",), separated=True),
    Action("theme-system", "Colours of the system", "View", lambda e: e.looks.choose("system")),
    Action("reset-layout", "Reset layout", "View", lambda e: e.window.reset_layout()),
)
