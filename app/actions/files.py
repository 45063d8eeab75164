"""What the menu File has: opening, modules, costs and recordings, saving, handing on."""

from __future__ import annotations

from app.actions.action import Action, opened
from engine.session.session import Session


def _modules(session: Session) -> bool:
    return len(session.modules) > 1


FILE: tuple[Action, ...] = (
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
        lambda e: e.picturing.ask_timelines(),
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
