"""Colour differences as people see them, with and without a missing cone, for the test of the theme.

sRGB: IEC 61966-2-1. CIEDE2000: Sharma, Wu, Dalal 2005. Dichromacy: Machado, Oliveira, Fernandes 2009, severity 1.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

SIGHTS: dict[str, Floats] = {
    "normal": np.eye(3),
    "protan": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deutan": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritan": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}
_TO_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)
_WHITE = np.array([0.95047, 1.0, 1.08883])


def linear(text: str) -> Floats:
    """``#rrggbb`` as linear light."""
    value = np.array([int(text[n : n + 2], 16) for n in (1, 3, 5)]) / 255
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def contrast(one: str, two: str) -> float:
    """WCAG 2 contrast ratio."""
    low, high = sorted(float((_TO_XYZ @ linear(text))[1]) for text in (one, two))
    return (high + 0.05) / (low + 0.05)


def difference(one: str, two: str, sight: str = "normal") -> float:
    """CIEDE2000 between two colours for one kind of sight."""
    seen = [_lab(np.clip(SIGHTS[sight] @ linear(text), 0.0, 1.0)) for text in (one, two)]
    return ciede2000(seen[0], seen[1])


def _lab(light: Floats) -> Floats:
    ratio = _TO_XYZ @ light / _WHITE
    f = np.where(ratio > 216 / 24389, np.cbrt(ratio), (24389 / 27 * ratio + 16) / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def ciede2000(one: Floats, two: Floats) -> float:
    """CIEDE2000 between two CIELAB colours."""
    (l1, a1, b1), (l2, a2, b2) = one.tolist(), two.tolist()
    chroma = (np.hypot(a1, b1) + np.hypot(a2, b2)) / 2
    g = 0.5 * (1 - np.sqrt(chroma**7 / (chroma**7 + 25.0**7)))
    a1, a2 = a1 * (1 + g), a2 * (1 + g)
    c1, c2 = np.hypot(a1, b1), np.hypot(a2, b2)
    h1, h2 = np.degrees(np.arctan2(b1, a1)) % 360, np.degrees(np.arctan2(b2, a2)) % 360
    turn = 0.0 if c1 * c2 == 0 else (h2 - h1 + 180) % 360 - 180
    hue = h1 + h2 if c1 * c2 == 0 else h1 + turn / 2
    dl, dc, dh = l2 - l1, c2 - c1, 2 * np.sqrt(c1 * c2) * np.sin(np.radians(turn / 2))
    lightness, c = (l1 + l2) / 2, (c1 + c2) / 2
    t = (
        1
        - 0.17 * np.cos(np.radians(hue - 30))
        + 0.24 * np.cos(np.radians(2 * hue))
        + 0.32 * np.cos(np.radians(3 * hue + 6))
        - 0.20 * np.cos(np.radians(4 * hue - 63))
    )
    rotation = 30 * np.exp(-((((hue % 360) - 275) / 25) ** 2))
    sl = 1 + 0.015 * (lightness - 50) ** 2 / np.sqrt(20 + (lightness - 50) ** 2)
    sc, sh = 1 + 0.045 * c, 1 + 0.015 * c * t
    rt = -np.sin(np.radians(2 * rotation)) * 2 * np.sqrt(c**7 / (c**7 + 25.0**7))
    return float(np.sqrt((dl / sl) ** 2 + (dc / sc) ** 2 + (dh / sh) ** 2 + rt * (dc / sc) * (dh / sh)))
