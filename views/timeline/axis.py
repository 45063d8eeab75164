"""The one time range that all timelines share, how it maps to pixels, and its ticks."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from PySide6.QtCore import QObject, Signal

from engine.ir.graph import Ints

SHORTEST = 1_000
"""Picoseconds: no zoom is closer than a nanosecond across the view."""


@dataclass(frozen=True, slots=True)
class Window:
    """A part of the time axis, in picoseconds, over a number of pixels."""

    start: int
    span: int
    left: float
    """Where `start` lies, in pixels."""
    width: float

    @property
    def stop(self) -> int:
        return self.start + self.span

    def x(self, times: Ints) -> npt.NDArray[np.float64]:
        """Pixels of times; the start is taken off while they are integers, so that nothing is rounded away."""
        return (times - self.start).astype(np.float64) * (self.width / self.span) + self.left

    def x_of(self, time: int) -> float:
        return (time - self.start) * (self.width / self.span) + self.left

    def time_at(self, x: float) -> int:
        return self.start + round((x - self.left) * self.span / max(1.0, self.width))

    @property
    def per_pixel(self) -> int:
        return max(1, round(self.span / max(1.0, self.width)))


class TimeRange(QObject):
    """What part of time is shown. Panes that scroll together share one."""

    changed = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.start = 0
        self.span = 1_000_000
        self.limit = 1_000_000
        """End of the longest timeline."""
        self._fits = True

    def set_limit(self, limit: int) -> None:
        """Another end of time; a view that showed everything keeps showing everything."""
        self.limit = max(SHORTEST, limit)
        if self._fits:
            self.fit()
        else:
            self.show(self.start, self.span)

    def fit(self) -> None:
        """All of time, with a little air after the end."""
        self._set(0, self.limit + self.limit // 50)
        self._fits = True

    def show(self, start: int, span: int) -> None:
        """A part, moved so that some of time stays in view."""
        whole = self.limit + self.limit // 50
        span = max(SHORTEST, min(span, whole))
        self._set(max(0, min(start, whole - span)), span)
        self._fits = span == whole

    def zoom(self, factor: float, around: int) -> None:
        """Divide the span by `factor`; the time `around` keeps its place."""
        span = max(SHORTEST, round(self.span / factor))
        self.show(around - round((around - self.start) * span / self.span), span)

    def pan(self, part: float) -> None:
        """Move by a part of the span."""
        self.show(self.start + round(self.span * part), self.span)

    def reveal(self, start: int, stop: int) -> None:
        """Bring a stretch of time into view with as little movement as possible."""
        if stop - start > self.span:
            margin = (stop - start) // 10
            self.show(start - margin, stop - start + 2 * margin)
        elif start < self.start or stop > self.start + self.span:
            self.show((start + stop) // 2 - self.span // 2, self.span)

    def _set(self, start: int, span: int) -> None:
        if (start, span) != (self.start, self.span):
            self.start, self.span = start, span
            self.changed.emit()


def ticks(window: Window, apart: float) -> tuple[int, range]:
    """Step and times of ticks at least `apart` pixels from each other: steps of 1, 2 or 5 times a power of ten."""
    least = max(1.0, window.span * apart / max(1.0, window.width))
    power = 10 ** math.floor(math.log10(least))
    step = next(int(power * m) for m in (1, 2, 5, 10) if power * m >= least)
    first = -(-window.start // step) * step
    return step, range(first, window.stop + 1, step)


def tick_text(time: int, step: int, latest: int) -> str:
    """A time on the axis: every tick in the one unit that the step suggests, with at most one decimal; `latest` is that
    of the last tick, which has at least one of the unit."""
    units = (("s", 10**12), ("ms", 10**9), ("µs", 10**6), ("ns", 10**3))
    unit, size = next(((u, n) for u, n in units if step * 10 >= n <= latest), ("ps", 1))
    return f"{time / size:,.{0 if step >= size else 1}f} {unit}"
