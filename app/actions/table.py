"""The table of actions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from app.actions.action import Action, Scope, always, opened
from engine.session import edits
from engine.session.session import Session

if TYPE_CHECKING:
    from app.explorer import Explorer
    from views.graph.pane import GraphPane
    from views.timeline.view import TimelineView

MENUS = ("File", "Edit", "View", "Graph", "Plan", "Run", "Help")


_LANE = "The lane under the mouse, else that of the selected slice; lanes can also be dragged by their names"


def _view(act: Callable[[TimelineView], object]) -> Callable[[Explorer], None]:
    def run(explorer: Explorer) -> None:
        act(explorer.window.timelines.view)

    return run


def _active(explorer: Explorer, label: str, change: Callable[[Session, str], Session]) -> None:
    session = explorer.store.state
    explorer.store.become(f"{label} {session.active}", change(session, session.active))


def _selected(session: Session) -> bool:
    return bool(session.selection)


def _recorded(session: Session) -> bool:
    entry = session.active_entry
    return entry is not None and entry.recording is not None


def _modules(session: Session) -> bool:
    return len(session.modules) > 1


def _several(session: Session) -> bool:
    return len(session.entries) > 1


def _timeline(
    id_: str, title: str, act: Callable[[TimelineView], object], *keys: str, tip: str = "", separated: bool = False
) -> Action:
    return Action(id_, title, "View", _view(act), keys, Scope.TIMELINE, opened, tip, separated)


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


FILE = (
    Action("open", "Open …", "File", lambda e: e.opening.ask_open(), ("Ctrl+O",), tip="One file, or several together"),
    Action(
        "open-folder",
        "Open a folder …",
        "File",
        lambda e: e.opening.ask_folder(),
        tip="An XLA dump, whose modules are listed; what lapstrake capture wrote; a bundle",
    ),
    Action("open-sample", "Open a sample", "File", lambda e: e.opening.open_sample()),
    Action("recover", "Go on with the last session", "File", lambda e: e.opening.recover()),
    Action(
        "add-module",
        "Add a module …",
        "File",
        lambda e: e.opening.ask_add(),
        ("Ctrl+Shift+A",),
        enabled=opened,
        tip="Beside what is open, with variants of its own: before and after a change, forward and backward",
        separated=True,
    ),
    Action(
        "name-module",
        "Name the module …",
        "File",
        lambda e: e.opening.ask_name(),
        enabled=_modules,
        tip="What the active variant's module is called",
    ),
    Action(
        "remove-module",
        "Remove the module",
        "File",
        lambda e: e.opening.remove(),
        enabled=_modules,
        tip="The active variant's module with all its variants",
    ),
    Action("reload", "Read again", "File", lambda e: e.documents.reload(), ("F5",), enabled=lambda s: bool(s.path)),
    Action(
        "import-costs",
        "Import costs …",
        "File",
        lambda e: e.imports.ask_costs(),
        ("Ctrl+I",),
        enabled=opened,
        tip="Times by instruction name that replace the model's: ScheduleProto text, PGLE, xplane.pb, or a table",
        separated=True,
    ),
    Action(
        "open-recording",
        "Show a profile or a compiler's schedule …",
        "File",
        lambda e: e.imports.ask_recording(),
        ("Ctrl+Shift+O",),
        enabled=opened,
        tip="A measured run (xplane.pb, Perfetto JSON) or ScheduleProto text as a variant beside the predicted ones",
    ),
    Action("save", "Save session", "File", lambda e: e.saving.save(), ("Ctrl+S",), enabled=opened, separated=True),
    Action("save-as", "Save session as …", "File", lambda e: e.saving.ask_save(), ("Ctrl+Shift+S",), enabled=opened),
    Action(
        "export",
        "Export …",
        "File",
        lambda e: e.show_export("hlo"),
        ("Ctrl+Shift+E",),
        enabled=opened,
        tip="The active variant as HLO, StableHLO, a trace, a profile, a schedule, costs or a report",
        separated=True,
    ),
    Action(
        "tune",
        "Tune and bundle …",
        "File",
        lambda e: e.show_export("bundle"),
        ("Ctrl+B",),
        enabled=opened,
        tip="Search for the best plan, verify it, and write what the job runs",
    ),
    Action(
        "export-picture",
        "Save timelines as a picture …",
        "File",
        lambda e: e.ask_picture(),
        ("Ctrl+E",),
        enabled=opened,
        tip="PNG at twice the size, or SVG",
    ),
    Action(
        "copy-command",
        "Copy as command line",
        "File",
        lambda e: e.copy_command(),
        ("Ctrl+Shift+C",),
        enabled=opened,
        tip="The command that reports the active variant",
    ),
    Action("quit", "Quit", "File", lambda e: e.quit(), ("Ctrl+Q",), separated=True),
)

EDIT = (
    Action("undo", "Undo", "Edit", lambda e: e.undo(), ("Ctrl+Z",)),
    Action("redo", "Redo", "Edit", lambda e: e.redo(), ("Ctrl+Shift+Z", "Ctrl+Y")),
    Action(
        "search",
        "Find …",
        "Edit",
        lambda e: e.window.timelines.search.open_bar(),
        ("Ctrl+F",),
        enabled=opened,
        tip="Name, opcode or regular expression over the whole timeline",
        separated=True,
    ),
    Action(
        "search-here",
        "Find in the timelines",
        "",
        lambda e: e.window.timelines.search.open_bar(),
        ("/",),
        Scope.TIMELINE,
        opened,
    ),
    Action("copy-selection", "Copy names", "Edit", lambda e: e.copy_names(), ("Ctrl+C",), enabled=_selected),
    Action("palette", "All commands …", "Edit", lambda e: e.show_palette(), ("Ctrl+Shift+P",), separated=True),
)

VIEW = (
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
    Action("theme", "Light or dark", "View", lambda e: e.toggle_theme(), ("Ctrl+Shift+L",), separated=True),
    Action("theme-system", "Colours of the system", "View", lambda e: e.set_theme("system")),
    Action("reset-layout", "Reset layout", "View", lambda e: e.window.reset_layout()),
)

GRAPH = (
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
    _graph("graph-close", "Close all groups", lambda g: g.close_all(), "Z"),
    _graph("graph-around", "What is around the selection", lambda g: g.show_around(), "G", separated=True),
    _graph("graph-paths", "Paths between the two selected", lambda g: g.show_paths(), "P"),
    _graph("graph-whole", "Whole module", lambda g: g.show_whole(), "Backspace"),
    _graph("graph-next", "Next pass", lambda g: g.step(1), "N", tip="Before and after it", separated=True),
    _graph("graph-previous", "Previous pass", lambda g: g.step(-1), "B"),
    _graph("graph-table", "Table of the shown nodes", lambda g: g.show_table(), "T", separated=True),
    Action(
        "export-graph",
        "Save the graph as a picture …",
        "Graph",
        lambda e: e.ask_graph_picture(),
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

PLAN = (
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

RUN = (
    Action(
        "verify",
        "Verify the numbers",
        "Run",
        lambda e: e.verify(),
        ("Ctrl+Shift+V",),
        enabled=opened,
        tip="Run the active variant and the module as loaded on CPU devices, and compare what they compute",
    ),
    Action(
        "show-runs",
        "Run on devices …",
        "Run",
        lambda e: e.show_runs(),
        ("Ctrl+Shift+R",),
        tip="Time, verify and profile variants on the CPU or on attached devices",
    ),
    Action(
        "compile",
        "Compile with the production compiler …",
        "Run",
        lambda e: e.show_compiler(),
        enabled=opened,
        tip="The TPU or GPU compiler's own schedule of the module and of the active plan, without a device",
    ),
    Action(
        "try-all",
        "Try all combinations",
        "Run",
        lambda e: e.try_all(),
        ("Ctrl+T",),
        enabled=opened,
        tip="Schedulers × budgets × unroll × ring, listed in the tab Compare",
    ),
    Action("rerun", "Run again", "Run", lambda e: e.rerun(), ("Ctrl+R",), enabled=opened),
    Action("cancel-jobs", "Cancel all jobs", "Run", lambda e: e.job_list.cancel_all(), ("Ctrl+.",)),
    Action("show-log", "Show the log", "Run", lambda e: e.window.show_pane("Log")),
)

HELP = (
    Action("keys", "Keys", "Help", lambda e: e.show_keys(), ("?",), Scope.TIMELINE, always),
    Action("keys-anywhere", "Keys", "", lambda e: e.show_keys(), ("F1",)),
    Action("guide", "First steps", "Help", lambda e: e.show_guide()),
    Action("about", "About Lapstrake", "Help", lambda e: e.show_about(), separated=True),
)

ACTIONS: tuple[Action, ...] = (*FILE, *EDIT, *VIEW, *GRAPH, *PLAN, *RUN, *HELP)
