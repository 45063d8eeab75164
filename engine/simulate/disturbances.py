"""The text form of a disturbance: ``jitter=0.05,slow=3:1.2,path=0-1:2,seed=7``."""

from __future__ import annotations

from engine.errors import UsageError
from engine.simulate.stragglers import Disturbance

_FORM = (
    "a disturbance is written jitter=0.05 (of each instruction's time), slow=3:1.2 (device 3 takes 1.2 times as long),"
    " path=0-1:2 (transfers between devices 0 and 1 take twice as long), seed=7, with commas between; slow and path may"
    " come again"
)
MOST_JITTER = 10.0
"""Largest standard deviation, as a part of an instruction's time."""
MOST_FACTOR = 1000.0
"""Largest factor. Integer picoseconds hold a step of hours even so many times over."""


def parse_disturbance(text: str) -> Disturbance:
    """Raises UsageError for anything but the text form; factors are above 0 and at most `MOST_FACTOR`, a jitter is not
    negative and at most `MOST_JITTER`, a path has two ends, and no device or path is named twice."""
    jitter, seed = 0.0, 0
    slow: list[tuple[int, float]] = []
    paths: list[tuple[int, int, float]] = []
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        name, _, value = part.partition("=")
        try:
            if name == "jitter":
                jitter = _number(value, part, "a jitter", MOST_JITTER)
            elif name == "seed":
                seed = int(value)
            elif name == "slow":
                device, _, factor = value.partition(":")
                slow.append((int(device), _factor(factor, part)))
            elif name == "path":
                ends, _, factor = value.partition(":")
                one, _, other = ends.partition("-")
                paths.append((int(one), int(other), _factor(factor, part)))
            else:
                raise ValueError(name)
            if seed < 0:
                raise ValueError(seed)
        except ValueError:
            raise UsageError(f"{_FORM}; but '{part}' came") from None
    if not (jitter or slow or paths):
        raise UsageError(f"{_FORM}; but nothing in '{text}' disturbs")
    _check_apart(slow, paths)
    return Disturbance(jitter, tuple(slow), tuple(paths), seed)


def _check_apart(slow: list[tuple[int, float]], paths: list[tuple[int, int, float]]) -> None:
    """Each device and each path once, and a path between two."""
    for one, other, _ in paths:
        if one == other:
            raise UsageError(f"a path is between two devices, but path={one}-{other} leads from a device to itself")
    named = [f"slow={device}" for device, _ in slow] + [f"path={min(a, b)}-{max(a, b)}" for a, b, _ in paths]
    for name in named:
        if named.count(name) > 1:
            raise UsageError(f"{name} is given {named.count(name)} times: one factor each was expected")


def _number(text: str, part: str, what: str, most: float) -> float:
    value = float(text)
    if not 0.0 <= value < float("inf"):
        raise ValueError(text)
    if value > most:
        raise UsageError(f"{what} is at most {most:g}, but '{part}' came")
    return value


def _factor(text: str, part: str) -> float:
    value = _number(text, part, "a factor", MOST_FACTOR)
    if value == 0:
        raise ValueError(text)
    return value
