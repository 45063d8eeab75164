"""One selection with all other panes: shown in both views and the table, and made by clicks; what a search finds."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from PySide6.QtCore import QModelIndex, QSignalBlocker

from engine.ir.graph import Ints
from engine.layout.outline import Outline
from engine.layout.picture import Picture
from engine.session import edits
from engine.session.session import Session
from engine.session.store import Store
from views.graph.selection import found_in, homed, ids_in, picked_ids, positions_of, selected_ids
from views.ports import in_view

if TYPE_CHECKING:
    from views.graph.pane import GraphPane


class Marking:
    """What is selected and found in a pane's graph."""

    def __init__(self, pane: GraphPane, store: Store[Session]) -> None:
        self._pane = pane
        self._store = store
        self._search = ""
        self._selecting = False
        self._reveal_later = False

    def items(self) -> tuple[int, ...]:
        """Items of the whole outline that are selected."""
        whole = self._pane.whole
        return whole.items_of(picked_ids(self._store.state, whole)) if whole is not None else ()

    def chosen(self) -> Ints:
        """Positions of what is selected, or stands for it."""
        over = self._pane.after.over
        return np.concatenate([over.selected, over.standing])

    def follow(self) -> None:
        """Show another selection, opening the way to it unless it was made in the graph itself."""
        self.show(reveal=not self._selecting)

    def show(self, *, reveal: bool = False) -> None:
        """Mark what is selected and found; with `reveal` open the way to it, and look at it."""
        pane = self._pane
        outline, picture = pane.outline, pane.picture
        if outline is None or picture is None or picture.items[-1] >= len(outline):
            return
        items = outline.items_of(selected_ids(self._store.state, pane.whole or outline))
        if reveal and items and self._open_to(items[0]):
            return  # the layout shows the selection when it is there
        where = positions_of(outline, picture, items)
        count, found = found_in(outline, picture, self._search)
        if self._search:
            pane.tools.say(f"{count:,} found in the graph")
        for view in (pane.before, pane.after):
            if view.shown is not None:
                seen = view.shown.visible
                chosen, holding, hits = (positions[seen[positions]] for positions in (*where, found))
                view.set_over(replace(view.over, selected=chosen, standing=holding, found=hits))
        shown = np.concatenate(where)
        if reveal and len(shown):
            pane.after.reveal(int(shown[0]))
        self._mark_row(picture, shown)
        pane.after.setAccessibleDescription(_in_words(outline, picture, shown))

    def laid_out(self) -> None:
        """Mark another picture."""
        later, self._reveal_later = self._reveal_later, False
        self.show(reveal=later)

    def reveal_when_laid_out(self) -> None:
        """Look at the selection in the picture that comes."""
        self._reveal_later = True

    def search_for(self, text: str) -> None:
        """Outline what matches a search, in closed groups too."""
        ended = self._search and not text.strip()
        self._search = text.strip()
        if ended:
            self._pane.tools.say("")
        if in_view(self._pane):
            self.show()

    def pick(self, item: int, add: bool) -> None:  # a signal's slot
        """Select an item, or what a group holds; -1 is nothing."""
        outline = self._pane.outline
        if outline is not None:
            self._selecting = True
            self.select(ids_in(outline, item) if item >= 0 else (), add=add)
            self._selecting = False

    def pick_row(self, row: QModelIndex) -> None:
        """Select what the table shows in a row, and look at it."""
        if not row.isValid():
            return
        self.pick(self._pane.table.nodes.thing_at(row.row()), add=False)
        chosen = self.chosen()
        if len(chosen):
            self._pane.after.reveal(int(chosen[0]))

    def select(self, ids: tuple[int, ...], *, add: bool = False) -> None:
        """Select instructions in all panes."""
        session = self._store.state
        key, there = homed(session, self._pane.whole, ids)
        self._store.become("Select", edits.selected(session, key, there, add=add))

    def _open_to(self, item: int) -> bool:
        """Open the groups around an item. Returns whether a layout was begun for it."""
        if not self._pane.groups.open_around(item):
            return False
        if self._pane.laying_out:
            self._reveal_later = True
        else:
            self.show(reveal=True)
        return True

    def _mark_row(self, picture: Picture, shown: Ints) -> None:
        table = self._pane.table
        if table.isHidden():
            return
        with QSignalBlocker(table.selectionModel()):
            row = table.nodes.row_of(int(picture.items[shown[0]])) if len(shown) else -1
            if row >= 0:
                table.selectRow(row)
            else:
                table.clearSelection()
        table.viewport().update()


def _in_words(outline: Outline, picture: Picture, shown: Ints) -> str:
    nodes = int((~picture.opened).sum())
    said = f"{nodes} nodes."
    if len(shown):
        names = ", ".join(outline.names[int(picture.items[p])] for p in shown[:5])
        said += f" Selected: {names}."
    return said
