"""Opening and closing groups of a pane's graph, within what can be shown at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.layout.picture import MOST
from views.graph.folds import with_descendants

if TYPE_CHECKING:
    from views.graph.pane import GraphPane


class Groups:
    """What is open is the pane's; a change begins a layout."""

    def __init__(self, pane: GraphPane) -> None:
        self._pane = pane

    def toggle(self, item: int, deep: bool = False) -> None:  # a signal's slot
        """Open or close a group; `deep` also what lies in it."""
        pane, outline = self._pane, self._pane.outline
        if outline is None or not outline.is_group(item) or item == 0:
            return
        before = pane.opened
        if item in before:
            inside = range(item, int(outline.end[item])) if deep else (item,)
            pane.opened = before - frozenset(inside)
            pane.lay_out(anchor=item)
            return
        whole = True
        opened = before | {item}
        if deep:
            opened, whole = with_descendants(outline, before, item, MOST)
        count = outline.count_shown(opened)
        if count > MOST:
            pane.tools.say(f"{count:,} nodes would be shown, {MOST:,} at most can be: close other groups first")
            return
        pane.opened = opened
        pane.lay_out(anchor=item)
        if not whole:
            pane.tools.say(f"Not all could be opened: {MOST:,} nodes are shown at most.")

    def open_around(self, item: int) -> bool:
        """Open the groups around an item. Returns whether that was needed, and a layout begun for it."""
        pane, outline = self._pane, self._pane.outline
        assert outline is not None
        around = frozenset(a for a in outline.ancestors(item) if a)
        if around <= pane.opened:
            return False
        wanted = pane.opened | around
        if outline.count_shown(wanted) > MOST:
            wanted = around
        if outline.count_shown(wanted) > MOST:
            return False
        pane.opened = wanted
        pane.lay_out(anchor=item)
        return True

    def close_all(self) -> None:
        self._pane.opened = frozenset()
        self._pane.lay_out(fit=True)
