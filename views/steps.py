"""Values at which an axis is labelled: round in the unit in which they are written."""

from __future__ import annotations

import math
from collections.abc import Callable

Steps = Callable[[float, float, int], list[float]]
"""Lower bound, upper bound, about how many → values between the bounds, ascending."""


def some_steps(steps: Steps, low: float, high: float, count: int) -> list[float]:
    """Values for `count` labels; where a round step is so wide that fewer than two fit, the next narrower ones."""
    found = steps(low, high, max(2, count))
    for more in (3, 4, 6):
        if len(found) < 2:
            found = steps(low, high, max(more, count))
    return found


def binary_steps(low: float, high: float, count: int) -> list[float]:
    """Amounts of memory between two bounds, at most about `count`: multiples of a power of two bytes."""
    least = max((high - low) / count, 1.0)
    step = 2.0 ** math.ceil(math.log2(least))
    return [n * step for n in range(math.ceil(low / step), math.floor(high / step) + 1)]


def round_steps(low: float, high: float, count: int, narrowest: float = 1e-12) -> list[float]:
    """Round values between two bounds, at most about `count` of them, and none closer than `narrowest`."""
    least = max((high - low) / count, narrowest)
    power = 10.0 ** math.floor(math.log10(least))
    step = next(power * m for m in (1, 2, 5, 10) if power * m >= least * 0.999)
    first = math.ceil(low / step)
    return [n * step for n in range(first, math.floor(high / step) + 1)]


def whole_steps(low: float, high: float, count: int) -> list[float]:
    """Counts between two bounds, at most about `count` of them: there are no values between them."""
    return round_steps(low, high, count, narrowest=1.0)
