"""Icons of one set (Lucide, ISC licence, see LICENSE beside the files), tinted with a role's colour."""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files

from PySide6.QtCore import QByteArray, QRectF, QSize, Qt
from PySide6.QtGui import QIcon, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer

SIZES = (16, 32, 48)


@lru_cache(maxsize=256)
def icon(name: str, colour: str) -> QIcon:
    """The icon called `name` in `colour`; raises FileNotFoundError for a name that is not shipped."""
    made = QIcon()
    for size in SIZES:
        made.addPixmap(pixmap(name, colour, size))
    return made


@lru_cache(maxsize=256)
def pixmap(name: str, colour: str, size: int, ratio: float = 1.0) -> QPixmap:
    """One picture of `size` pixels, sharp at a device pixel `ratio`."""
    source = files(__package__).joinpath(f"{name}.svg").read_text(encoding="ascii")
    renderer = QSvgRenderer(QByteArray(source.replace("currentColor", colour).encode("ascii")))
    canvas = QPixmap(QSize(size, size) * ratio)
    canvas.setDevicePixelRatio(ratio)
    canvas.fill(Qt.GlobalColor.transparent)
    painter = QPainter(canvas)
    renderer.render(painter, QRectF(0, 0, size, size))
    painter.end()
    return canvas
