"""The graph as a file: PNG of what is seen, SVG of the whole picture, DOT for Graphviz."""

from __future__ import annotations

from pathlib import PurePath

from PySide6.QtCore import QPoint, QRect, QSize

from engine.errors import UsageError
from engine.layout.dot import dot_text
from views.graph.view import GraphView
from views.pictures import Encode, pixels_of, vector_content


def graph_picture(view: GraphView, path: str) -> Encode:
    """What `view` shows, for a file called `path`. Raises UsageError for another ending, or where nothing is shown."""
    shown = view.shown
    if shown is None:
        raise UsageError("no graph is shown: open a module and the tab Graph first")
    match PurePath(path).suffix.lower():
        case ".dot" | ".gv":
            return lambda: dot_text(shown.outline, shown.picture).encode()
        case ".svg":
            size = QSize(round(shown.picture.width[0]), round(shown.picture.height[0]))
            content = vector_content(QRect(QPoint(), size), "Lapstrake graph", view.paint_all)
            return lambda: content
        case ".png":
            return pixels_of(view.viewport(), path)
    raise UsageError(f"{path}: a name that ends in .png, .svg or .dot was expected")
