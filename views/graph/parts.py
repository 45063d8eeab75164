"""Parts of a module: what is around the selection, and what lies on paths between two nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import UsageError
from engine.layout.around import Part, neighbourhood, part_of, paths_between

if TYPE_CHECKING:
    from views.graph.pane import GraphPane


class Parts:
    """Which part a pane shows, if it does not show the whole module."""

    def __init__(self, pane: GraphPane) -> None:
        self._pane = pane
        self._part: Part | None = None

    def __bool__(self) -> bool:
        """Whether a part is shown."""
        return self._part is not None

    @property
    def said(self) -> str:
        """What the part is; empty for the whole module."""
        return self._part.said if self._part is not None else ""

    def leave(self) -> None:
        """Forget the part: something else is shown."""
        self._part = None
        self._pane.tools.set_part("")

    def show_around(self) -> None:
        """Only what is a few hops from the selection."""
        pane, items = self._pane, self._pane.marking.items()
        if pane.whole is None or not items:
            pane.tools.say("Select a node first: its operands and users are shown then.")
            return
        self._show(neighbourhood(pane.whole, items, pane.tools.hops))

    def show_paths(self) -> None:
        """Only what lies on paths between two selected nodes."""
        pane, items = self._pane, self._pane.marking.items()
        if pane.whole is None or len(items) != 2:
            pane.tools.say("Select two nodes first: click one, Ctrl+click the other.")
            return
        try:
            self._show(paths_between(pane.whole, *items))
        except UsageError as error:
            pane.tools.say(str(error))

    def _show(self, part: Part) -> None:
        pane = self._pane
        assert pane.whole is not None
        self._part = part
        pane.outline = part_of(pane.whole, part.items)
        pane.opened = frozenset()
        pane.tools.set_part(part.said)
        pane.marking.reveal_when_laid_out()
        pane.lay_out(fit=True)

    def show_whole(self) -> None:
        """Leave a part."""
        pane = self._pane
        if self and pane.whole is not None:
            pane.take(pane.whole, fit=True)
            pane.marking.show(reveal=True)
