"""The gate of a decomposition as a picture: what it costs one after the other against what it costs overlapped."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from engine.passes.candidate import GateTerms
from engine.quantities import time_text
from views.ports import Host
from views.theme import GRID, Role, axis_font, colour

_ROW = 5 * GRID
_AS_IS, _OVERLAPPED = "as is", "overlapped"


class GateBars(QWidget):
    """Four bars to one scale: comp and comm run one after the other; comp and ring run together, extra comes on top."""

    def __init__(self, host: Host, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._host = host
        self._terms: GateTerms | None = None
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def set_terms(self, terms: GateTerms | None) -> None:
        self._terms = terms
        self.setVisible(terms is not None)
        if terms is not None:
            self.setAccessibleName("gate")
            self.setAccessibleDescription(
                f"einsum {time_text(terms.comp)}, collective {time_text(terms.comm)}, "
                f"ring {time_text(terms.ring)}, extra {time_text(terms.extra)}, beside {time_text(terms.beside)}, "
                f"gain {time_text(terms.gain)}"
            )
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        lines = len(gained(self._terms)) if self._terms is not None else 1
        return QSize(50 * GRID, (3 + lines) * _ROW + 2 * GRID)

    def paintEvent(self, event: QPaintEvent) -> None:
        terms = self._terms
        if terms is None:
            return
        theme = self._host.theme
        painter = QPainter(self)
        painter.setFont(axis_font())
        left = painter.fontMetrics().horizontalAdvance(_OVERLAPPED) + 3 * GRID
        apart = (0, terms.comp, theme.einsum), (terms.comp, terms.comm, theme.collective)
        beside = (0, terms.comp, theme.einsum), (max(terms.comp, terms.ring), terms.extra, theme.elementwise)
        longest = max(terms.comp + terms.comm, max(terms.comp, terms.ring) + terms.extra, 1)
        y = 0.0
        for caption, bars, gap in (
            (_AS_IS, apart, 1.5 * GRID),
            (_OVERLAPPED, beside, 0.0),
            ("ring", ((0, terms.ring, theme.permute),), 0.0),
        ):
            self._paint_row(painter, y, left, caption, bars, longest)
            y += _ROW + gap
        said = ((left, theme.gain if terms.gain >= 0 else theme.loss), (0, theme.muted))  # the second line is long
        for line, (x, tone) in zip(gained(terms), said, strict=False):
            painter.setPen(colour(tone))
            painter.drawText(QRectF(x, y, self.width() - x, _ROW), Qt.AlignmentFlag.AlignVCenter, line)
            y += _ROW
        painter.end()

    def _paint_row(
        self, painter: QPainter, y: float, left: int, caption: str, bars: Sequence[tuple[int, int, Role]], longest: int
    ) -> None:
        """What a row is called, its bars (start, length, colours; in picoseconds, `longest` is the whole width), and
        where the last one ends."""
        theme, metrics = self._host.theme, painter.fontMetrics()
        value = metrics.horizontalAdvance("888.8 µs") + 2 * GRID
        room = max(10.0, self.width() - left - value)
        painter.setPen(colour(theme.muted))
        painter.drawText(QRectF(0, y, left, _ROW), Qt.AlignmentFlag.AlignVCenter, caption)
        for start, length, role in bars:
            width = max(1.0 if length else 0.0, room * length / longest)
            area = QRectF(left + room * start / longest, y + 3, width - (1 if width > 3 else 0), _ROW - 6)
            painter.fillRect(area, colour(role.fill))
            text = time_text(length)
            if metrics.horizontalAdvance(text) + GRID < width:
                painter.setPen(colour(role.label))
                painter.drawText(area, Qt.AlignmentFlag.AlignCenter, text)
        start, length, _ = bars[-1]
        painter.setPen(colour(theme.text))
        side = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight
        painter.drawText(QRectF(self.width() - value, y, value, _ROW), side, time_text(start + length))


def gained(terms: GateTerms) -> tuple[str, ...]:
    """What decomposing saves or costs, and what of that is no bar; a line each."""
    word = "saves" if terms.gain >= 0 else "costs"
    total = f"{word} {time_text(abs(terms.gain))} each time"
    if not terms.beside:
        return (total,)
    more = "more" if terms.beside > 0 else "less"
    return total, f"other work hides {time_text(abs(terms.beside))} {more} of the ring"
