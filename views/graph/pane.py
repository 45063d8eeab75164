"""The Graph tab: what is shown of which modules, what is open, and one selection with all other panes."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import QEvent, QPointF, QSignalBlocker, Qt
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QLabel, QVBoxLayout, QWidget

from engine.errors import UsageError
from engine.layout.outline import Kind, Outline, Side
from engine.layout.picture import MOST, Picture, skeleton_of
from engine.session.session import Session
from views.graph.camera import Camera
from views.graph.comparison import Comparison, comparisons_of
from views.graph.folds import Key, first_opened, items_of, key_of
from views.graph.groups import Groups
from views.graph.items import READABLE, Shown
from views.graph.layouts import Layouts
from views.graph.marking import Marking
from views.graph.minimap import Minimap
from views.graph.moves import Moves
from views.graph.numbers import colouring_of, counts_text, figure_of
from views.graph.outlines import Outlines
from views.graph.parts import Parts
from views.graph.places import any_in, first_of, head_of, nearest
from views.graph.sayings import lines_of, node_text, why_nothing
from views.graph.sides import Sides
from views.graph.table import FIGURES, NodeTable
from views.graph.tools import Tools
from views.graph.view import GraphView
from views.ports import Gone, Host, follow, in_view
from views.stale import StaleNote
from views.theme import GRID

_BEGINNING = 2.5 * READABLE
"""Scale at which a picture is shown that does not fit: details in the nodes can be read."""


class GraphPane(QWidget):
    """Tools, one view or two, and the table beside them."""

    comfortable = 84 * GRID
    """Height in which a few layers can be seen together."""

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
        self._outlines = Outlines(host, self._outline_arrived)
        self._layouts = Layouts(host)
        self._anchor: int | None = None
        self._fitting = True
        self._kept_open: frozenset[Key] = frozenset()
        self._carried: tuple[Key, QPointF] | None = None
        self._gone = Gone(host.store.state)
        self.moves = Moves(self)
        self.groups = Groups(self)
        self.parts = Parts(self)
        self.marking = Marking(self, host.store)
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
        self.message.setMargin(2 * GRID)
        self.message.setWordWrap(True)
        self.message.setTextFormat(Qt.TextFormat.RichText)
        self.message.setAlignment(Qt.AlignmentFlag.AlignTop)
        self.message.setTextInteractionFlags(Qt.TextInteractionFlag.TextBrowserInteraction)
        self.message.linkActivated.connect(self._link)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(StaleNote(host))
        column.addWidget(self.tools)
        column.addWidget(self.message)
        column.addWidget(self.sides, 1)
        column.addStretch()  # takes the room where a sentence stands in place of the views
        self._connect()
        follow(self, host.store, self._session_changed)
        self._leave(why_nothing(self._host.store.state))

    def _connect(self) -> None:
        tools = self.tools
        tools.chosen.connect(self._choose)
        tools.coloured.connect(lambda _: self._recolour())
        tools.around.connect(self.parts.show_around)
        tools.paths.connect(self.parts.show_paths)
        tools.everything.connect(self.parts.show_whole)
        tools.listed.connect(self.show_table)
        for view in (self.before, self.after):
            view.picked.connect(self.marking.pick)
            view.toggled.connect(self.groups.toggle)
            view.hovered.connect(self._hover)
        self.table.selectionModel().currentRowChanged.connect(lambda row, _: self.marking.pick_row(row))
        self.table.doubleClicked.connect(lambda index: self.groups.toggle(self.table.nodes.thing_at(index.row())))

    # What is shown

    @property
    def view(self) -> GraphView:
        """The view that keys act on."""
        return self.before if self.before.hasFocus() else self.after

    def came_into_view(self) -> None:
        """Do what was put off while nobody looked."""
        self.refresh()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.refresh()

    def changeEvent(self, event: QEvent) -> None:
        if event.type() == QEvent.Type.PaletteChange:
            self._recolour()
        super().changeEvent(event)

    def _session_changed(self, session: Session, changed: frozenset[str]) -> None:
        if "modules" in changed and self._gone.went(session):
            self._outlines.clear()
            self.moves.forget()
            self._kept_open = frozenset()
        if not in_view(self):
            return
        if changed & {"entries", "active", "base", "modules"}:
            self.refresh()
        elif changed & {"selection", "matches"}:
            self.marking.follow()

    def refresh(self) -> None:
        """Show what the session has now, asking for what is not there yet."""
        choices = comparisons_of(self._host.store.state)
        wanted = self._same_kind(choices)
        self.tools.set_choices([c.title for c in choices], choices.index(wanted) if wanted is not None else -1)
        if wanted is None:
            self._leave(why_nothing(self._host.store.state))
        elif wanted != self.comparison or self.whole is None:
            self.comparison = wanted
            self._ask(wanted)
        else:
            self.marking.show()

    def _same_kind(self, choices: tuple[Comparison, ...]) -> Comparison | None:
        """The choice that is like the present one: the same step, or the same pair."""
        if not choices:
            return None
        now = self.comparison
        if now is None or now in choices:
            return now or choices[0]
        alike = [c for c in choices if (c.steps, c.before is None) == (now.steps, now.before is None)]
        return alike[0] if alike else choices[0]

    def _leave(self, text: str) -> None:
        """Show a sentence in place of the graph."""
        self.comparison = self.whole = self.outline = self.picture = None
        self.parts.leave()
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
            self._outlines.cancel()
        elif where == "again" and self.comparison is not None:
            self._outlines.forget(self.comparison)
            self._ask(self.comparison)
        else:
            self._host.perform(where)

    def _ask(self, wanted: Comparison) -> None:
        found = self._outlines.get(wanted)
        if isinstance(found, str):
            self._say_instead(f'{lines_of(found) or "Cancelled."} <a href="again">Try again</a>')
        elif found is not None:
            if found is not self.whole:
                self.take(found)
        elif self.whole is None:
            self._say_instead('Reading the module into a graph … <a href="cancel">Cancel</a>')
        else:  # the old picture stays until the new one is there
            self.tools.say(f"reading {wanted.title} …")

    def _outline_arrived(self, of: Comparison) -> None:
        if of == self.comparison:
            self._ask(of)

    def take(self, outline: Outline, *, fit: bool = False) -> None:
        """Show another outline: open what was open, or the first few groups; `fit` to see all of it."""
        self._carried = self._middle()
        self.whole = self.outline = outline
        kept = items_of(outline, self._kept_open)
        self.opened = kept if kept and outline.count_shown(kept) <= MOST else first_opened(outline)
        self._say_instead("")
        self.parts.leave()
        self._fitting = fit or self.picture is None or not kept
        self.lay_out()

    # Layout

    def lay_out(self, anchor: int | None = None, *, fit: bool = False) -> None:
        """Lay out what is open; `anchor` is the item that stays where it is on the screen, else `fit` shows all."""
        self._fitting = self._fitting or fit
        outline = self.outline
        if outline is None:
            return
        try:
            skeleton = skeleton_of(outline, self.opened)
        except UsageError as error:
            self.tools.say(str(error))
            return
        self._anchor = anchor
        if not self.parts:
            self._kept_open = frozenset(key_of(outline, item) for item in self.opened)

        def placed(picture: Picture) -> None:
            if outline is self.outline:
                self._place(picture)

        self._layouts.start(skeleton, placed, self._not_laid_out)
        if self._layouts.running:
            self.tools.say(f"laying out {len(skeleton.items):,} nodes …")

    @property
    def laying_out(self) -> bool:
        """Whether another picture is on its way."""
        return self._layouts.running

    def _not_laid_out(self, why: str) -> None:
        self.tools.say(why or "Layout cancelled: the picture is the one before.")

    def _place(self, picture: Picture) -> None:
        old, self.picture = self.picture, picture
        was, now = head_of(old, self._anchor), head_of(picture, self._anchor)
        carried, self._carried = self._carried, None
        if carried is not None:
            was, now = carried[1], head_of(picture, self._item_with(carried[0]))
        self._recolour()
        if was is not None and now is not None and not self._fitting:
            self.camera.look_at(self.camera.centre + now - was)
        if self._fitting or not any_in(picture, self.after.visible_area()):
            self._fitting = False
            self.fit_first()
        self._say_counts()
        self.marking.laid_out()

    def _middle(self) -> tuple[Key, QPointF] | None:
        """The node nearest to the middle of the view, to be found again in another picture."""
        outline, picture = self.outline, self.picture
        if outline is None or picture is None or picture.items[-1] >= len(outline):
            return None
        item = nearest(picture, self.camera.centre)
        head = head_of(picture, item)
        return (key_of(outline, item), head) if head is not None else None

    def _item_with(self, key: Key) -> int | None:
        if self.outline is None:
            return None
        if key[0] == Kind.INSTRUCTION:
            return self.outline.item_of(key[2])
        return min(items_of(self.outline, [key]), default=None)

    def fit_first(self) -> None:
        """All of it where it can be read then; else its top."""
        view, picture = self.after, self.picture
        if picture is None:
            return
        view.fit()
        if self.camera.scale < READABLE:
            area = view.viewport().size()
            scale = max(_BEGINNING, min(1.0, 0.96 * area.width() / float(picture.width[0])))
            first = first_of(picture)
            self.camera.look_at(QPointF(first.x(), first.y() + area.height() / scale / 2 - 8 * GRID), scale)

    def _say_counts(self) -> None:
        if self.picture is None or self.whole is None or self.comparison is None:
            return
        nodes = int((~self.picture.opened).sum())
        self.tools.say(self.parts.said or counts_text(self.whole, nodes, double=self.comparison.double))

    # Colours and table

    def _recolour(self) -> None:
        outline, picture, comparison = self.outline, self.picture, self.comparison
        if outline is None or picture is None or comparison is None or picture.items[-1] >= len(outline):
            return
        theme, shown = self._host.theme, picture.items[~picture.opened]
        colouring = colouring_of(theme, outline, comparison, self.tools.figure, shown)
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
        self.marking.show()

    def _fill_table(self) -> None:
        outline, comparison = self.outline, self.comparison
        if self.table.isHidden() or self.picture is None or outline is None or comparison is None:
            return
        values = {figure: figure_of(outline, comparison, figure) for figure in FIGURES}
        with QSignalBlocker(self.table.selectionModel()):
            self.table.nodes.set_nodes(outline, self.picture.items[~self.picture.opened], values)

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

    # Hover

    def _hover(self, item: int) -> None:
        if self.outline is None or self.comparison is None or item < 0:
            self._say_counts()
            return
        self.tools.say(node_text(self.outline, self.comparison, self.tools.figure, item))

    def look_again(self, opened: frozenset[Key], centre: QPointF, scale: float) -> None:
        """The whole module with these groups open, seen from there."""
        if self.whole is None:
            return
        self.outline = self.whole
        self.parts.leave()
        self.opened = items_of(self.whole, opened)
        self.lay_out()
        self.camera.look_at(centre, scale)
