"""What the menu Graph has: moving, opening, parts, passes and bookmarks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from app.actions.action import Action, Scope, always, opened

if TYPE_CHECKING:
    from app.explorer import Explorer
    from views.graph.pane import GraphPane


def _graph(
    id_: str, title: str, act: Callable[[GraphPane], object], *keys: str, tip: str = "", separated: bool = False
) -> Action:
    def run(explorer: Explorer) -> None:
        act(explorer.graph)

    return Action(id_, title, "Graph", run, keys, Scope.GRAPH, opened, tip, separated)


def _bookmark(number: int) -> tuple[Action, Action]:
    """Two actions for each number; the first stand for all in menus and on the sheet of keys."""
    menu = "Graph" if number == 1 else ""
    others = " (2 … 9 alike)" if number == 1 else ""
    return (
        Action(
            f"bookmark-{number}",
            f"Go to bookmark {number}{others}",
            menu,
            lambda e: e.graph.moves.go_to_bookmark(number),
            (str(number),),
            Scope.GRAPH,
            opened,
            separated=number == 1,
        ),
        Action(
            f"set-bookmark-{number}",
            f"Set bookmark {number}{others}",
            menu,
            lambda e: e.graph.moves.set_bookmark(number),
            (f"Ctrl+{number}",),
            Scope.GRAPH,
            opened,
        ),
    )


GRAPH: tuple[Action, ...] = (
    Action("show-graph", "Show the graph", "Graph", lambda e: e.show_graph(), ("Ctrl+G",), enabled=opened),
    _graph("graph-fit", "Fit", lambda g: g.moves.fit(), "Space", separated=True),
    _graph("graph-in", "Zoom in", lambda g: g.moves.zoom(2), "W", "+", "="),
    _graph("graph-out", "Zoom out", lambda g: g.moves.zoom(-2), "S", "-"),
    _graph("graph-left", "Left", lambda g: g.moves.pan(-1, 0), "A", "Left"),
    _graph("graph-right", "Right", lambda g: g.moves.pan(1, 0), "D", "Right"),
    _graph("graph-up", "Up", lambda g: g.moves.pan(0, -1), "Up"),
    _graph("graph-down", "Down", lambda g: g.moves.pan(0, 1), "Down"),
    _graph("graph-focus", "Focus the selection", lambda g: g.moves.focus_selection(), "F"),
    _graph("graph-user", "Follow to a user", lambda g: g.moves.follow_edges(forward=True), "]"),
    _graph("graph-operand", "Follow to an operand", lambda g: g.moves.follow_edges(forward=False), "["),
    _graph(
        "graph-toggle",
        "Open or close",
        lambda g: g.moves.toggle_selected(),
        "O",
        "Return",
        tip="The selected group; or double-click it",
        separated=True,
    ),
    _graph(
        "graph-toggle-deep",
        "Open or close with all that lies in it",
        lambda g: g.moves.toggle_selected(deep=True),
        "Shift+O",
        tip="Or double-click it with Alt",
    ),
    _graph("graph-close", "Close all groups", lambda g: g.groups.close_all(), "Z"),
    _graph("graph-around", "What is around the selection", lambda g: g.parts.show_around(), "G", separated=True),
    _graph("graph-paths", "Paths between the two selected", lambda g: g.parts.show_paths(), "P"),
    _graph("graph-whole", "Whole module", lambda g: g.parts.show_whole(), "Backspace"),
    _graph("graph-next", "Next pass", lambda g: g.step(1), "N", tip="Before and after it", separated=True),
    _graph("graph-previous", "Previous pass", lambda g: g.step(-1), "B"),
    _graph("graph-table", "Table of the shown nodes", lambda g: g.show_table(), "T", separated=True),
    Action(
        "export-graph",
        "Save the graph as a picture …",
        "Graph",
        lambda e: e.picturing.ask_graph(),
        enabled=opened,
        tip="PNG of what is seen at twice the size; SVG or DOT of all that is open",
    ),
    *(action for number in range(1, 10) for action in _bookmark(number)),
    Action(
        "search-graph",
        "Find in the graph",
        "",
        lambda e: e.window.timelines.search.open_bar(),
        ("/",),
        Scope.GRAPH,
        opened,
    ),
    Action("keys-graph", "Keys", "", lambda e: e.show_keys(), ("?",), Scope.GRAPH, always),
)
