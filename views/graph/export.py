"""The graph as a file: PNG of what is seen, SVG of the whole picture, DOT for Graphviz."""

from __future__ import annotations

from pathlib import Path, PurePath

from PySide6.QtCore import QPoint, QRect, QSize
from PySide6.QtGui import QImage, QPainter
from PySide6.QtSvg import QSvgGenerator

from engine.layout.dot import dot_text
from views.graph.view import GraphView

_SCALE = 2


def save_graph(view: GraphView, path: str) -> str:
    """Write what `view` shows. Returns what went wrong, empty when nothing did."""
    if view.shown is None:
        return "no graph is shown: open a module and the tab Graph first"
    writers = {".dot": _save_dot, ".gv": _save_dot, ".svg": _save_svg, ".png": _save_png}
    writer = writers.get(PurePath(path).suffix.lower())
    if writer is None:
        return f"{path}: a name that ends in .png, .svg or .dot was expected"
    return "" if writer(view, path) else f"{path} could not be written: choose a folder you may write to"


def _save_png(view: GraphView, path: str) -> bool:
    area = view.viewport()
    image = QImage(area.size() * _SCALE, QImage.Format.Format_RGB32)
    image.setDevicePixelRatio(_SCALE)
    area.render(image, QPoint())
    return image.save(path)


def _save_svg(view: GraphView, path: str) -> bool:
    assert view.shown is not None
    size = QSize(round(view.shown.picture.width[0]), round(view.shown.picture.height[0]))
    generator = QSvgGenerator()
    generator.setFileName(path)
    generator.setSize(size)
    generator.setViewBox(QRect(QPoint(), size))
    generator.setTitle("Lapstrake graph")
    painter = QPainter()
    if not painter.begin(generator):
        return False
    view.paint_all(painter)
    painter.end()
    return True


def _save_dot(view: GraphView, path: str) -> bool:
    assert view.shown is not None
    try:
        Path(path).write_text(dot_text(view.shown.outline, view.shown.picture), encoding="utf-8")
    except OSError:
        return False
    return True
