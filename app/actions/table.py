"""The table of actions: menus, shortcuts, the list of commands and the sheet of keys are all made from it."""

from __future__ import annotations

from app.actions.action import Action
from app.actions.editing import EDIT
from app.actions.files import FILE
from app.actions.graph import GRAPH
from app.actions.help import HELP
from app.actions.planning import PLAN
from app.actions.running import RUN
from app.actions.viewing import VIEW

MENUS = ("File", "Edit", "View", "Graph", "Plan", "Run", "Help")

ACTIONS: tuple[Action, ...] = (*FILE, *EDIT, *VIEW, *GRAPH, *PLAN, *RUN, *HELP)
