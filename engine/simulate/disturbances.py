"""The text form of a disturbance: ``jitter=0.05,slow=3:1.2,path=0-1:2,seed=7``."""

from __future__ import annotations

from engine.errors import UsageError
from engine.simulate.stragglers import Disturbance

_FORM = (
    "a disturbance is written jitter=0.05 (of each instruction's time), slow=3:1.2 (device 3 takes 1.2 times as long),"
    " path=0-1:2 (transfers between devices 0 and 1 take twice as long), seed=7, with commas between; slow and path may"
    " come again"
)


def parse_disturbance(text: str) -> Disturbance:
    """Raises UsageError for anything but the text form; factors are above 0, a jitter is not negative."""
    jitter, seed = 0.0, 0
    slow: list[tuple[int, float]] = []
    paths: list[tuple[int, int, float]] = []
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        name, _, value = part.partition("=")
        try:
            if name == "jitter":
                jitter = _number(value, least=0.0)
            elif name == "seed":
                seed = int(value)
            elif name == "slow":
                device, _, factor = value.partition(":")
                slow.append((int(device), _factor(factor)))
            elif name == "path":
                ends, _, factor = value.partition(":")
                one, _, other = ends.partition("-")
                paths.append((int(one), int(other), _factor(factor)))
            else:
                raise ValueError(name)
            if seed < 0:
                raise ValueError(seed)
        except ValueError:
            raise UsageError(f"{_FORM}; but '{part}' came") from None
    if not (jitter or slow or paths):
        raise UsageError(f"{_FORM}; but nothing in '{text}' disturbs")
    return Disturbance(jitter, tuple(slow), tuple(paths), seed)


def _number(text: str, *, least: float) -> float:
    value = float(text)
    if not least <= value < float("inf"):
        raise ValueError(text)
    return value


def _factor(text: str) -> float:
    value = _number(text, least=0.0)
    if value == 0:
        raise ValueError(text)
    return value
