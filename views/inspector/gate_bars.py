"""The gate of a decomposition as a picture: what it costs one after the other against what it costs overlapped."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from engine.passes.candidate import GateTerms
from engine.quantities import signed_time_text, time_text
from views.ports import Host
from views.theme import GRID, axis_font, colour

_ROW = 5 * GRID


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
        return QSize(50 * GRID, 4 * _ROW + 2 * GRID)

    def paintEvent(self, event: QPaintEvent) -> None:
        terms = self._terms
        if terms is None:
            return
        theme = self._host.theme
        painter = QPainter(self)
        painter.setFont(axis_font())
        metrics = painter.fontMetrics()
        label = metrics.horizontalAdvance("overlapped") + 3 * GRID
        value = metrics.horizontalAdvance("888.8 µs") + 2 * GRID
        room = max(10.0, self.width() - label - value)
        longest = max(terms.comp + terms.comm, max(terms.comp, terms.ring) + terms.extra, 1)
        rows = (
            ("as is", ((0, terms.comp, theme.einsum), (terms.comp, terms.comm, theme.collective))),
            ("", ()),
            (
                "overlapped",
                ((0, terms.comp, theme.einsum), (max(terms.comp, terms.ring), terms.extra, theme.elementwise)),
            ),
            ("ring", ((0, terms.ring, theme.permute),)),
        )
        y = 0.0
        for caption, bars in rows:
            if not bars:
                y += GRID * 1.5
                continue
            painter.setPen(colour(theme.muted))
            painter.drawText(QRectF(0, y, label, _ROW), Qt.AlignmentFlag.AlignVCenter, caption)
            for start, length, role in bars:
                left = label + room * start / longest
                width = max(1.0 if length else 0.0, room * length / longest)
                area = QRectF(left, y + 3, width - (1 if width > 3 else 0), _ROW - 6)
                painter.fillRect(area, colour(role.fill))
                text = time_text(length)
                if metrics.horizontalAdvance(text) + GRID < width:
                    painter.setPen(colour(role.label))
                    painter.drawText(area, Qt.AlignmentFlag.AlignCenter, text)
            total = bars[-1][0] + bars[-1][1]
            painter.setPen(colour(theme.text))
            side = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight
            painter.drawText(QRectF(self.width() - value, y, value, _ROW), side, time_text(total))
            y += _ROW
        painter.setPen(colour(theme.gain if terms.gain >= 0 else theme.loss))
        word = "saves" if terms.gain >= 0 else "costs"
        beside = f", {signed_time_text(terms.beside)} beside other work" if terms.beside else ""
        text = f"{word} {time_text(abs(terms.gain))} each time{beside}"
        painter.drawText(QRectF(label, y, self.width() - label, _ROW), Qt.AlignmentFlag.AlignVCenter, text)
        painter.end()
