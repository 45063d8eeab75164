"""Which colour each node has, and the legend that says what the colours mean."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.layout.figures import DECISIONS, Figure
from engine.layout.outline import Bytes, Look
from engine.quantities import bytes_text, time_text
from views.theme import Role, Theme

_LEAST_CONTRAST = 4.5
STEPS = 5
"""Shades of a scale."""
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Swatch:
    """One colour with what it stands for."""

    role: Role
    text: str


@dataclass(frozen=True, eq=False)
class Colouring:
    """A palette, and for every item of an outline a number into it."""

    swatches: tuple[Swatch, ...]
    number: Bytes


_LOOKS = {
    Look.EINSUM: "einsum",
    Look.ELEMENTWISE: "other compute",
    Look.COPY: "copy or layout",
    Look.PERMUTE: "permute",
    Look.COLLECTIVE: "other collective",
    Look.SILENT: "takes no time",
    Look.GROUP: "group",
}


def by_kind(theme: Theme, look: Bytes) -> Colouring:
    """The roles of the timelines."""
    roles = {
        Look.EINSUM: theme.einsum,
        Look.ELEMENTWISE: theme.elementwise,
        Look.COPY: theme.copy,
        Look.PERMUTE: theme.permute,
        Look.COLLECTIVE: theme.collective,
        Look.SILENT: Role(theme.pane, theme.muted),
        Look.GROUP: Role(theme.band, theme.text),
    }
    return Colouring(tuple(Swatch(roles[look], text) for look, text in _LOOKS.items()), look)


def by_decision(theme: Theme, values: Floats) -> Colouring:
    """Decisions as numbers into `DECISIONS`."""
    roles = (theme.memory, theme.exposed, theme.einsum, Role(theme.pane, theme.muted))
    swatches = tuple(Swatch(role, str(d)) for role, d in zip(roles, DECISIONS, strict=True))
    return Colouring(swatches, np.where(np.isnan(values), len(DECISIONS) - 1, values).astype(np.uint8))


def by_scale(theme: Theme, figure: Figure, values: Floats, shown: npt.NDArray[np.int64]) -> Colouring:
    """Shades from low to high, by powers; the range is that of the nodes that are shown. Little slack is dark."""
    hue = {Figure.EXPOSED: theme.exposed, Figure.MEMORY: theme.memory, Figure.BYTES: theme.copy}.get(
        figure, theme.einsum
    )
    least = figure == Figure.SLACK
    seen = values[shown]
    seen = seen[np.isfinite(seen) & (seen > 0)]
    nothing = [Swatch(Role(theme.pane, theme.muted), "none")]
    if least:  # nothing to spare is the most that there is to say
        nothing.append(Swatch(Role(hue.fill, _ink(hue.fill)), "0"))
    number = np.where(least & (values == 0), 1, 0).astype(np.uint8)
    if not len(seen):
        return Colouring(tuple(nothing), number)
    text: Callable[[int], str] = bytes_text if figure in (Figure.BYTES, Figure.MEMORY) else time_text
    high, low = float(seen.max()), max(float(seen.min()), float(seen.max()) / 10**STEPS)
    bounds = np.geomspace(low, high, STEPS + 1)[1:-1] if high > low * 1.01 else np.empty(0)
    filled = np.isfinite(values) & (values > 0)
    number[filled] = len(nothing) + np.searchsorted(bounds, values[filled])
    steps = len(bounds) + 1
    shades = [_between(theme.pane, hue.fill, (n + 1) / (steps + least)) for n in range(steps)]
    if least:
        shades.reverse()
    ends = [low, *bounds.tolist(), high]
    swatches = [Swatch(Role(shade, _ink(shade)), _range(text, ends[n], ends[n + 1])) for n, shade in enumerate(shades)]
    return Colouring((*nothing, *swatches), number)


def _range(text: Callable[[int], str], low: float, high: float) -> str:
    return f"{text(round(low))} – {text(round(high))}" if high > low * 1.01 else text(round(high))


def _between(one: str, two: str, part: float) -> str:
    part = 0.18 + 0.82 * part
    mixed = (round(a + (b - a) * part) for a, b in zip(_parts(one), _parts(two), strict=True))
    return "#" + "".join(f"{value:02X}" for value in mixed)


def _ink(fill: str) -> str:
    """The label's colour: black where neither the themes' ink nor white reads well, which is on shades in between."""
    best = max(("#1B1F24", "#FFFFFF"), key=lambda ink: _contrast(ink, fill))
    return best if _contrast(best, fill) >= _LEAST_CONTRAST else "#000000"


def _contrast(one: str, two: str) -> float:
    """WCAG 2 contrast ratio."""
    light, dark = sorted((_luminance(one), _luminance(two)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(text: str) -> float:
    linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in (p / 255 for p in _parts(text))]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _parts(text: str) -> tuple[int, int, int]:
    return int(text[1:3], 16), int(text[3:5], 16), int(text[5:7], 16)
