"""What the graph says in words: why there is none, and what the node under the mouse is."""

from __future__ import annotations

from html import escape

from engine.layout.figures import Figure
from engine.layout.outline import Outline
from engine.session.session import Session
from views.graph.comparison import Comparison
from views.graph.numbers import figure_text
from views.hint import open_first


def why_nothing(session: Session) -> str:
    """As rich text, with the next step as a link."""
    entry = session.active_entry
    if not session.path or entry is None:
        return open_first("to see its graph")
    if entry.error:
        return f'{entry.key} has no graph: {lines_of(entry.error)} <a href="rerun">Run again</a>'
    return f"Waiting for {entry.key}: its graph is shown when its plan is there."


def node_text(outline: Outline, comparison: Comparison, figure: Figure, item: int) -> str:
    """A node in one line: its name, what it is, its figure, and what a pass made it from."""
    words = [outline.names[item], outline.details[item], figure_text(outline, comparison, figure, item)]
    origins = outline.origins.get(int(outline.instruction[item]), ())
    made = [outline.names[i] for i in outline.items_of(origins)]
    if made and comparison.double:
        words.append("made from " + ", ".join(made[:4]))
    return "  ·  ".join(filter(None, words))


def lines_of(text: str) -> str:
    """Plain text as rich text, with its line ends."""
    return escape(text).replace("\n", "<br>")
