"""The Graph tab: what is shown of which modules, what is open, and one selection with all other panes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from PySide6.QtCore import QEvent, QModelIndex, QPointF, QRectF, QSignalBlocker, Qt
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QLabel, QVBoxLayout, QWidget

from engine.errors import UsageError
from engine.ir.graph import Ints
from engine.layout.around import Part, neighbourhood, part_of, paths_between
from engine.layout.figures import Figure, Floats, values_of
from engine.layout.outline import Kind, Outline, Side
from engine.layout.picture import MOST, Picture, Skeleton, arrange, skeleton_of
from engine.quantities import bytes_text, time_text
from engine.session import edits
from engine.session.lookup import lookup
from engine.session.matching import shown_in
from engine.session.session import Session
from engine.session.variant import Variant
from views.graph.camera import Camera
from views.graph.colouring import Colouring, by_decision, by_kind, by_scale
from views.graph.comparison import Comparison, comparisons_of
from views.graph.folds import Key, first_opened, items_of, key_of, with_descendants
from views.graph.items import READABLE, Shown
from views.graph.minimap import Minimap
from views.graph.sides import Sides
from views.graph.table import FIGURES, NodeTable
from views.graph.tools import Tools
from views.graph.view import ZOOM, GraphView
from views.ports import Host, follow, in_view
from views.theme import GRID
from views.timeline.search import matcher

_AT_ONCE = (80, 160)
"""Nodes and edges up to which a layout is made without a job: it takes a few milliseconds."""
_KEPT = 6
_MOST_SELECTED = 2_000
"""Instructions that a click on a group selects."""


@dataclass(frozen=True)
class Bookmark:
    """A place to come back to."""

    keys: frozenset[Key]
    opened: frozenset[Key]
    centre: tuple[float, float]
    scale: float


class GraphPane(QWidget):
    """Tools, one view or two, and the table beside them."""

    def __init__(self, host: Host, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._host = host
        self.comparison: Comparison | None = None
        self.whole: Outline | None = None
        """Of the modules that are shown."""
        self.outline: Outline | None = None
        """What is laid out: `whole`, or a part of it."""
        self.opened: frozenset[int] = frozenset()
        self.picture: Picture | None = None
        self._part: Part | None = None
        self._known: dict[Comparison, Outline | str] = {}
        self._job = 0
        self._layout_job = 0
        self._layouts = 0
        self._anchor: int | None = None
        self._fitting = True
        self._kept_open: frozenset[Key] = frozenset()
        self._search = ""
        self._selecting = False
        self._reveal_later = False
        self._carried: tuple[Key, QPointF] | None = None
        self._colouring: Colouring | None = None
        self._bookmarks: dict[int, Bookmark] = {}
        self.camera = Camera(self)
        self.tools = Tools(host)
        self.before, self.after = GraphView(host, self.camera), GraphView(host, self.camera)
        self.before.setAccessibleName("graph before")
        self.after.setAccessibleName("graph")
        self.minimap = Minimap(self.after)
        self.table = NodeTable()
        self.table.hide()
        self.sides = Sides(self.before, self.after, self.table)
        self.message = QLabel()
        self.message.setMargin(4 * GRID)
        self.message.setWordWrap(True)
        self.message.setAlignment(Qt.AlignmentFlag.AlignTop)
        self.message.setTextInteractionFlags(Qt.TextInteractionFlag.TextBrowserInteraction)
        self.message.linkActivated.connect(self._link)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.tools)
        column.addWidget(self.message)
        column.addWidget(self.sides, 1)
        self._connect()
        follow(self, host.store, self._session_changed)
        self._leave(self._why_nothing())

    def _connect(self) -> None:
        tools = self.tools
        tools.chosen.connect(self._choose)
        tools.coloured.connect(lambda _: self._recolour())
        tools.around.connect(self.show_around)
        tools.paths.connect(self.show_paths)
        tools.everything.connect(self.show_whole)
        tools.listed.connect(self.show_table)
        for view in (self.before, self.after):
            view.picked.connect(self._pick)
            view.toggled.connect(self.toggle)
            view.hovered.connect(self._hover)
        self.table.selectionModel().currentRowChanged.connect(self._row_picked)
        self.table.doubleClicked.connect(lambda index: self.toggle(self.table.nodes.item_at(index.row())))

    # What is shown

    @property
    def view(self) -> GraphView:
        """The view that keys act on."""
        return self.before if self.before.hasFocus() else self.after

    def came_into_view(self) -> None:
        """Do what was put off while nobody looked."""
        self.refresh()

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802
        super().showEvent(event)
        self.refresh()

    def changeEvent(self, event: QEvent) -> None:  # noqa: N802
        if event.type() == QEvent.Type.PaletteChange:
            self._recolour()
        super().changeEvent(event)

    def _session_changed(self, session: Session, changed: frozenset[str]) -> None:
        if "path" in changed:
            self._known.clear()
            self._bookmarks.clear()
            self._kept_open = frozenset()
        if not in_view(self):
            return
        if changed & {"entries", "active", "base", "path"}:
            self.refresh()
        elif "selection" in changed:
            self._show_selection(reveal=not self._selecting)

    def refresh(self) -> None:
        """Show what the session has now, asking for what is not there yet."""
        choices = comparisons_of(self._host.store.state)
        wanted = self._same_kind(choices)
        self.tools.set_choices([c.title for c in choices], choices.index(wanted) if wanted is not None else -1)
        if wanted is None:
            self._leave(self._why_nothing())
        elif wanted == self.comparison and self._job:
            return  # on its way
        elif wanted != self.comparison or self.whole is None:
            self.comparison = wanted
            self._ask(wanted)
        else:
            self._show_selection(reveal=False)

    def _same_kind(self, choices: tuple[Comparison, ...]) -> Comparison | None:
        """The choice that is like the present one: the same step, or the same pair."""
        if not choices:
            return None
        now = self.comparison
        if now is None or now in choices:
            return now or choices[0]
        alike = [c for c in choices if (c.steps, c.before is None) == (now.steps, now.before is None)]
        return alike[0] if alike else choices[0]

    def _why_nothing(self) -> str:
        session = self._host.store.state
        entry = session.active_entry
        if not session.path or entry is None:
            return 'Open a module to see its graph: <a href="open">Open …</a> or <a href="open-sample">a sample</a>.'
        if entry.error:
            return f'{entry.key} has no graph: {entry.error} <a href="rerun">Run again</a>'
        return f"Waiting for {entry.key}: its graph is shown when its plan is there."

    def _leave(self, text: str) -> None:
        """Show a sentence in place of the graph."""
        self.comparison = self.whole = self.outline = self.picture = self._part = None
        for view in (self.before, self.after):
            view.set_shown(None)
        self._say_instead(text)

    def _say_instead(self, text: str) -> None:
        self.message.setText(text)
        self.message.setVisible(bool(text))
        self.sides.setVisible(not text)
        self.tools.set_ready(not text)

    def _link(self, where: str) -> None:
        if where == "cancel":
            self._host.cancel(self._job)
        elif where == "again" and self.comparison is not None:
            self._known.pop(self.comparison, None)
            self._ask(self.comparison)
        else:
            self._host.perform(where)

    def _ask(self, wanted: Comparison) -> None:
        if wanted not in self._known:
            if self._job:
                self._host.cancel(self._job)
            while len(self._known) >= _KEPT:
                del self._known[next(iter(self._known))]
            if self.whole is None:
                self._say_instead('Reading the module into a graph … <a href="cancel">Cancel</a>')
            else:  # the old picture stays until the new one is there
                self.tools.say(f"reading {wanted.title} …")
            job = self._host.outline(wanted, self._arrival(wanted))
            self._job = 0 if wanted in self._known else job
            return
        found = self._known[wanted]
        if isinstance(found, str):
            self._say_instead(f'{found or "Cancelled."} <a href="again">Try again</a>')
            return
        self._take(found)

    def _arrival(self, wanted: Comparison) -> Callable[[Outline | str], None]:
        def arrived(found: Outline | str) -> None:
            if found or wanted == self.comparison:  # not what was cancelled because another one was chosen
                self._known[wanted] = found
            if wanted == self.comparison:
                self._job = 0
                self._ask(wanted)

        return arrived

    def _take(self, outline: Outline) -> None:
        """Another outline: open what was open, or the first few groups."""
        self._carried = self._middle()
        self.whole = self.outline = outline
        self._part = None
        kept = items_of(outline, self._kept_open)
        self.opened = kept if kept and outline.count_shown(kept) <= MOST else first_opened(outline)
        self._say_instead("")
        self.tools.set_part("")
        self._fitting = self.picture is None or not kept
        self._lay_out()

    # Layout

    def _lay_out(self, anchor: int | None = None) -> None:
        """Lay out what is open; `anchor` is the item that stays where it is on the screen."""
        outline = self.outline
        if outline is None:
            return
        try:
            skeleton = skeleton_of(outline, self.opened)
        except UsageError as error:
            self.tools.say(str(error))
            return
        self._layouts += 1
        self._anchor = anchor
        self._kept_open = frozenset(key_of(outline, i) for i in self.opened) if self._part is None else self._kept_open
        if self._layout_job:
            self._host.cancel(self._layout_job)
            self._layout_job = 0
        if len(skeleton.items) <= _AT_ONCE[0] and len(skeleton.source) <= _AT_ONCE[1]:
            self._place(outline, arrange(skeleton))
        else:
            self._start_layout(outline, skeleton)

    def _start_layout(self, outline: Outline, skeleton: Skeleton) -> None:
        number = self._layouts
        self.tools.say(f"laying out {len(skeleton.items):,} nodes …")

        def arrived(found: Picture | str) -> None:
            if number != self._layouts or outline is not self.outline:
                return
            self._layout_job = 0
            if isinstance(found, str):
                self.tools.say(found or "Layout cancelled: the picture is the one before.")
            else:
                self._place(outline, found)

        before = self.picture
        job = self._host.arrange(skeleton, arrived)
        self._layout_job = job if self.picture is before else 0

    def _place(self, outline: Outline, picture: Picture) -> None:
        old, self.picture = self.picture, picture
        was, now = _head(old, self._anchor), _head(picture, self._anchor)
        carried, self._carried = self._carried, None
        if carried is not None:
            was, now = carried[1], _head(picture, self._item_with(carried[0]))
        self._recolour()
        if was is not None and now is not None and not self._fitting:
            self.camera.look_at(self.camera.centre + now - was)
        if self._fitting or not self._anything_seen(picture):
            self._fitting = False
            self.fit_first()
        later, self._reveal_later = self._reveal_later, False
        self._say_counts()
        self._show_selection(reveal=later)

    def _middle(self) -> tuple[Key, QPointF] | None:
        """The node nearest to the middle of the view, to be found again in another picture."""
        outline, picture = self.outline, self.picture
        if outline is None or picture is None or picture.items[-1] >= len(outline):
            return None
        x, y = picture.left + picture.width / 2, picture.top
        far = np.abs(x - self.camera.centre.x()) + np.abs(y - self.camera.centre.y())
        item = int(picture.items[np.argmin(np.where(picture.opened, np.inf, far))])
        head = _head(picture, item)
        return (key_of(outline, item), head) if head is not None else None

    def _item_with(self, key: Key) -> int | None:
        if self.outline is None:
            return None
        if key[0] == Kind.INSTRUCTION:
            return self.outline.item_of(key[2])
        return min(items_of(self.outline, [key]), default=None)

    def _anything_seen(self, picture: Picture) -> bool:
        area = self.after.visible_area()
        seen = (picture.left < area.right()) & (picture.left + picture.width > area.left()) & ~picture.opened
        seen &= (picture.top < area.bottom()) & (picture.top + picture.height > area.top())
        return bool(seen.any())

    def fit_first(self) -> None:
        """All of it where it can be read then; else its top."""
        view, picture = self.after, self.picture
        if picture is None:
            return
        view.fit()
        if self.camera.scale < READABLE:
            area = view.viewport().size()
            scale = max(2 * READABLE, min(1.0, 0.96 * area.width() / float(picture.width[0])))
            centre = QPointF(float(picture.width[0]) / 2, area.height() / scale / 2 - 2 * GRID)
            self.camera.look_at(centre, scale)

    def _say_counts(self) -> None:
        if self.picture is None or self.whole is None:
            return
        count = int((~self.picture.opened).sum())
        every = int((self.whole.instruction >= 0).sum())
        self.tools.say(f"{count:,} nodes for {every:,} instructions")
        if self._part is not None:
            self.tools.say(self._part.said)

    # Colours and table

    def _figure_values(self, figure: Figure) -> Floats | None:
        if self.comparison is None or self.outline is None:
            return None
        values = _values(self.outline, self.comparison.variant, figure)
        if self.comparison.before is None:
            return values
        other = _values(self.outline, self.comparison.before, figure)
        return np.where(np.isnan(values), other, values)

    def _recolour(self) -> None:
        outline, picture, comparison = self.outline, self.picture, self.comparison
        if outline is None or picture is None or comparison is None or picture.items[-1] >= len(outline):
            return
        theme, figure = self._host.theme, self.tools.figure
        values = self._figure_values(figure) if figure != Figure.KIND else None
        if values is None:
            colouring = by_kind(theme, outline.look)
        elif figure == Figure.DECISION:
            colouring = by_decision(theme, values)
        else:
            colouring = by_scale(theme, figure, values, picture.items[~picture.opened])
        self._colouring = colouring
        self.tools.legend.set_swatches(colouring.swatches)
        after = Shown(outline, picture, colouring, theme, Side.AFTER)
        self.after.set_shown(after)
        self.before.set_shown(replace(after, side=Side.BEFORE) if comparison.double else None)
        self.sides.set_titles(*comparison.sides, double=comparison.double)
        self.minimap.refresh()
        self._fill_table()

    def show_table(self, on: bool | None = None) -> None:  # a toggle's signal
        """Show or hide the table; None turns it round."""
        self.table.setVisible(self.table.isHidden() if on is None else on)
        self.tools.set_listed(not self.table.isHidden())
        self.sides.share()
        self._fill_table()
        self._show_selection(reveal=False)

    def _fill_table(self) -> None:
        if self.table.isHidden() or self.picture is None or self.outline is None:
            return
        found = {figure: self._figure_values(figure) for figure in FIGURES}
        values = {figure: column for figure, column in found.items() if column is not None}
        with QSignalBlocker(self.table.selectionModel()):
            self.table.nodes.set_nodes(self.outline, self.picture.items[~self.picture.opened], values)

    # Opening and closing

    def toggle(self, item: int, deep: bool = False) -> None:  # a signal's slot
        """Open or close a group; `deep` also what lies in it."""
        outline = self.outline
        if outline is None or not outline.is_group(item) or item == 0:
            return
        before = self.opened
        if item in before:
            inside = range(item, int(outline.end[item])) if deep else (item,)
            self.opened = before - frozenset(inside)
            self._lay_out(anchor=item)
            return
        whole = True
        self.opened = before | {item}
        if deep:
            self.opened, whole = with_descendants(outline, before, item, MOST)
        if outline.count_shown(self.opened) > MOST:
            count = outline.count_shown(self.opened)
            self.opened = before
            self.tools.say(f"{count:,} nodes would be shown, {MOST:,} at most can be: close other groups first")
            return
        self._lay_out(anchor=item)
        if not whole:
            self.tools.say(f"Not all could be opened: {MOST:,} nodes are shown at most.")

    def toggle_selected(self, *, deep: bool = False) -> None:
        """Open or close what is selected."""
        over = self.after.over
        chosen = np.concatenate([over.selected, over.standing])
        if self.picture is not None and len(chosen):
            self.toggle(int(self.picture.items[chosen[0]]), deep)
        else:
            self.tools.say("Select a group first: click it, or walk to it with ] and [.")

    def close_all(self) -> None:
        self.opened = frozenset()
        self._fitting = True
        self._lay_out()

    # Parts

    def _selected_items(self) -> tuple[int, ...]:
        return self.whole.items_of(self._selected_ids()) if self.whole is not None else ()

    def show_around(self) -> None:
        """Only what is a few hops from the selection."""
        items = self._selected_items()
        if self.whole is None or not items:
            self.tools.say("Select a node first: its operands and users are shown then.")
            return
        self._show_part(neighbourhood(self.whole, items, self.tools.hops))

    def show_paths(self) -> None:
        """Only what lies on paths between two selected nodes."""
        items = self._selected_items()
        if self.whole is None or len(items) != 2:
            self.tools.say("Select two nodes first: click one, Ctrl+click the other.")
            return
        try:
            self._show_part(paths_between(self.whole, *items))
        except UsageError as error:
            self.tools.say(str(error))

    def _show_part(self, part: Part) -> None:
        assert self.whole is not None
        self._part = part
        self.outline = part_of(self.whole, part.items)
        self.opened = frozenset()
        self.tools.set_part(part.said)
        self._fitting = True
        self._lay_out()

    def show_whole(self) -> None:
        """Leave a part."""
        if self._part is not None and self.whole is not None:
            self._take(self.whole)
            self._fitting = True
            self._show_selection(reveal=True)

    # Passes

    def _choose(self, number: int) -> None:
        choices = comparisons_of(self._host.store.state)
        if 0 <= number < len(choices):
            self.comparison = choices[number]
            self.refresh_chosen()

    def refresh_chosen(self) -> None:
        """Show the comparison that was chosen."""
        if self.comparison is not None:
            self._ask(self.comparison)

    def step(self, by: int) -> None:
        """The next or an earlier comparison: pass by pass."""
        count = self.tools.choices.count()
        if count:
            self.tools.choices.setCurrentIndex((self.tools.choices.currentIndex() + by) % count)

    # Selection

    def _selected_ids(self) -> frozenset[int]:
        """Ids that stand for the selection in the shown modules."""
        session = self._host.store.state
        if not session.selection or self.whole is None:
            return frozenset()
        ids = set(session.selection.instructions)
        for key in {session.active, session.base}:
            ids |= shown_in(session, key)
        chosen = set(session.selection.instructions)
        if self.whole.items_of(chosen):
            return frozenset(ids)
        ids |= {made for made, origins in self.whole.origins.items() if chosen.intersection(origins)}
        return frozenset(ids)

    def _show_selection(self, *, reveal: bool) -> None:
        outline, picture = self.outline, self.picture
        if outline is None or picture is None or picture.items[-1] >= len(outline):
            return
        items = outline.items_of(self._selected_ids())
        if reveal and items and self._open_to(items[0]):
            return  # the layout shows the selection when it is there
        selected = np.array([i for i in items if picture.position(i) is not None], np.int64)
        stands = np.unique(outline.standing_for(picture.items, np.array(items, np.int64))) if items else selected
        stands = np.setdiff1d(stands, selected)
        stands = stands[~picture.opened[np.searchsorted(picture.items, stands)]]
        found = self._found(outline, picture)
        where = np.searchsorted(picture.items, selected), np.searchsorted(picture.items, stands)
        for view in (self.before, self.after):
            if view.shown is not None:
                seen = view.shown.visible
                chosen, holding, hits = (positions[seen[positions]] for positions in (*where, found))
                view.set_over(replace(view.over, selected=chosen, standing=holding, found=hits))
        shown = np.concatenate(where)
        if reveal and len(shown):
            self.after.reveal(int(shown[0]))
        self._mark_row(picture, shown)
        self.after.setAccessibleDescription(self._in_words(outline, picture, shown))

    def _open_to(self, item: int) -> bool:
        """Open the groups around an item. Returns whether a layout was begun for it."""
        outline = self.outline
        assert outline is not None
        around = frozenset(a for a in outline.ancestors(item) if a)
        if around <= self.opened:
            return False
        wanted = self.opened | around
        if outline.count_shown(wanted) > MOST:
            wanted = around
        if outline.count_shown(wanted) > MOST:
            return False
        self.opened = wanted
        self._lay_out(anchor=item)
        picture = self.picture
        if picture is not None and not self._layout_job:
            self._show_selection(reveal=True)
        else:
            self._reveal_later = True
        return True

    def _in_words(self, outline: Outline, picture: Picture, shown: Ints) -> str:
        nodes = int((~picture.opened).sum())
        said = f"{nodes} nodes."
        if len(shown):
            names = ", ".join(outline.names[int(picture.items[p])] for p in shown[:5])
            said += f" Selected: {names}."
        return said

    def _mark_row(self, picture: Picture, shown: Ints) -> None:
        if self.table.isHidden():
            return
        with QSignalBlocker(self.table.selectionModel()):
            row = self.table.nodes.row_of(int(picture.items[shown[0]])) if len(shown) else -1
            if row >= 0:
                self.table.selectRow(row)
            else:
                self.table.clearSelection()
        self.table.viewport().update()

    def _pick(self, item: int, add: bool) -> None:  # a signal's slot
        outline, session = self.outline, self._host.store.state
        if outline is None:
            return
        if item < 0:
            self._select(session.active, (), add=False)
            return
        instruction = int(outline.instruction[item])
        if instruction >= 0:
            ids: tuple[int, ...] = (instruction,)
        else:
            inside = outline.instruction[item : outline.end[item]]
            ids = tuple(inside[inside >= 0][:_MOST_SELECTED].tolist())
        self._select(self._home(ids[-1]), ids, add=add)

    def _home(self, instruction: int) -> str:
        """Key of the entry whose module has an instruction."""
        session = self._host.store.state
        for entry in (session.active_entry, session.base_entry, *session.entries):
            if entry is not None and entry.variant is not None and instruction in lookup(entry.variant):
                return entry.key
        return session.active

    def _select(self, key: str, ids: tuple[int, ...], *, add: bool) -> None:
        self._selecting = True
        self._host.store.become("Select", edits.selected(self._host.store.state, key, ids, add=add))
        self._selecting = False

    def _row_picked(self, current: QModelIndex, previous: QModelIndex) -> None:
        if current.isValid():
            self._pick(self.table.nodes.item_at(current.row()), add=False)
            self._reveal_selected()

    def _reveal_selected(self) -> None:
        over = self.after.over
        chosen = np.concatenate([over.selected, over.standing])
        if len(chosen):
            self.after.reveal(int(chosen[0]))

    def zoom(self, notches: int) -> None:
        """About the centre."""
        self.camera.zoom(ZOOM**notches, self.camera.centre)

    def pan(self, right: int, down: int) -> None:
        """By a fifth of the view."""
        size = self.after.viewport().size()
        self.camera.pan(right * size.width() / 5, down * size.height() / 5)

    def focus_selection(self) -> None:
        """Open to the selection and fit it with what is around it."""
        self._show_selection(reveal=True)
        over = self.after.over
        chosen = np.concatenate([over.selected, over.standing])
        if len(chosen):
            self.after.show_box(int(chosen[0]), margin=120.0)
        else:
            self.tools.say("Nothing is selected here.")

    def follow_edges(self, *, forward: bool) -> None:
        """Select the first user (or operand) of what is selected."""
        outline, items = self.outline, self._selected_items()
        whole = self.whole
        if outline is None or whole is None or not items:
            self.tools.say("Select a node first.")
            return
        item = items[-1]
        wires = whole.user_wires(item, item + 1) if forward else whole.operand_wires(item, item + 1)
        near = whole.target[wires] if forward else whole.source[wires]
        if len(near):
            instruction = int(whole.instruction[int(near[0])])
            session = self._host.store.state
            self._host.store.become("Select", edits.selected(session, self._home(instruction), (instruction,)))
        else:
            self.tools.say("It has no users." if forward else "It has no operands.")

    # Search

    def search_for(self, text: str) -> None:
        """Outline what matches a search, in closed groups too."""
        self._search = text.strip()
        if in_view(self):
            self._show_selection(reveal=False)

    def _found(self, outline: Outline, picture: Picture) -> Ints:
        if not self._search:
            return np.empty(0, np.int64)
        try:
            hits = _hits(outline, self._search)
        except UsageError:
            return np.empty(0, np.int64)
        self.tools.say(f"{len(hits):,} found in the graph")
        stands = np.unique(outline.standing_for(picture.items, hits))
        positions = np.searchsorted(picture.items, stands)
        return positions[~picture.opened[positions]]

    # Hover

    def _hover(self, item: int) -> None:
        outline = self.outline
        if outline is None or item < 0:
            self._say_counts()
            return
        words = [outline.names[item], outline.details[item]]
        if self.tools.figure not in (Figure.KIND, Figure.DECISION):
            values = self._figure_values(self.tools.figure)
            if values is not None and not np.isnan(values[item]):
                sizes = self.tools.figure in (Figure.BYTES, Figure.MEMORY)
                text = bytes_text if sizes else time_text
                words.append(f"{self.tools.figure} {text(round(float(values[item])))}")
        origins = outline.origins.get(int(outline.instruction[item]), ())
        made = [outline.names[i] for i in outline.items_of(origins)]
        if made and self.comparison is not None and self.comparison.double:
            words.append("made from " + ", ".join(made[:4]))
        self.tools.say("  ·  ".join(words))

    # Bookmarks

    def set_bookmark(self, number: int) -> None:
        """Keep what is open and where it is looked at."""
        if self.outline is None:
            return
        opened = frozenset(key_of(self.outline, item) for item in self.opened)
        centre = self.camera.centre
        keys = frozenset((0, "", i) for i in self._host.store.state.selection.instructions)
        self._bookmarks[number] = Bookmark(keys, opened, (centre.x(), centre.y()), self.camera.scale)
        self.tools.say(f"bookmark {number} set: {number} comes back here")

    def go_to_bookmark(self, number: int) -> None:
        mark = self._bookmarks.get(number)
        if mark is None:
            self.tools.say(f"no bookmark {number}: Ctrl+{number} sets it")
            return
        if self.whole is None:
            return
        self.outline, self._part = self.whole, None
        self.tools.set_part("")
        self.opened = items_of(self.whole, mark.opened)
        self._lay_out()
        self.camera.look_at(QPointF(*mark.centre), mark.scale)

    def visible_area(self) -> QRectF:
        return self.after.visible_area()


def _head(picture: Picture | None, item: int | None) -> QPointF | None:
    """The middle of a node's upper edge, None where it is not shown."""
    position = picture.position(item) if picture is not None and item is not None else None
    if picture is None or position is None:
        return None
    return QPointF(float(picture.left[position] + picture.width[position] / 2), float(picture.top[position]))


@lru_cache(maxsize=32)
def _values(outline: Outline, variant: Variant, figure: Figure) -> Floats:
    return values_of(outline, variant, figure)


@lru_cache(maxsize=8)
def _hits(outline: Outline, text: str) -> Ints:
    matches = matcher(text)
    leaves = np.flatnonzero(outline.instruction >= 0).tolist()
    found = [i for i in leaves if matches(outline.names[i]) or matches(outline.details[i]) or matches(outline.paths[i])]
    return np.array(found, np.int64)
