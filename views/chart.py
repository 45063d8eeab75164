"""Small charts: axes with round ticks, lines, and points that can be clicked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFontMetrics, QMouseEvent, QPainter, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import QToolTip, QWidget

from views.ports import Host
from views.steps import binary_steps, round_steps, some_steps, whole_steps
from views.theme import GRID, axis_font, colour

_BOTTOM, _LINE, _RIGHT = 8 * GRID, 6 * GRID, 6 * GRID
_MOST_LABELS = 8
_APART = GRID
"""Pixels between labels that stand side by side."""
_VEIL = 190
"""Opacity of what is behind a label."""
_STRONG, _PLAIN = 5.0, 3.5
"""Pixels from the middle of a point to its rim."""
_REACH = _STRONG + GRID
"""Pixels from the middle of a point to its label."""


@dataclass(frozen=True, slots=True)
class Point:
    """A point with what is said about it, and what a click on it means."""

    x: float
    y: float
    text: str = ""
    key: int = -1
    strong: bool = False
    label: str = ""
    """Written beside it, where that has room."""


@dataclass(frozen=True, slots=True)
class Series:
    """Points of one kind, joined by a line or not."""

    name: str
    points: tuple[Point, ...]
    colour: str
    line: bool = True
    stairs: bool = False
    """Joined along the axes: between two points nothing better than the left one is known."""


class Chart(QWidget):
    """Series over two axes that begin where it helps."""

    clicked = Signal(int)
    """Key of a point."""

    def __init__(
        self,
        host: Host,
        x_caption: str,
        y_caption: str,
        x_text: Callable[[float], str],
        y_text: Callable[[float], str],
        *,
        from_zero: bool,
        y_binary: bool = False,
        x_whole: bool = False,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._host = host
        self._captions = (x_caption, y_caption)
        self._x_text, self._y_text = x_text, y_text
        self._from_zero = from_zero
        self._x_steps = whole_steps if x_whole else round_steps
        self._y_steps = binary_steps if y_binary else round_steps
        self._series: tuple[Series, ...] = ()
        self._line: tuple[float, str] | None = None
        self.setMouseTracking(True)
        self.setMinimumSize(56 * GRID, 32 * GRID)

    def sizeHint(self) -> QSize:
        return QSize(110 * GRID, 56 * GRID)

    def set_series(self, series: Sequence[Series], marked: tuple[float, str] | None = None) -> None:
        """What to draw, and a vertical line at a place of the x axis with its caption."""
        self._series = tuple(series)
        self._line = marked
        said = "; ".join(f"{s.name}: {', '.join(p.text for p in s.points)}" for s in self._series if s.points)
        self.setAccessibleDescription(said)
        self.update()

    def _area(self) -> QRectF:
        """Where points lie: beside the widest label of the y axis, under the legend and the caption."""
        metrics = QFontMetrics(axis_font())
        bounds = self._bounds()
        said = [self._y_text(y) for y in (*bounds[2:], *self.y_ticks())] if bounds is not None else []
        left = max((metrics.horizontalAdvance(text) for text in said), default=0) + 4 * GRID
        top, height = self._upright()
        return QRectF(left, top, self.width() - left - _RIGHT, height)

    def _upright(self) -> tuple[float, float]:
        """Top and height of the area."""
        metrics = QFontMetrics(axis_font())
        # The upper half of the top tick's label lies above the area.
        top = (_LINE if self._caption_fits() else _LINE + metrics.height()) + metrics.height() // 2
        return float(top), float(self.height() - top - _BOTTOM)

    def _legend(self) -> list[Series]:
        return [s for s in self._series if s.name and s.points]

    def _caption_fits(self) -> bool:
        """Whether the y axis's caption stands beside the legend; else it goes under it."""
        metrics = QFontMetrics(axis_font())
        legend = sum(metrics.horizontalAdvance(s.name) + 6 * GRID for s in self._legend())
        return legend + metrics.horizontalAdvance(self._captions[1]) + _RIGHT + 4 * GRID <= self.width()

    def y_ticks(self) -> list[float]:
        """Values at which the y axis is labelled; at least two where the axis is as high as three lines."""
        bounds = self._bounds()
        if bounds is None:
            return []
        count = min(_MOST_LABELS, int(self._upright()[1] // (2 * QFontMetrics(axis_font()).height())))
        return some_steps(self._y_steps, bounds[2], bounds[3], count)

    def x_ticks(self) -> list[float]:
        """Values at which the x axis is labelled: as many as there is room for their text."""
        bounds = self._bounds()
        if bounds is None:
            return []
        metrics = QFontMetrics(axis_font())
        widest = max(metrics.horizontalAdvance(self._x_text(x)) for x in bounds[:2]) + 4 * GRID
        return some_steps(self._x_steps, bounds[0], bounds[1], int(self._area().width() // widest))

    def x_labels(self) -> list[tuple[QRectF, str]]:
        """Labels of the x axis and where they are written: inside, and apart from one another."""
        bounds = self._bounds()
        if bounds is None:
            return []
        metrics, top = QFontMetrics(axis_font()), self._area().bottom() + GRID
        found: list[tuple[QRectF, str]] = []
        free = 0.0
        for value in self.x_ticks():
            text = self._x_text(value)
            width = float(metrics.horizontalAdvance(text))
            middle = self._place(Point(value, bounds[2]), bounds).x()
            left = max(0.0, min(middle - width / 2, self.width() - width))
            if left >= free:
                found.append((QRectF(left, top, width, 4 * GRID), text))
                free = left + width + _APART
        return found

    def _bounds(self) -> tuple[float, float, float, float] | None:
        points = [p for s in self._series for p in s.points]
        if not points:
            return None
        x0, x1 = min(p.x for p in points), max(p.x for p in points)
        y0, y1 = min(p.y for p in points), max(p.y for p in points)
        pad_x, pad_y = (x1 - x0) * 0.05 or abs(x0) * 0.05 or 1.0, (y1 - y0) * 0.1 or abs(y0) * 0.1 or 1.0
        return x0 - pad_x, x1 + pad_x, 0.0 if self._from_zero else y0 - pad_y, y1 + pad_y

    def _place(self, point: Point, bounds: tuple[float, float, float, float]) -> QPointF:
        area = self._area()
        x0, x1, y0, y1 = bounds
        return QPointF(
            area.left() + (point.x - x0) / (x1 - x0) * area.width(),
            area.bottom() - (point.y - y0) / (y1 - y0) * area.height(),
        )

    def paintEvent(self, event: QPaintEvent) -> None:
        bounds = self._bounds()
        painter = QPainter(self)
        painter.fillRect(self.rect(), colour(self._host.theme.base))
        painter.setFont(axis_font())
        if bounds is not None:
            self._paint_axes(painter, bounds)
            painter.setRenderHint(QPainter.RenderHint.Antialiasing, on=True)
            for series in self._series:
                self._paint_series(painter, series, bounds)
            self._paint_legend(painter)
        painter.end()

    def _paint_axes(self, painter: QPainter, bounds: tuple[float, float, float, float]) -> None:
        theme, area = self._host.theme, self._area()
        x0, _, y0, _ = bounds
        for value in self.y_ticks():
            y = self._place(Point(x0, value), bounds).y()
            painter.fillRect(QRectF(area.left(), round(y), area.width(), 1), colour(theme.band))
            painter.setPen(colour(theme.muted))
            place = QRectF(0, y - 10, area.left() - 2 * GRID, 20)
            painter.drawText(place, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, self._y_text(value))
        for value in self.x_ticks():
            x = self._place(Point(value, y0), bounds).x()
            painter.fillRect(QRectF(round(x), area.bottom(), 1, GRID), colour(theme.muted))
        painter.setPen(colour(theme.muted))
        for place, text in self.x_labels():
            painter.drawText(place, Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignTop, text)
        painter.setPen(QPen(colour(theme.outline), 1))
        painter.drawLine(area.bottomLeft(), area.bottomRight())
        painter.setPen(colour(theme.muted))
        bottom = QRectF(area.left(), area.bottom() + 4 * GRID, area.width(), 4 * GRID)
        painter.drawText(bottom, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, self._captions[0])
        if self._line is not None:
            x = self._place(Point(self._line[0], y0), bounds).x()
            painter.setPen(QPen(colour(theme.focus), 1, Qt.PenStyle.DashLine))
            painter.drawLine(QPointF(x, area.top()), QPointF(x, area.bottom()))
            width = painter.fontMetrics().horizontalAdvance(self._line[1])
            beside = x + GRID if x + GRID + width < area.right() else x - GRID - width
            painter.drawText(QPointF(beside, area.top() + painter.fontMetrics().ascent()), self._line[1])

    def _paint_series(self, painter: QPainter, series: Series, bounds: tuple[float, float, float, float]) -> None:
        theme = self._host.theme
        places = [self._place(p, bounds) for p in series.points]
        labels = self._labels()
        if series.line and len(places) > 1:
            painter.setPen(QPen(colour(series.colour), 1.5))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawPolyline(QPolygonF(_stairs(places) if series.stairs else places))
        for point, place in zip(series.points, places, strict=True):
            radius = _STRONG if point.strong else _PLAIN
            painter.setPen(QPen(colour(theme.base), 1.5))
            painter.setBrush(colour(series.colour))
            painter.drawEllipse(place, radius, radius)
            if point.strong:
                painter.setBrush(Qt.BrushStyle.NoBrush)
                painter.setPen(QPen(colour(theme.text), 1.5))
                painter.drawEllipse(place, radius + 2, radius + 2)
            if point in labels:
                painter.fillRect(labels[point], colour(theme.base, _VEIL))  # it may have no place but over points
                painter.setPen(colour(theme.text))
                painter.drawText(labels[point], Qt.AlignmentFlag.AlignCenter, point.label)

    def _labels(self) -> dict[Point, QRectF]:
        """Where labels are written: beside their points, apart from one another, over no point with a label, not
        outside, and over none of the other points where there is such a place."""
        bounds = self._bounds()
        points = [p for s in self._series for p in s.points if p.label]
        if bounds is None or not points:
            return {}
        area = QRectF(self._area())
        area.setRight(float(self.width()))
        taken = [_about(self._place(p, bounds)) for p in points]
        others = [_about(self._place(p, bounds)) for s in self._series for p in s.points if not p.label]
        found: dict[Point, QRectF] = {}
        for point in points:
            free = [
                rect
                for rect in self._beside(self._place(point, bounds), point.label)
                if area.contains(rect) and not any(map(rect.intersects, taken))
            ]
            clear = (rect for rect in free if not any(map(rect.intersects, others)))
            place = next(clear, next(iter(free), None))
            if place is not None:
                found[point] = place
                taken.append(place.adjusted(-_APART, 0, _APART, 0))
        return found

    @staticmethod
    def _beside(at: QPointF, label: str) -> Iterator[QRectF]:
        """Places of a label about its point, the best first."""
        metrics = QFontMetrics(axis_font())
        width, height = float(metrics.horizontalAdvance(label)), float(metrics.height())
        sides = (at.x() + _REACH, at.x() - _REACH - width)
        for shift in (-_REACH, _REACH, 0.0):
            for left in sides:
                yield QRectF(left, at.y() + shift - height / 2, width, height)
        for shift in (-_REACH - height, _REACH):
            yield QRectF(at.x() - width / 2, at.y() + shift, width, height)
        for steps in (-1, 1, -2, 2):
            for left in sides:
                yield QRectF(left, at.y() - height / 2 + steps * height, width, height)

    def _paint_legend(self, painter: QPainter) -> None:
        x = self.width() - float(_RIGHT)
        for series in reversed(self._legend()):
            width = painter.fontMetrics().horizontalAdvance(series.name)
            x -= width
            painter.setPen(colour(self._host.theme.text))
            painter.drawText(QRectF(x, 0, width + 2, _LINE), Qt.AlignmentFlag.AlignVCenter, series.name)
            x -= 3 * GRID
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(colour(series.colour))
            painter.drawEllipse(QPointF(x + GRID, _LINE / 2), 3.5, 3.5)
            x -= 3 * GRID
        top = 0.0 if self._caption_fits() else float(_LINE - GRID)
        painter.setPen(colour(self._host.theme.muted))
        caption = QRectF(2 * GRID, top, self.width() - 2 * GRID, _LINE)
        painter.drawText(caption, Qt.AlignmentFlag.AlignVCenter, self._captions[1])

    def near(self, position: QPointF) -> Point | None:
        """The point within reach of the mouse."""
        bounds = self._bounds()
        if bounds is None:
            return None
        found = [
            ((self._place(p, bounds) - position).manhattanLength(), n, p)
            for n, p in enumerate(p for s in self._series for p in s.points)
        ]
        distance, _, point = min(found)
        return point if distance < 4 * GRID else None

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        point = self.near(event.position())
        clickable = point is not None and point.key >= 0
        self.setCursor(Qt.CursorShape.PointingHandCursor if clickable else Qt.CursorShape.ArrowCursor)
        QToolTip.showText(event.globalPosition().toPoint(), point.text if point is not None else "", self)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        point = self.near(event.position())
        if point is not None and point.key >= 0:
            self.clicked.emit(point.key)


def _about(place: QPointF) -> QRectF:
    """What a point covers at most."""
    return QRectF(place.x() - _STRONG, place.y() - _STRONG, 2 * _STRONG, 2 * _STRONG)


def _stairs(places: Sequence[QPointF]) -> list[QPointF]:
    """Right, then down or up, from each point to the next."""
    corners = [corner for a, b in pairwise(places) for corner in (a, QPointF(b.x(), a.y()))]
    return [*corners, places[-1]]
