"""Turns the table of actions into Qt's: menus, shortcuts, and what is enabled when."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QMenu

from app.actions.action import Action, Scope
from app.actions.table import ACTIONS, MENUS
from engine.session.folders import file_names
from engine.session.session import Session
from views.menu_text import verbatim
from views.ports import follow

if TYPE_CHECKING:
    from app.explorer import Explorer


_OF_SLICE = ("copy-selection", "measure", "to-operand", "to-user", "note")
_OF_HEADER = ("base", "fold", "rename", "duplicate", "move-up", "move-down", "remove")
"""What a right click in the timelines offers for a slice, and for a variant's header."""


def install(explorer: Explorer) -> Mapping[str, QAction]:
    """Make every action, put it into its menu and onto the widget where its keys work."""
    window = explorer.window
    menus = {title: window.menus.addMenu(title) for title in MENUS}
    owners = {
        Scope.WINDOW: window,
        Scope.TIMELINE: window.timelines.view,
        Scope.GRAPH: explorer.graph,
        Scope.TEXT: explorer.text,
    }
    made: dict[str, QAction] = {}
    for action in ACTIONS:
        item = _made(explorer, action)
        made[action.id] = item
        owner = owners[action.scope]
        owner.addAction(item)
        if action.menu:
            if action.separated:
                menus[action.menu].addSeparator()
            menus[action.menu].addAction(item)
    lanes = window.timelines.view.lanes
    lanes.of_slice, lanes.of_header = [made[id_] for id_ in _OF_SLICE], [made[id_] for id_ in _OF_HEADER]
    _add_recent(explorer, menus["File"], made["reload"])
    _add_panes(explorer, menus["View"])
    follow(window, explorer.store, lambda session, changed: _enable(made, session))
    _enable(made, explorer.store.state)
    return made


def _made(explorer: Explorer, action: Action) -> QAction:
    item = QAction(action.title, explorer.window)
    item.setObjectName(action.id)
    item.setShortcuts([QKeySequence(key) for key in action.keys])
    inside = action.scope != Scope.WINDOW
    item.setShortcutContext(
        Qt.ShortcutContext.WidgetWithChildrenShortcut if inside else Qt.ShortcutContext.WindowShortcut
    )
    if action.tip:
        item.setToolTip(action.tip)
        item.setStatusTip(action.tip)
    item.triggered.connect(lambda: action.run(explorer))
    return item


def _enable(made: Mapping[str, QAction], session: Session) -> None:
    for action in ACTIONS:
        made[action.id].setEnabled(action.enabled(session))


def retitle_history(made: Mapping[str, QAction], undo: str | None, redo: str | None) -> None:
    """Say what undo and redo would do."""
    for id_, label in (("undo", undo), ("redo", redo)):
        word = id_.capitalize()
        made[id_].setText(verbatim(f"{word} {label}") if label else word)
        made[id_].setEnabled(label is not None)


def _add_recent(explorer: Explorer, menu: QMenu, before: QAction) -> None:
    recent = QMenu("Open recent", menu)
    recent.setToolTipsVisible(True)  # Qt's signature
    menu.insertMenu(before, recent)

    def opener(path: str) -> Callable[[], None]:
        return lambda: explorer.open(path)

    def fill() -> None:
        recent.clear()
        paths = explorer.recent()
        for path, name in zip(paths, file_names(paths), strict=True):
            entry = recent.addAction(verbatim(name), opener(path))
            entry.setToolTip(path)
            entry.setStatusTip(path)
        if not paths:
            recent.addAction("nothing was opened yet").setEnabled(False)  # Qt's signature

    recent.aboutToShow.connect(fill)


def _add_panes(explorer: Explorer, menu: QMenu) -> None:
    panes = menu.addMenu("Panes")
    for dock in explorer.window.docks.values():
        panes.addAction(dock.toggleViewAction())
