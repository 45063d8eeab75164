"""Paints only the lines that are in view, so that a module of a hundred thousand lines opens at once."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QEvent, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFontMetricsF, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QAbstractScrollArea, QFrame, QWidget

from views.hlo_text.folds import Folds
from views.hlo_text.lines import Side, defined, pieces
from views.ports import Host
from views.theme import GRID, Theme, code_font, colour

_MOST_LETTERS = 2_000
"""Longer lines (constants in full) are cut when drawn."""
_MOVED = "  ↕ moved"
"""After a line that stands at another place in the other text."""


NOTHING = Side((), (), {}, {}, 0)


class TextView(QAbstractScrollArea):
    """Lines with numbers; the line of the selected instruction is marked, a click selects."""

    picked = Signal(str)
    """Name of the instruction whose line was clicked."""
    refolded = Signal()
    """Other computations are folded than before."""

    def __init__(self, host: Host, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._host = host
        self.side = NOTHING
        self._marked: frozenset[int] = frozenset()
        self._framed = range(0)
        self.folds = Folds()
        self._rows = self.folds.shown()
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName("HLO text")
        self.verticalScrollBar().valueChanged.connect(self.viewport().update)
        self.horizontalScrollBar().valueChanged.connect(self.viewport().update)

    def sizeHint(self) -> QSize:
        return QSize(120 * GRID, 50 * GRID)

    def set_text(self, side: Side | None) -> None:
        """Another text, or none. The first instruction in sight that both have stays where it is."""
        before, top = self.side, self._top()
        self.side = side or NOTHING
        self._marked, self._framed = frozenset(), range(0)
        self.set_folds(Folds.of(self.side.lines))
        kept = (name for name, row in before.where.items() if top and row >= top and name in self.side.where)
        name = next(kept, None)
        if name is not None:
            place = int(np.searchsorted(self._rows, self.side.where[name]))
            self.verticalScrollBar().setValue(place - (before.where[name] - top))

    def _top(self) -> int:
        """The first row in sight."""
        return int(self._rows[self.verticalScrollBar().value()]) if len(self._rows) else 0

    def set_folds(self, folds: Folds) -> None:
        """Fold other computations; what stands at the top stays there."""
        top = self._top()
        self.folds, self._rows = folds, folds.shown()
        self._scroll_range()
        self.verticalScrollBar().setValue(int(np.searchsorted(self._rows, top, side="right")) - 1)
        self.viewport().update()

    def fold(self, folds: Folds) -> None:
        """As `set_folds`, and tell whoever folds with this text."""
        if folds.folded != self.folds.folded:
            self.set_folds(folds)
            self.refolded.emit()

    def mark(self, numbers: frozenset[int], *, reveal: bool = True) -> None:
        """Mark lines, and bring the first of them into view."""
        self._marked = numbers
        if numbers and reveal:
            self._reveal(numbers)
        self.viewport().update()

    def frame(self, rows: range, *, reveal: bool = True) -> None:
        """Put a frame around rows, and bring them into view; of more than fit, the first."""
        self._framed = rows
        if rows and reveal:
            self._reveal(frozenset(rows), last=rows[-1])
        self.viewport().update()

    def _reveal(self, numbers: frozenset[int], last: int = -1) -> None:
        self.fold(self.folds.opened_to(numbers))
        bar, page = self.verticalScrollBar(), self.verticalScrollBar().pageStep()
        first, end = np.searchsorted(self._rows, (min(numbers), max(min(numbers), last))).tolist()
        if not bar.value() <= first <= end < bar.value() + page - 1:
            bar.setValue(first - max(0, min(page // 3, page - 2 - (end - first))))

    def _line_height(self) -> int:
        return round(QFontMetricsF(code_font()).height()) + 2

    def _scroll_range(self) -> None:
        page = max(1, self.viewport().height() // self._line_height())
        vertical = self.verticalScrollBar()
        vertical.setPageStep(page)
        vertical.setRange(0, max(0, len(self._rows) - page + 1))
        letter = QFontMetricsF(code_font()).horizontalAdvance("0")
        horizontal = self.horizontalScrollBar()
        horizontal.setPageStep(self.viewport().width())
        horizontal.setSingleStep(round(4 * letter))
        horizontal.setRange(
            0,
            max(
                0, round(min(self.side.widest, _MOST_LETTERS) * letter) + self._gutter() - self.viewport().width() + 40
            ),
        )

    def _gutter(self) -> int:
        return round(QFontMetricsF(code_font()).horizontalAdvance("0") * (len(str(len(self.side.lines))) + 4))

    def resizeEvent(self, event: QResizeEvent) -> None:
        self._scroll_range()
        super().resizeEvent(event)

    def changeEvent(self, event: QEvent) -> None:
        if event.type() in (QEvent.Type.PaletteChange, QEvent.Type.FontChange):
            self.viewport().update()
        super().changeEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self.viewport())
        painter.fillRect(self.viewport().rect(), colour(self._host.theme.base))
        painter.setFont(code_font())
        height = self._line_height()
        first = self.verticalScrollBar().value()
        last = min(len(self._rows), first + self.viewport().height() // height + 1)
        for place, number in enumerate(self._rows[first:last].tolist()):
            self._paint_line(painter, number, place * height)
            self._paint_gutter(painter, number, place * height)
        self._paint_frame(painter, first, height)
        painter.end()

    def _paint_line(self, painter: QPainter, number: int, y: int) -> None:
        """One line of the text, and what is said after it; all of it may reach under the gutter."""
        theme, metrics = self._host.theme, QFontMetricsF(code_font())
        height, gutter, width = self._line_height(), self._gutter(), self.viewport().width()
        tint = self.side.tints.get(number)
        if tint is not None:
            painter.fillRect(gutter, y, width, height, colour(_tint_of(theme, tint), 40))
        if number in self._marked:
            painter.fillRect(0, y, width, height, colour(theme.band))
        x = gutter - float(self.horizontalScrollBar().value())
        for piece in pieces(self.side.lines[number][:_MOST_LETTERS]):
            advance = metrics.horizontalAdvance(piece.text)
            if x + advance > gutter and x < width:
                painter.setPen(colour(_colour_of(theme, piece.kind)))
                painter.drawText(
                    QRectF(x, y, advance + 2, height),
                    Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft,
                    piece.text,
                )
            x += advance
        painter.setPen(colour(theme.muted))
        if tint == "moved":
            painter.drawText(QRectF(x, y, width, height), Qt.AlignmentFlag.AlignVCenter, _MOVED)
            x += metrics.horizontalAdvance(_MOVED)
        if number in self.folds.folded:
            hidden = self.folds.blocks[number] - number - 1
            painter.drawText(QRectF(x, y, width, height), Qt.AlignmentFlag.AlignVCenter, f"  … {hidden:,} lines }}")

    def _paint_gutter(self, painter: QPainter, number: int, y: int) -> None:
        """A line's number, and the sign that folds its computation."""
        theme, height, gutter = self._host.theme, self._line_height(), self._gutter()
        painter.fillRect(0, y, gutter - GRID, height, colour(theme.band if number in self._marked else theme.base))
        painter.setPen(colour(theme.muted))
        if self.side.numbers[number] >= 0:
            area = QRectF(0, y, gutter - 2 * GRID, height)
            side = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight
            painter.drawText(area, side, str(self.side.numbers[number] + 1))
        if number in self.folds.blocks:
            sign = "▸" if number in self.folds.folded else "▾"
            painter.drawText(QRectF(GRID, y, 4 * GRID, height), Qt.AlignmentFlag.AlignVCenter, sign)

    def _paint_frame(self, painter: QPainter, first: int, height: int) -> None:
        """`first`: what is in view at the top."""
        top, bottom = np.searchsorted(self._rows, (self._framed.start, self._framed.stop)).tolist()
        if top < bottom:
            painter.setPen(colour(self._host.theme.focus))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRect(0, (top - first) * height, self.viewport().width() - 1, (bottom - top) * height - 1)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        place = self.verticalScrollBar().value() + int(event.position().y() // self._line_height())
        if 0 <= place < len(self._rows):
            number = int(self._rows[place])
            if event.position().x() < self._gutter() and number in self.folds.blocks:
                self.fold(self.folds.toggled(number))
                return
            name = defined(self.side.lines[number])
            if name:
                self.picked.emit(name)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        bar = self.verticalScrollBar()
        moves = {
            Qt.Key.Key_Down: 1,
            Qt.Key.Key_Up: -1,
            Qt.Key.Key_PageDown: bar.pageStep(),
            Qt.Key.Key_PageUp: -bar.pageStep(),
            Qt.Key.Key_Home: -len(self.side.lines),
            Qt.Key.Key_End: len(self.side.lines),
        }
        step = moves.get(Qt.Key(event.key()))
        if step is None:
            super().keyPressEvent(event)
            return
        bar.setValue(bar.value() + step)


def _tint_of(theme: Theme, tint: str) -> str:
    """What only stands elsewhere is in no colour of gain or loss."""
    return {"added": theme.added, "removed": theme.removed, "changed": theme.changed}.get(tint, theme.muted)


def _colour_of(theme: Theme, kind: str) -> str:
    return {
        "opcode": theme.focus,
        "shape": theme.gain,
        "attribute": theme.muted,
        "text": theme.warning,
        "word": theme.error,
    }.get(kind, theme.text)
