"""Times over the values of a sweep, as SVG text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from engine.quantities import time_text

_COLOURS = ("#316EBF", "#DD2869", "#5B6470")
_WIDTH, _HEIGHT, _LEFT, _TOP, _BOTTOM = 720, 360, 80, 40, 48


@dataclass(frozen=True)
class Series:
    """One line."""

    name: str
    values: Sequence[int]
    """Picoseconds, one for each label."""


def plot_svg(title: str, labels: Sequence[str], series: Sequence[Series]) -> str:
    """Lines over evenly spaced labels; the axis begins at zero."""
    top = max((v for s in series for v in s.values), default=0) or 1
    body = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        f'font-family="system-ui, sans-serif" font-size="11" fill="#1B1F24" role="img" aria-label="{escape(title)}">',
        f'<text x="{_LEFT}" y="20" font-size="13">{escape(title)}</text>',
        *_axes(labels, top),
    ]
    for number, line in enumerate(series):
        colour = _COLOURS[number % len(_COLOURS)]
        points = [(_x(k, len(labels)), _y(v, top)) for k, v in enumerate(line.values)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        body.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        body += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in points]
        x = _LEFT + 160 * number
        body.append(f'<rect x="{x}" y="{_HEIGHT - 16}" width="12" height="4" fill="{colour}"/>')
        body.append(f'<text x="{x + 16}" y="{_HEIGHT - 10}">{escape(line.name)}</text>')
    return "\n".join([*body, "</svg>\n"])


def _axes(labels: Sequence[str], top: int) -> Iterator[str]:
    for part in range(5):
        y = _y(top * part // 4, top)
        yield f'<path d="M{_LEFT} {y:.1f}H{_WIDTH - 16}" stroke="#C9D0D8" stroke-width="0.5"/>'
        yield f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{time_text(top * part // 4)}</text>'
    for k, label in enumerate(labels):
        yield f'<text x="{_x(k, len(labels)):.1f}" y="{_HEIGHT - 30}" text-anchor="middle">{escape(label)}</text>'


def _x(k: int, count: int) -> float:
    return _LEFT + 16 + k * (_WIDTH - _LEFT - 48) / max(1, count - 1)


def _y(value: int, top: int) -> float:
    return _TOP + (1 - value / top) * (_HEIGHT - _TOP - _BOTTOM)
