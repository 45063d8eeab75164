"""What keys do in the graph: move about, follow edges, open the selection, come back to places."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QPointF

from views.graph.folds import key_of
from views.graph.places import Bookmark
from views.graph.view import ZOOM

if TYPE_CHECKING:
    from views.graph.pane import GraphPane

_MARGIN = 120.0
"""Around what is focused, in pixels at scale 1."""


class Moves:
    """What the actions of the graph do to a pane."""

    def __init__(self, pane: GraphPane) -> None:
        self._pane = pane
        self._bookmarks: dict[int, Bookmark] = {}

    def zoom(self, notches: int) -> None:
        """About the centre."""
        camera = self._pane.camera
        camera.zoom(ZOOM**notches, camera.centre)

    def pan(self, right: int, down: int) -> None:
        """By fifths of the view."""
        size = self._pane.after.viewport().size()
        self._pane.camera.pan(right * size.width() / 5, down * size.height() / 5)

    def fit(self) -> None:
        self._pane.view.fit()

    def focus_selection(self) -> None:
        """Open to the selection and fit it with what is around it."""
        pane = self._pane
        pane.marking.show(reveal=True)
        chosen = pane.marking.chosen()
        if len(chosen):
            pane.after.show_box(int(chosen[0]), margin=_MARGIN)
        else:
            pane.tools.say("Nothing is selected here.")

    def follow_edges(self, *, forward: bool) -> None:
        """Select the first user (or operand) of what is selected."""
        pane, whole = self._pane, self._pane.whole
        items = pane.marking.items()
        if whole is None or not items:
            pane.tools.say("Select a node first.")
            return
        item = items[-1]
        wires = whole.user_wires(item, item + 1) if forward else whole.operand_wires(item, item + 1)
        near = whole.target[wires] if forward else whole.source[wires]
        if len(near):
            pane.marking.select((int(whole.instruction[int(near[0])]),))
        else:
            pane.tools.say("It has no users." if forward else "It has no operands.")

    def toggle_selected(self, *, deep: bool = False) -> None:
        """Open or close what is selected."""
        pane = self._pane
        chosen = pane.marking.chosen()
        if pane.picture is not None and len(chosen):
            pane.groups.toggle(int(pane.picture.items[chosen[0]]), deep)
        else:
            pane.tools.say("Select a group first: click it, or walk to it with ] and [.")

    def set_bookmark(self, number: int) -> None:
        """Keep what is open and where it is looked at."""
        pane = self._pane
        if pane.outline is None:
            return
        opened = frozenset(key_of(pane.outline, item) for item in pane.opened)
        centre = pane.camera.centre
        self._bookmarks[number] = Bookmark(opened, (centre.x(), centre.y()), pane.camera.scale)
        pane.tools.say(f"bookmark {number} set: {number} comes back here")

    def go_to_bookmark(self, number: int) -> None:
        mark = self._bookmarks.get(number)
        if mark is None:
            self._pane.tools.say(f"no bookmark {number}: Ctrl+{number} sets it")
        else:
            self._pane.look_again(mark.opened, QPointF(*mark.centre), mark.scale)

    def forget(self) -> None:
        """Another file: its bookmarks are of no use."""
        self._bookmarks.clear()
