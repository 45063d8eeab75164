"""Pictures as files: drawn in the GUI's thread, which is soon done; turned into bytes in any, which is not.

A PNG of a window takes 2 ms to draw and 50 ms to compress.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePath

from PySide6.QtCore import QBuffer, QIODevice, QPoint, QRect
from PySide6.QtGui import QImage, QPainter
from PySide6.QtSvg import QSvgGenerator
from PySide6.QtWidgets import QWidget

from engine.errors import UsageError
from views.timeline.view import TimelineView

Encode = Callable[[], bytes]
"""Makes the content of a file, in whatever thread it is called; raises UsageError where that is impossible."""

_SCALE = 2
_QUALITY = 80
"""Qt's word for how hard PNG tries to be small: 4 % more bytes than by default, in two thirds of the time."""


def timelines_picture(view: TimelineView, path: str) -> Encode:
    """What `view` shows, for a file called `path`: SVG, or pixels at twice the size."""
    if PurePath(path).suffix.lower() == ".svg":
        area = view.viewport().rect()
        content = vector_content(area, "Lapstrake timelines", view.paint_all)
        return lambda: content
    return pixels_of(view.viewport(), path)


def pixels_of(area: QWidget, path: str) -> Encode:
    """A widget at twice its size, in the format that the end of `path` names."""
    image = QImage(area.size() * _SCALE, QImage.Format.Format_RGB32)
    image.setDevicePixelRatio(_SCALE)
    area.render(image, QPoint())
    return lambda: _pixel_content(image, path)


def _pixel_content(image: QImage, path: str) -> bytes:
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    ending = PurePath(path).suffix.removeprefix(".").upper()
    if not ending or not image.save(buffer, ending, _QUALITY):  # type: ignore[call-overload]  # takes text, not bytes
        raise UsageError(f"{path}: a name that ends in .png or .svg was expected")
    return bytes(buffer.data().data())


def vector_content(area: QRect, title: str, draw: Callable[[QPainter], None]) -> bytes:
    """SVG of what `draw` draws into `area`."""
    buffer = QBuffer()
    generator = QSvgGenerator()
    generator.setOutputDevice(buffer)
    generator.setSize(area.size())
    generator.setViewBox(area)
    generator.setTitle(title)
    painter = QPainter(generator)
    draw(painter)
    painter.end()
    return bytes(buffer.data().data())
