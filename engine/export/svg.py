"""Timelines stacked over one time axis, as SVG text that any browser shows and printers print.

Slices narrower than a pixel are merged, so that a timeline of a million slices is still a small picture; an exposed
gap is never lost to that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from types import MappingProxyType

import numpy as np

from engine.quantities import time_text
from engine.timeline.timeline import Category, LaneKind, Timeline

COLOURS: Mapping[Category, str] = MappingProxyType(
    {
        Category.EINSUM: "#316EBF",
        Category.ELEMENTWISE: "#818CA1",
        Category.COPY: "#732062",
        Category.PERMUTE: "#BA8106",
        Category.COLLECTIVE: "#770000",
        Category.EXPOSED: "#DD2869",
    }
)
"""The window's light roles (checked against them by a test)."""

NAMES: Mapping[Category, str] = MappingProxyType(
    {
        Category.EINSUM: "einsum",
        Category.ELEMENTWISE: "element-wise",
        Category.COPY: "copy and layout",
        Category.PERMUTE: "permute",
        Category.COLLECTIVE: "other collective",
        Category.EXPOSED: "exposed: compute waits",
    }
)

_INK, _MUTED, _RULE = "#1B1F24", "#5B6470", "#C9D0D8"
_LABELS = 120
_LANE, _GAP, _HEADER, _AXIS = 16, 4, 24, 24


@dataclass(frozen=True, eq=False)
class Strip:
    """One timeline of the stack."""

    title: str
    timeline: Timeline


def timelines_svg(strips: Sequence[Strip], width: int = 1120) -> str:
    """An SVG document, `width` pixels wide and as high as it needs; time runs over the longest makespan."""
    span = max((s.timeline.makespan for s in strips), default=0) or 1
    body: list[str] = []
    y = 0
    for strip in strips:
        body.append(_text(0, y + 16, strip.title, _INK, 13))
        y += _HEADER
        for lane in range(len(strip.timeline.lanes)):
            body += _lane(strip.timeline, lane, y, width - _LABELS, span)
            y += _LANE + _GAP
        y += _GAP
    body += _axis(y, width - _LABELS, span)
    y += _AXIS
    body += _legend(y)
    y += _HEADER
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{y}" viewBox="0 0 {width} {y}" '
        'font-family="system-ui, sans-serif" role="img" aria-label="timelines">'
        '<defs><pattern id="wait" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
        f'<rect width="5" height="5" fill="{COLOURS[Category.EXPOSED]}" fill-opacity="0.25"/>'
        f'<rect width="2" height="5" fill="{COLOURS[Category.EXPOSED]}"/></pattern></defs>'
    )
    return "\n".join([head, *body, "</svg>\n"])


def _lane(timeline: Timeline, lane: int, y: int, width: int, span: int) -> Iterator[str]:
    name, kind = timeline.lanes[lane].name, timeline.lanes[lane].kind
    yield _text(0, y + 12, name, _MUTED, 11)
    yield f'<rect x="{_LABELS}" y="{y}" width="{width}" height="{_LANE}" fill="#F5F7F9"/>'
    inset = 0 if kind is LaneKind.COMPUTE else 3
    low, high = np.searchsorted(timeline.lane, [lane, lane + 1])
    categories = timeline.category[low:high]
    # Exposed gaps come last: they lie over whatever a merged run covers.
    for category in (*(c for c in COLOURS if c is not Category.EXPOSED), Category.EXPOSED):
        of = np.flatnonzero(categories == category) + low
        if not len(of):
            continue
        fill = "url(#wait)" if category is Category.EXPOSED else COLOURS[category]
        path = "".join(
            f"M{_LABELS + x:.2f} {y + inset}h{w:.2f}v{_LANE - 2 * inset}h{-w:.2f}z"
            for x, w in _runs(timeline, of, width / span)
        )
        yield f'<path fill="{fill}" d="{path}"/>'


def _runs(
    timeline: Timeline, of: np.ndarray[tuple[int], np.dtype[np.int64]], scale: float
) -> Iterator[tuple[float, float]]:
    """(x, width) of slices, neighbours less than half a pixel apart merged and none narrower than that."""
    starts = timeline.start[of] * scale
    ends = starts + timeline.duration[of] * scale
    breaks = np.flatnonzero(starts[1:] - np.maximum.accumulate(ends)[:-1] > 0.5) + 1
    for piece_starts, piece_ends in zip(np.split(starts, breaks), np.split(ends, breaks), strict=True):
        # A seam between touching slices stays visible where there is room for it.
        yield float(piece_starts[0]), max(0.5, float(piece_ends.max() - piece_starts[0]) - 0.25)


def _axis(y: int, width: int, span: int) -> Iterator[str]:
    for time in _ticks(span):
        x = _LABELS + time / span * width
        yield f'<path d="M{x:.2f} 0V{y}" stroke="{_RULE}" stroke-width="0.5"/>'
        yield _text(x, y + 14, time_text(time) if time else "0", _MUTED, 11, anchor="middle")


def _ticks(span: int) -> range:
    """About eight round times."""
    step = 10 ** (len(str(span)) - 1)
    for factor in (0.1, 0.2, 0.5, 1, 2):
        if span / (step * factor) <= 10:
            step = max(1, int(step * factor))
            break
    return range(0, span + 1, step)


def _legend(y: int) -> Iterator[str]:
    x = _LABELS
    for category, name in NAMES.items():
        fill = "url(#wait)" if category is Category.EXPOSED else COLOURS[category]
        yield f'<rect x="{x}" y="{y + 6}" width="12" height="12" fill="{fill}"/>'
        yield _text(x + 16, y + 16, name, _INK, 11)
        x += 32 + 7 * len(name)


def _text(x: float, y: float, text: str, fill: str, size: int, anchor: str = "start") -> str:
    return f'<text x="{x:.2f}" y="{y}" fill="{fill}" font-size="{size}" text-anchor="{anchor}">{escape(text)}</text>'
