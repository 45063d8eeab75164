"""Whether a compiled module is issued in the order that was chosen: read from the compiled text, not believed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class OrderKept:
    """The chosen order against the one of the executable, all its computations together."""

    kept: int
    """Instructions that stand in the chosen order."""
    moved: tuple[str, ...] = ()
    """Names of those that stand elsewhere."""
    gone: tuple[str, ...] = ()
    """Names of those that the compiler removed, or made part of others."""
    problem: str = ""
    """Why the order was not asked for, or not honoured at all."""

    @property
    def whole(self) -> bool:
        """Whether everything that the executable has of the order stands in it."""
        return not self.problem and not self.moved

    def __str__(self) -> str:
        total = self.kept + len(self.moved) + len(self.gone)
        if self.problem:
            return f"order not kept: {self.problem}"
        if not self.moved:
            gone = f", {len(self.gone)} replaced by the compiler" if self.gone else ""
            return f"order kept ({self.kept} of {total} instructions{gone})"
        return f"order kept in part ({self.kept} of {total} instructions; {', '.join(self.moved[:3])} stand elsewhere)"
