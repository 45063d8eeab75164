"""When no schedule fits what was asked for."""

from __future__ import annotations

from engine.errors import LapstrakeError


class Infeasible(LapstrakeError):
    """No order of a computation fits its budget or memory cap; says what would fit."""

    def __init__(self, message: str, *, smallest_budget: str | None = None, least_peak: int | None = None) -> None:
        super().__init__(message)
        self.smallest_budget = smallest_budget
        """Text form of the smallest budget that some order fits, when the budget is the reason."""
        self.least_peak = least_peak
        """Bytes of the smallest memory cap that some order fits, when memory is the reason."""
